"""Whole models against the published modelling code, on recorded outputs of small random checkpoints.

The checkpoints are those of `tests/checkpoints.py`; the recordings under `data/model-*` hold what the published
classes and functions gave for them, with what was replaced during the recording in their headers.
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import uncode
from tests.checkpoints import COUNT, checkpoint
from uncode import Canvas, Guided, Sampler, decode, legacy, presets
from uncode.backbones.denoiser import TransformerDenoiser
from uncode.backbones.transformer.session import TransformerSession
from uncode.core.denoiser import Denoiser, Layout
from uncode.core.pieces.cache import Plan, Span
from uncode.generation.likelihood import masked_log_probability

DATA = Path(__file__).parent / "data"
APART = 4 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 16
CLOSE = 1e-5
PUBLISHED = ("llada", "dream")
START, STOP, LENGTH = 9, 14, 20
"""The block of the recorded cached forwards, and the length of their rows."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], TransformerDenoiser]:
    folder = tmp_path_factory.mktemp("checkpoints")
    return {
        (dialect, n): uncode.load(checkpoint(folder / f"{dialect}{n}", dialect, n, shards=1 + n % 3))
        for dialect in PUBLISHED
        for n in range(COUNT)
    }


def span(first: int, last: int, rows: int = 2) -> Span:
    return Span(np.full(rows, first), np.full(rows, last))


def full(keep: Span) -> Plan:
    return Plan(window=span(0, LENGTH), wanted=span(0, LENGTH), store=keep, reuse=span(0, 0))


def difference(found: Tensor, published: Tensor, model: TransformerDenoiser) -> float:
    """The largest, over every token but the mask, which ours never gives. A shifted model's raw logits point to the
    next position, ours to their own; the first row of a window has no counterpart there."""
    assert bool((found[..., model.mask_id] == -torch.inf).all())
    if model.dialect.shift:
        found, published = found[:, 1:], published[:, :-1]
    apart = (found - published).abs()
    apart[..., model.mask_id] = 0.0
    return float(apart.max())


def differences(model: TransformerDenoiser, dialect: str, number: int) -> dict[str, float]:
    """How far the logits are from the recorded ones: whole, with a prefix cache, with a dual cache and once more."""
    whole = load_file(DATA / f"model-{dialect}.safetensors")
    data = {name.split(".")[1]: t for name, t in whole.items() if name.startswith(f"{number}.")}
    layout = Layout.without_padding(torch.zeros(2, LENGTH, dtype=torch.bool))
    found = {}

    def forward(session: TransformerSession, tokens: str, recorded: str, plan: Plan) -> Tensor:
        logits = session.logits(data[tokens], layout, plan)
        found[recorded] = difference(logits, data[recorded], model)
        return logits

    logits = forward(model.open(2, LENGTH), "tokens", "full", full(span(0, 0)))
    if model.dialect.shift:  # the first token of a row predicts itself
        first, recorded = (t[:, :1, : model.mask_id] for t in (logits, data["full"]))
        found["first"] = float((first - recorded).abs().max())
    prefix, dual = model.open(2, LENGTH), model.open(2, LENGTH)
    forward(prefix, "tokens", "full", full(span(0, START)))
    rest, block, nothing = span(START, LENGTH), span(START, STOP), span(0, 0)
    forward(prefix, "after", "prefix", Plan(window=rest, wanted=rest, store=nothing, reuse=span(0, START)))
    forward(dual, "tokens", "full", full(span(0, LENGTH)))
    for tokens, recorded_as in (("after", "dual"), ("after2", "dual2")):
        plan = Plan(window=block, wanted=block, store=nothing, reuse=span(0, LENGTH))
        forward(dual, tokens, recorded_as, plan)
    return found


@pytest.mark.parametrize("number", range(COUNT))
@pytest.mark.parametrize("dialect", PUBLISHED)
def test_logits_are_the_published_ones(models: Any, dialect: str, number: int) -> None:
    found = differences(models[dialect, number], dialect, number)
    assert {"full", "prefix", "dual", "dual2"} <= set(found) and all(apart <= CLOSE for apart in found.values()), found


RELEASES = {"mmada": "llada", "d3llm-dream": "dream", "dream-coder": "dream"}
"""Releases with modelling code of their own that is not NVlabs/Fast-dLLM's file, and the dialect of the checkpoints."""


@pytest.mark.parametrize("number", range(COUNT))
@pytest.mark.parametrize("release", RELEASES)
def test_logits_are_those_of_a_releases_own_code(models: Any, release: str, number: int) -> None:
    model = models[RELEASES[release], number]
    data = load_file(DATA / f"model-{release}.safetensors")
    layout = Layout.without_padding(torch.zeros(2, LENGTH, dtype=torch.bool))
    logits = model.open(2, LENGTH).logits(data[f"{number}.tokens"], layout, full(span(0, 0)))
    assert difference(logits, data[f"{number}.full"], model) <= CLOSE


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
    """All cases of a checkpoint in one batch, of unequal prompts, lengths and samplers, and every sixteenth alone;
    under `make verify` every fourth."""
    alone = zip(chosen[::APART], samplers[::APART], strict=True)
    parts = [(chosen, samplers), *(([case], [sampler]) for case, sampler in alone)]
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


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for dialect, number in itertools.product(PUBLISHED, range(COUNT)):
            model = uncode.load(checkpoint(Path(folder) / f"{dialect}{number}", dialect, number), device="cpu")
            found = differences(model, dialect, number)  # type: ignore[arg-type]
            print(dialect, number, ", ".join(f"{name} {value:.1e}" for name, value in found.items()))
