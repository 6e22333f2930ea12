"""The dialects after LLaDA and Dream against the published modelling code and decoders, on recorded outputs.

As in `test_models.py`: the checkpoints are small, random and those of `tests/checkpoints.py`, and the headers of the
recordings say what was run and what was replaced. `full` are the logits of whole rows, `block` those of the last
block over the keys and values that the published cache held.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import uncode
from tests.checkpoints import COUNT, DIALECTS, checkpoint
from tests.parity.test_models import CLOSE, DATA, LENGTH, START, difference, full, span
from uncode import Canvas, Policy, Sampler, decode, presets
from uncode.backbones.denoiser import TransformerDenoiser
from uncode.core.denoiser import Layout
from uncode.core.pieces.blocks import SeededBlocks
from uncode.core.pieces.cache import BlockCache, Plan, PrefixCache
from uncode.core.pieces.score import Confidence
from uncode.core.pieces.select import Threshold, TopK
from uncode.core.pieces.stop import AfterEos
from uncode.samplers.resolve import for_model

NAMES = [name for name in DIALECTS if name not in ("llada", "dream")]
Settings = dict[str, Any]


FAST = 2
"""Checkpoints of a dialect whose decodes `make test` compares; `make verify` compares all."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], TransformerDenoiser]:
    folder = tmp_path_factory.mktemp("checkpoints")

    @cache
    def model_of(name: str, number: int) -> TransformerDenoiser:
        return uncode.load(checkpoint(folder / f"{name}{number}", name, number, shards=1 + number % 3))

    return model_of


@pytest.mark.parametrize("number", range(COUNT))
@pytest.mark.parametrize("name", NAMES)
def test_logits_are_the_published_ones(models: Any, name: str, number: int) -> None:
    model = models(name, number)
    whole = load_file(DATA / f"model-{name}.safetensors")
    data = {key.split(".")[1]: t for key, t in whole.items() if key.startswith(f"{number}.")}
    layout = Layout.without_padding((torch.arange(LENGTH) < START).expand(2, -1))
    session, length = model.open(2, LENGTH), model.block_length
    assert ("block" in data) == (length is not None)
    origin = START if model.blocks_from_answer else 0
    start = 0 if length is None else origin + (LENGTH - 1 - origin) // length * length
    opened = span(start, LENGTH)
    logits = session.logits(data["tokens"], layout, replace(full(span(0, LENGTH)), block=opened))
    if model.network.shape.causal_context:  # recorded as ours are: each row predicts its own position
        assert (logits - data["full"])[:, START:, : model.mask_id].abs().max() <= CLOSE
    else:
        assert difference(logits, data["full"], model) <= CLOSE
    if length is not None:
        session.logits(data["tokens"], layout, replace(full(span(0, start)), block=opened))
        block = Plan(opened, opened, store=span(0, 0), reuse=span(0, start), block=opened)
        found = session.logits(data["tokens"], layout, block)
        if model.network.shape.causal_context:
            assert (found - data["block"])[..., : model.mask_id].abs().max() <= CLOSE
        else:
            assert difference(found, data["block"], model) <= CLOSE
        torch.testing.assert_close(found, logits[:, start:], atol=CLOSE, rtol=0)


@cache
def cases(name: str) -> list[dict[str, Any]]:
    with gzip.open(DATA / f"model-{name}-decode.json.gz", "rt") as file:
        found: list[dict[str, Any]] = json.load(file)["cases"]
    return found


def of_llada(s: Settings) -> Sampler:
    return presets.llada(steps=s["steps"], block_length=s["block_length"])


def of_coder(s: Settings) -> Sampler:
    if s["threshold"] is None:
        return presets.confidence(block_length=s["block_length"])
    return presets.fast_dllm(threshold=s["threshold"], block_length=s["block_length"], cache="none")


