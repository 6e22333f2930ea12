"""A row is the same on every device: same noise, same order, same tokens. Skipped where there is no GPU."""

from __future__ import annotations

import pytest
import torch

from tests import grid
from uncode import Canvas, FunctionDenoiser, Policy, Sampler, decode
from uncode.core.noise import PhiloxNoise, Purpose

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


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
@pytest.mark.parametrize("select", grid.SELECTORS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("score", grid.SCORES, ids=lambda s: "+".join(type(t).__name__ for t in s.terms))
def test_a_gpu_writes_the_same_tokens(score: object, select: object) -> None:
    canvas = Canvas.after_prompt([[1, 2]] * 3, length=38, mask_id=31)
    for propose, (remask, paired) in zip(grid.PROPOSALS[:4], grid.REMASKERS, strict=False):
        policy = Policy(score, paired or select, grid.BLOCKS[1], remask)  # type: ignore[arg-type]
        here, there = (
            decode(model(device, torch.float64), canvas, Sampler(policy, propose), seed=3) for device in ("cpu", "cuda")
        )
        assert torch.equal(here.tokens, there.tokens)
        assert torch.equal(here.commit_step, there.commit_step)


@gpu
def test_bf16_logits_on_a_gpu() -> None:
    canvas = Canvas.after_prompt([[1, 2]] * 3, length=38, mask_id=31)
    trace = decode(model("cuda", torch.bfloat16), canvas, Sampler(Policy(grid.SCORES[6])))
    assert not (trace.tokens == 31).any() and trace.tokens.device.type == "cpu"
