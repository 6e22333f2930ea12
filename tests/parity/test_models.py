"""Whole models against the published modelling code, on recorded outputs of small random checkpoints.

The checkpoints are those of `tests/checkpoints.py`; the recordings under `data/model-*` hold what the published
classes and functions gave for them, with what was replaced during the recording in their headers.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import uncode
from tests.checkpoints import COUNT, DIALECTS, checkpoint
from uncode import Canvas, Guided, Sampler, decode, legacy, presets
from uncode.backbones.denoiser import TransformerDenoiser
from uncode.backbones.likelihood import masked_log_probability
from uncode.core.cache import Plan, Span
from uncode.core.denoiser import Denoiser

DATA = Path(__file__).parent / "data"
CLOSE = 1e-5
START, STOP, LENGTH = 9, 14, 20
"""The block of the recorded cached forwards, and the length of their rows."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], TransformerDenoiser]:
    folder = tmp_path_factory.mktemp("checkpoints")
    return {
        (dialect, n): uncode.load(checkpoint(folder / f"{dialect}{n}", dialect, n, shards=1 + n % 3))
        for dialect in DIALECTS
        for n in range(COUNT)
    }


def span(first: int, last: int, rows: int = 2) -> Span:
    return Span(np.full(rows, first), np.full(rows, last))


def full(keep: Span) -> Plan:
    return Plan(window=span(0, LENGTH), rows=span(0, LENGTH), keep=keep, reuse=span(0, 0))


def compare(found: Tensor, published: Tensor, model: TransformerDenoiser) -> None:
    """Equal to 1e-5 at every token but the mask, which ours never gives."""
    assert bool((found[..., model.mask_id] == -torch.inf).all())
    found, published = found.clone(), published.clone()
    found[..., model.mask_id] = published[..., model.mask_id] = 0.0
    difference = float((found - published).abs().max())
    assert difference <= CLOSE, f"logits differ by {difference:.2e}"


@pytest.mark.parametrize("number", range(COUNT))
@pytest.mark.parametrize("dialect", DIALECTS)
class TestLogits:
    """Raw published logits against ours; Dream's point to the next position, ours to their own."""

    def recorded(self, dialect: str, number: int) -> dict[str, Tensor]:
        whole = load_file(DATA / f"model-{dialect}.safetensors")
        return {name.split(".")[1]: t for name, t in whole.items() if name.startswith(f"{number}.")}

    def check(self, found: Tensor, raw: Tensor, model: TransformerDenoiser) -> None:
        """Rows from the second on; the first is the published one where nothing is shifted."""
        if model.dialect.shift:
            compare(found[:, 1:], raw[:, :-1], model)
        else:
            compare(found, raw, model)

    def test_whole(self, models: Any, dialect: str, number: int) -> None:
        model, data = models[dialect, number], self.recorded(dialect, number)
        valid = torch.ones(2, LENGTH, dtype=torch.bool)
        found = model.open(2, LENGTH).logits(data["tokens"], valid, full(span(0, 0)))
        self.check(found, data["full"], model)
        if model.dialect.shift:  # the first token predicts itself
            compare(found[:, :1], data["full"][:, :1], model)

    def test_prefix(self, models: Any, dialect: str, number: int) -> None:
        model, data = models[dialect, number], self.recorded(dialect, number)
        valid = torch.ones(2, LENGTH, dtype=torch.bool)
        session = model.open(2, LENGTH)
        session.logits(data["tokens"], valid, full(span(0, START)))
        window = span(START, LENGTH)
        plan = Plan(window=window, rows=window, keep=span(0, 0), reuse=span(0, START))
        self.check(session.logits(data["after"], valid, plan), data["prefix"], model)

    def test_dual(self, models: Any, dialect: str, number: int) -> None:
        model, data = models[dialect, number], self.recorded(dialect, number)
        valid = torch.ones(2, LENGTH, dtype=torch.bool)
        session = model.open(2, LENGTH)
        session.logits(data["tokens"], valid, full(span(0, LENGTH)))
        block = span(START, STOP)
        for tokens, raw in (("after", "dual"), ("after2", "dual2")):
            plan = Plan(window=block, rows=block, keep=span(0, 0), reuse=span(0, LENGTH))
            self.check(session.logits(data[tokens], valid, plan), data[raw], model)