def of_sdar(s: Settings) -> Sampler:
    steps = -(-s["gen_length"] // s["block_length"]) * s["denoising_steps"]
    every = s["denoising_steps"] == s["block_length"]
    options: Settings = {"block_length": s["block_length"]}
    if s["remasking_strategy"] == "sequential":
        return presets.left_to_right(**options) if every else None  # type: ignore[return-value]
    options["steps"] = None if every else steps
    if s["remasking_strategy"] == "low_confidence_static":
        return presets.confidence(**options)
    return presets.dynamic(threshold=s["confidence_threshold"], **options)


def of_bd3lm(s: Settings) -> Sampler:
    return presets.confidence(block_length=s["block_length"])


def of_coda(s: Settings) -> Sampler:
    return presets.dream(alg=s["alg"], steps=s["steps"])


def of_fast_dllm_v2(s: Settings) -> Sampler:
    policy = Policy(Confidence(), Threshold(s["threshold"]), SeededBlocks(s["small_block_size"], s["block_size"]))
    return Sampler(replace(policy, stop=AfterEos()))


def of_nemotron(s: Settings) -> Sampler:
    select = TopK() if s["threshold"] is None else Threshold(s["threshold"])
    return Sampler(Policy(Confidence(), select, SeededBlocks(s["block_length"], s["block_length"]), stop=AfterEos()))


def of_llada2(s: Settings) -> Sampler:
    every = s["steps"] == s["block_length"]
    steps = None if every else s["gen_length"] // s["block_length"] * s["steps"]
    return presets.dynamic(threshold=s["threshold"], steps=steps, block_length=s["block_length"])


def of_llada21(s: Settings) -> Sampler:
    rounds = s["max_post_steps"]
    edit_threshold, length = s["editing_threshold"], s["block_length"]
    return presets.edit(threshold=s["threshold"], edit_threshold=edit_threshold, rounds=rounds, block_length=length)


DECODERS: dict[str, Callable[[Settings], Sampler]] = {
    "a2d": of_llada,
    "a2d_bd3lm": of_bd3lm,
    "coda": of_coda,
    "nemotron": of_nemotron,
    "fast_dllm_v2": of_fast_dllm_v2,
    "illada": of_llada,
    "stable_diffcoder": of_coder,
    "sdar": of_sdar,
    "llada_moe": of_llada,
    "llada2": of_llada2,
    "llada2.1": of_llada21,
}


@pytest.mark.parametrize("numbers", [range(FAST), pytest.param(range(FAST, COUNT), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DECODERS)
def test_decoded_tokens_are_the_published_ones(models: Any, name: str, numbers: range) -> None:
    """All cases of a checkpoint in one batch of unequal prompts, lengths and samplers; some alone, some uncached. Some
    decoders return what stands up to the first EOS token."""
    for number in numbers:
        model = models(name.removesuffix(".1"), number)
        chosen = [case for case in cases(name) if case["checkpoint"] == number]
        found = [DECODERS[name](case["settings"]) for case in chosen]
        chosen, samplers = zip(
            *((c, for_model(s, model)) for c, s in zip(chosen, found, strict=True) if s), strict=True
        )
        assert len(chosen) >= 12
        if model.block_length is not None:
            assert all(sampler.cache == BlockCache() for sampler in samplers)
        plain = [sampler.caching(PrefixCache(refresh=1)) for sampler in samplers[::5]]
        for some, theirs in ((chosen, samplers), (chosen[::5], plain), (chosen[3:4], samplers[3:4])):
            lengths = [case["settings"]["gen_length"] for case in some]
            canvas = Canvas.after_prompt([case["prompt"] for case in some], length=lengths, mask_id=model.mask_id)
            trace = decode(model, canvas, list(theirs))
            for row, case in enumerate(some):
                wanted = case["tokens"]
                assert trace.generated[row, : len(wanted)].tolist() == wanted, case["settings"]
                assert len(wanted) == lengths[row] or wanted[-1] in model.eos_ids
