"""A row is the same on every device: same noise, same order, same tokens. Skipped where there is no GPU."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from tests import grid
from tests.checkpoints import checkpoint
from tests.constraints.vocabularies import TextTokenizer, texts
from uncode import Canvas, FunctionDenoiser, Policy, Sampler, constraint, decode, load, presets
from uncode.core.noise import PhiloxNoise, Purpose
from uncode.core.pieces.propose import Adjust
from uncode.core.pieces.stop import AfterEos
from uncode.core.support import transfer

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

PAIRS = grid.SCORED_SELECTORS[::7]
MODELS = [(d, c) for d in ("llada", "dream", "illada", "sdar", "fast_dllm_v2") for c in ("none", "prefix", "dual")]
MODELS += [(d, "window") for d in ("llada", "dream", "illada")]  # no window slides in a block-causal model


def model(device: str, dtype: torch.dtype) -> FunctionDenoiser:
    generator = torch.Generator().manual_seed(0)
    table = (torch.randn(3, 40, 32, generator=generator, dtype=torch.float64) * 2).to(dtype).to(device)
    return FunctionDenoiser(lambda tokens: table[: len(tokens)], 31, 32, eos_ids=(30, 29), device=device, dtype=dtype)


@gpu
def test_noise_is_the_same_on_a_gpu() -> None:
    seeds, steps, offsets = torch.tensor([[5], [-7]]), torch.tensor([[0], [9]]), torch.arange(50)[None]
    here = PhiloxNoise(seeds, steps)
    there = PhiloxNoise(seeds.cuda(), steps.cuda())
    for purpose in Purpose:
        assert torch.equal(here.positions(purpose, offsets), there.positions(purpose, offsets.cuda()).cpu())
    assert torch.equal(here.tokens(Purpose.TOKEN, offsets, 99), there.tokens(Purpose.TOKEN, offsets.cuda(), 99).cpu())


@gpu
@pytest.mark.parametrize(("score", "select"), PAIRS, ids=grid.short_name)
def test_a_gpu_writes_the_same_tokens(score: object, select: object) -> None:
    canvas = Canvas.after_prompt([[1, 2]] * 3, length=38, mask_id=31)
    for propose, (remask, paired) in zip(grid.PROPOSALS[:4], grid.REMASKERS, strict=False):
        if not grid.fits(score, paired):
            continue
        policy = Policy(score, paired or select, grid.BLOCKS[1], remask)  # type: ignore[arg-type]
        here, there = (
            decode(model(device, torch.float64), canvas, Sampler(policy, propose), seed=3) for device in ("cpu", "cuda")
        )
        assert torch.equal(here.tokens, there.tokens)
        assert torch.equal(here.commit_step, there.commit_step)


def constrained(device: str, rows: int) -> tuple[list[list[int]], list[str]]:
    """Tokens and texts under constraints, penalties and a bias; every third row is free."""
    denoiser = model(device, torch.float32)
    denoiser.tokenizer = TextTokenizer(texts(0, 28))
    plain = replace(presets.fast_dllm(threshold=0.4, block_length=13), adjust=Adjust((4,), (1.5,), 0.5, 0.3, 1.2))
    rules = [
        None if row % 3 == 2 else constraint(regex=(r"(?:ab|1 ?)+é.*", "[^a]{9,}")[row % 3]) for row in range(rows)
    ]
    canvas = Canvas.after_prompt([[1, 2]] * rows, length=38, mask_id=31)
    trace = decode(denoiser, canvas, [plain if row % 2 else presets.semi_ar(blocks=2) for row in range(rows)], 3, rules)
    return trace.tokens.tolist(), trace.texts(denoiser.tokenizer)


@gpu
@pytest.mark.parametrize("rows", [1, 3])
def test_constraints_and_penalties_on_a_gpu(rows: int) -> None:
    """With the kernel. Of one row the next forward is launched before what was written is checked."""
    here, there = constrained("cpu", rows), constrained("cuda", rows)
    assert here == there
    assert re.fullmatch(r"(?:ab|1 ?)+é.*", there[1][0])


@gpu
def test_bf16_logits_on_a_gpu() -> None:
    canvas = Canvas.after_prompt([[1, 2]] * 3, length=38, mask_id=31)
    trace = decode(model("cuda", torch.bfloat16), canvas, Sampler(Policy(grid.SCORES[6])))
    assert not (trace.tokens == 31).any() and trace.tokens.device.type == "cpu"


def test_each_score_and_each_selector_is_tried_on_a_gpu() -> None:
    for every, tried in zip(zip(*grid.SCORED_SELECTORS, strict=True), zip(*PAIRS, strict=True), strict=True):
        assert set(map(str, every)) == set(map(str, tried))


@gpu
@pytest.mark.parametrize(("dialect", "cache"), MODELS)
def test_models_write_the_same_tokens_on_a_gpu(tmp_path: Path, dialect: str, cache: str) -> None:
    """Unequal rows, caches and all, in float64; and each row alone is the row in the batch, in float32 too."""
    folder = checkpoint(tmp_path, dialect, 1, shards=2)
    prompts, lengths = [[1, 2, 3, 4, 5], [6], [7, 8]], [16, 12, 9]
    sampler = presets.fast_dllm(threshold=0.4, block_length=4, cache=cache)  # type: ignore[arg-type]

    def written(device: str, dtype: str, rows: list[int]) -> list[list[int]]:
        found = load(folder, device=device, dtype=dtype)
        canvas = Canvas.after_prompt([prompts[r] for r in rows], [lengths[r] for r in rows], found.mask_id)
        generated = decode(found, canvas, sampler).generated
        return [generated[at, : lengths[r]].tolist() for at, r in enumerate(rows)]

    together = written("cuda", "float64", [0, 1, 2])
    assert together == written("cpu", "float64", [0, 1, 2])
    for dtype in ("float64", "float32"):
        assert [written("cuda", dtype, [row])[0] for row in range(3)] == written("cuda", dtype, [0, 1, 2])


@gpu
@pytest.mark.parametrize("cache", ["none", "prefix", "dual"])
@pytest.mark.parametrize("dialect", ["llada", "dream"])
def test_draft_steps_write_the_tokens_of_single_steps_on_a_gpu(tmp_path: Path, dialect: str, cache: str) -> None:
    """In float64, alone and in a batch, with a stop rule and without."""
    folder = checkpoint(tmp_path, dialect, 1, shards=2)
    here, there = (load(folder, device=device, dtype="float64") for device in ("cpu", "cuda"))
    canvas = Canvas.after_prompt([[1, 2, 3, 4, 5], [6], [7, 8]], [16, 12, 9], here.mask_id)
    single = presets.semi_ar(blocks=2, cache=cache)  # type: ignore[arg-type]
    for sampler in (single, single.stopping(AfterEos())):
        wanted = decode(here, canvas, sampler).generated
        for count in (2, 4):
            several = replace(sampler, draft_steps=count)
            assert decode(there, canvas, several).generated.equal(wanted)
            alone = decode(there, Canvas.after_prompt([[1, 2, 3, 4, 5]], 16, here.mask_id), several)
            assert alone.generated.equal(wanted[:1]) and len(alone) <= 16


@gpu
def test_loading_to_a_gpu_takes_the_models_memory_and_no_more(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "dream", 4, shards=3)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    found = load(folder, device="cuda")
    sizes = [p.numel() * p.element_size() for p in found.network.parameters()]  # type: ignore[attr-defined]
    assert found.device.type == "cuda"
    rounding = 512 * len(sizes)  # the allocator's
    assert torch.cuda.max_memory_allocated() - before <= sum(sizes) + 1.1 * max(sizes) + rounding


@gpu
@pytest.mark.parametrize("cache", ["none", "dual"])
def test_a_model_over_a_gpu_and_the_cpu(tmp_path: Path, cache: str) -> None:
    """As far as one GPU goes: some layers stay in the CPU's memory and come over when they run."""
    pytest.importorskip("accelerate")
    folder = checkpoint(tmp_path, "dream", 1)
    places = {"embed": 0, "layers.0": 0, "layers.1": "cpu", "layers.2": 0, "norm": 0, "head": 0}
    sampler = presets.fast_dllm(threshold=0.4, block_length=4, cache=cache)  # type: ignore[arg-type]
    found = []
    for options in ({"device_map": places}, {"device_map": "auto"}, {"device": "cuda"}):
        denoiser = load(folder, dtype="float64", **options)  # type: ignore[arg-type]
        canvas = Canvas.after_prompt([[1, 2, 3, 4, 5], [6]], [12, 9], denoiser.mask_id)
        found.append(decode(denoiser, canvas, sampler).tokens.tolist())
    assert found[0] == found[1] == found[2]


def test_the_host_sleeps_while_it_waits_for_a_copy() -> None:
    """CUDA polls unless the event that the host waits for is made with `blocking=True`."""
    with patch("torch.cuda.Event") as event, patch("torch.cuda.current_stream") as stream:
        arrival = transfer._arrival(torch.device("cuda"))
    event.assert_called_once_with(blocking=True)
    arrival.record.assert_called_once_with(stream.return_value)