@cache
def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((DATA / f"model-{name}.json").read_text())["cases"]
    return found


def of_fast_dllm(settings: dict[str, Any], cache: Any) -> Sampler:
    if settings["threshold"] is not None:
        return presets.fast_dllm(threshold=settings["threshold"], block_length=settings["block_length"], cache=cache)
    blocks = settings["gen_length"] // settings["block_length"]
    return presets.semi_ar(blocks=blocks, steps=settings["steps"], cache=cache)


CACHES = {"generate": "none", "generate_with_prefix_cache": "prefix", "generate_with_dual_cache": "dual"}


def check(model: Denoiser, chosen: list[dict[str, Any]], samplers: list[Sampler], counted: bool = True) -> None:
    """All cases of a checkpoint in one batch, of unequal prompts, lengths and samplers, and every fourth alone."""
    parts = [(chosen, samplers), *(([case], [s]) for case, s in zip(chosen[::4], samplers[::4], strict=True))]
    for some, theirs in parts:
        lengths = [case["settings"].get("gen_length") or case["settings"]["max_new_tokens"] for case in some]
        canvas = Canvas.after_prompt([case["prompt"] for case in some], length=lengths, mask_id=model.mask_id)
        trace = decode(model, canvas, theirs)
        for row, case in enumerate(some):
            assert trace.generated[row, : lengths[row]].tolist() == case["tokens"], case
            assert not counted or int(trace.forwards[row]) == case["forwards"] - case["wasted"], case


def of_function(name: str, function: str, number: int) -> list[dict[str, Any]]:
    return [case for case in cases(name) if case["function"] == function and case["checkpoint"] == number]


@pytest.mark.parametrize("function", CACHES)
def test_llada_decodes_as_published(models: Any, function: str) -> None:
    for number in range(COUNT):
        chosen = of_function("llada-decode", function, number)
        assert len(chosen) >= 25
        check(models["llada", number], chosen, [of_fast_dllm(case["settings"], CACHES[function]) for case in chosen])


def test_dream_decodes_as_published(models: Any) -> None:
    """Its own sampler; the forwards that write nothing are not ours."""
    for number in range(COUNT):
        chosen = of_function("dream-decode", "generation_utils._sample", number)
        assert len(chosen) > 12
        samplers = [presets.dream(alg=c["settings"]["alg"], steps=c["settings"]["steps"]) for c in chosen]
        check(models["dream", number], chosen, samplers, counted=False)


@pytest.mark.parametrize("cached", ["prefix", "dual"])
def test_dream_decodes_as_published_with_caches(models: Any, cached: Any) -> None:
    for number in range(COUNT):
        chosen = of_function("dream-decode", "generation_utils_block._sample", number)
        chosen = [case for case in chosen if case["settings"]["dual_cache"] == (cached == "dual")]
        assert len(chosen) >= 5
        options = ("threshold", "block_length")
        samplers = [legacy.fast_dllm_dream(**{k: c["settings"][k] for k in options}, cache=cached) for c in chosen]
        check(models["dream", number], chosen, samplers)


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_guidance_as_published(models: Any, scale: float) -> None:
    for number in range(COUNT):
        chosen = of_function("llada-guidance", "generate", number)
        chosen = [case for case in chosen if case["settings"]["cfg_scale"] == scale]
        assert len(chosen) >= 3
        samplers = [
            presets.semi_ar(blocks=s["gen_length"] // s["block_length"], steps=s["steps"])
            for s in (case["settings"] for case in chosen)
        ]
        check(Guided(models["llada", number], scale), chosen, samplers)


def test_likelihood_as_published(models: Any) -> None:
    assert len(cases("llada-likelihood")) == 120
    for case in cases("llada-likelihood"):
        model = models["llada", case["checkpoint"]]
        masks = torch.tensor(case["masks"], dtype=torch.bool)
        guided = Guided(model, case["cfg_scale"]) if case["cfg_scale"] else model
        sums = masked_log_probability(guided, case["prompt"], case["answer"], masks)
        value = float((sums * masks.shape[1] / masks.sum(-1)).mean())
        assert value == pytest.approx(case["value"], rel=1e-5, abs=1e-5)
