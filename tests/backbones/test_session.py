"""The transformer's session: what a plan asks for, in place, for rows at different places."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import uncode
from tests.checkpoints import DIALECTS, checkpoint, like_the_toy, tokens
from tests.covering import covering
from tests.toy import EOS, MASK, VOCAB, ToyDenoiser
from uncode import Canvas, FrequencyTable, Guided, UncodeError, decode, log_likelihood, presets
from uncode.backbones.transformer.session import TransformerSession
from uncode.core.denoiser import Denoiser, Layout
from uncode.core.pieces.cache import Plan, Span
from uncode.core.stepper.advance import advance
from uncode.core.stepper.state import State

LENGTH = 18


def spans(*pairs: tuple[int, int]) -> Span:
    return Span(np.array([a for a, _ in pairs]), np.array([b for _, b in pairs]))


def padded() -> tuple[torch.Tensor, torch.Tensor]:
    """Three rows with padding on the left, on the right and nowhere."""
    ids = tokens(VOCAB, 5, 3, LENGTH) % 28
    ids[:, 8:] = torch.where(
        torch.rand(3, LENGTH - 8, generator=torch.Generator().manual_seed(1)) < 0.6, MASK, ids[:, 8:]
    )
    valid = torch.ones_like(ids, dtype=torch.bool)
    valid[0, :4] = valid[1, 15:] = False
    return ids, valid


WINDOWS = {
    "the same block": [(9, 13)] * 3,
    "different blocks": [(9, 13), (11, 15), (8, 10)],
    "to the end": [(9, LENGTH)] * 3,
    "one row afresh": [(0, LENGTH), (9, 13), (14, 18)],
    "from the first token on": [(4, 9), (0, 5), (0, 6)],
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_gives_the_logits_of_a_whole_forward_while_nothing_has_changed(dialect: str, name: str) -> None:
    """Row i predicts position i, the first row of a block included, shifted or not, whatever the padding."""
    model, (ids, valid), everything = like_the_toy(dialect, 1), padded(), [(0, LENGTH)] * 3
    session = model.open(3, LENGTH)
    rows = spans(*everything)
    whole = session.logits(
        ids, Layout(valid, ~valid), Plan(spans(*everything), rows, store=spans(*everything), reuse=spans(*[(0, 0)] * 3))
    )
    window = spans(*WINDOWS[name])
    part = session.logits(
        ids, Layout(valid, ~valid), Plan(window, rows, store=spans(*[(0, 0)] * 3), reuse=spans(*everything))
    )
    computed = torch.from_numpy(window.mask(LENGTH)) & valid
    torch.testing.assert_close(part[computed], whole[computed], atol=1e-12, rtol=0)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_padding_changes_nothing(dialect: str) -> None:
    model, (ids, valid) = like_the_toy(dialect, 2), padded()
    none = spans(*[(0, 0)] * 3)
    found = model.open(3, LENGTH).logits(
        ids, Layout(valid, ~valid), Plan(*(spans(*[(0, LENGTH)] * 3),) * 2, store=none, reuse=none)
    )
    for row in range(3):
        alone, length = ids[row : row + 1, valid[row]], int(valid[row].sum())
        every, nothing = spans((0, length)), spans((0, 0))
        plan = Plan(every, every, store=nothing, reuse=nothing)
        nothing_given = torch.zeros_like(alone, dtype=torch.bool)
        logits = model.open(1, length).logits(alone, Layout.without_padding(nothing_given), plan)
        torch.testing.assert_close(found[row, valid[row]], logits[0], atol=1e-12, rtol=0)


def test_keys_are_written_in_place_and_only_with_a_cache_policy() -> None:
    model = like_the_toy("llada", 1)
    canvas = Canvas.after_prompt([[1, 2, 3], [4]], length=12, mask_id=MASK)
    plain = State(model)
    plain.add(canvas, presets.confidence())
    advance(plain)
    assert isinstance(plain.session, TransformerSession) and plain.session.cache.buffers == [[], [], []]
    state = State(model)
    state.add(canvas, presets.semi_ar(blocks=3, cache="dual"))
    places = set()
    while not state.all_finished:
        advance(state)
        places.add(tuple(t.data_ptr() for pair in state.session.cache.buffers for t in pair))
    assert len(places) == 1
    heads, width = model.network.shape.key_heads, model.network.shape.head_width
    assert state.session.cache.buffers[0][0].shape == (2, heads, 15 + 1, width)


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # a CPU without units for it
@pytest.mark.parametrize(("dialect", "dtype"), covering(DIALECTS, ("float32", "bfloat16", "float16")))
def test_every_dtype_decodes(tmp_path: object, dialect: str, dtype: str) -> None:
    model = uncode.load(checkpoint(tmp_path, dialect, 1), dtype=dtype)  # type: ignore[arg-type]
    canvas = Canvas.after_prompt([[1, 2, 3], [4]], length=[12, 9], mask_id=model.mask_id)
    try:
        for cache in ("none", "prefix", "dual"):
            sampler = presets.fast_dllm(threshold=0.4, block_length=4, cache=cache)  # type: ignore[arg-type]
            trace = decode(model, canvas, sampler)
            assert not (trace.tokens == model.mask_id).any() and trace.logp[:, :9].isfinite().all()
    finally:
        torch.backends.mkldnn.set_flags(True)  # torch turns it off for good where it meets a number it has no units for


# -- guidance and likelihood ---------------------------------------------------------------------


@pytest.mark.parametrize(("dialect", "cache"), covering(DIALECTS, ("none", "prefix", "dual")))
def test_guidance_of_scale_0_is_the_model(dialect: str, cache: str) -> None:
    model = like_the_toy(dialect, 3)
    canvas = Canvas.after_prompt([[1, 2, 3], [4], [5, 6]], length=[12, 9, 10], mask_id=MASK)
    sampler = presets.fast_dllm(threshold=0.4, block_length=4, cache=cache)  # type: ignore[arg-type]
    plain, guided = decode(model, canvas, sampler), decode(Guided(model, 0.0), canvas, sampler)
    assert torch.equal(plain.tokens, guided.tokens)
    strong = decode(Guided(model, 3.0), canvas, sampler)
    assert not torch.equal(plain.tokens, strong.tokens) and strong.header["guidance"] == 3.0
    for row in range(3):
        one = Canvas.after_prompt([[[1, 2, 3], [4], [5, 6]][row]], length=[12, 9, 10][row], mask_id=MASK)
        alone = decode(Guided(model, 3.0), one, sampler).generated[0]
        assert torch.equal(strong.generated[row, : len(alone)], alone)


def test_guidance_masks_given_tokens_and_nothing_else() -> None:
    """What the decoder wrote itself stays in the second row; anchors and prompts do not."""
    seen: list[torch.Tensor] = []
    model = like_the_toy("llada", 3)
    original = model.open

    class Watched(Denoiser):
        mask_id, vocab_size, eos_ids, tokenizer = MASK, VOCAB, (EOS,), None
        device, dtype = model.device, model.dtype

        def open(self, rows: int, length: int) -> TransformerSession:
            session = original(rows, length)
            forward = session.logits

            def spy(ids: torch.Tensor, layout: Layout, plan: Plan) -> torch.Tensor:
                seen.append(ids.clone())
                return forward(ids, layout, plan)

            session.logits = spy  # type: ignore[method-assign]
            return session

    canvas = Canvas.after_prompt([[1, 2, 3]], length=6, mask_id=MASK).with_anchors({2: 7})
    decode(Guided(Watched(), 1.0), canvas, presets.confidence())
    assert seen[0].tolist()[1] == [MASK] * 9
    for ids in seen:
        assert ids[1, [0, 1, 2, 5]].tolist() == [MASK] * 4
        assert torch.equal(ids[0, [3, 4, 6, 7, 8]], ids[1, [3, 4, 6, 7, 8]])


@pytest.mark.parametrize("scale", [-1.0, math.inf, math.nan, "1"])
def test_an_invalid_guidance_scale_is_refused(scale: float) -> None:
    with pytest.raises(UncodeError, match="must be a number of 0 or more"):
        Guided(ToyDenoiser(0), scale)


def test_a_guided_model_has_every_fact_of_its_model() -> None:
    class Odd(Denoiser):
        """No fact is a default."""

        mask_id, vocab_size, eos_ids, tokenizer = MASK, VOCAB, (EOS,), object()
        device, dtype, about = torch.device("meta"), torch.float64, {"model": "odd"}
        frequency, released_table = FrequencyTable(torch.ones(VOCAB), "t"), "llada"
        samplers, frame = {"own": Path("own.toml")}, ((1,), (2,))
        parameters, context, is_bounded, sees_padding = 7, 64, True, False
        has_kv_cache, copies_kv_cache, graph_tokens, computes_in_parts = True, True, 8, True
        block_length, blocks_from_answer, slides_on_device = 4, True, True

    model = Odd()
    changed = {"graph_tokens": 4, "about": {"model": "odd", "guidance": 1.0}}
    changed |= {"copies_kv_cache": False, "slides_on_device": False}
    guided, facts = Guided(model, 1.0), [name for name in Denoiser.__annotations__ if not name.startswith("_")]
    plain = {name: getattr(Denoiser, name, None) for name in facts}
    assert all(getattr(model, name) != plain[name] for name in facts), "this test leaves out a fact"
    assert {name: getattr(guided, name) for name in facts} == {name: getattr(model, name) for name in facts} | changed


def test_guidance_of_guidance_is_refused() -> None:
    with pytest.raises(UncodeError, match="guided already"):
        Guided(Guided(ToyDenoiser(0), 1.0), 1.0)


PROMPT, ANSWER = [3, 1, 4], [15, 9, 2, 6]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_exact_likelihood_is_the_mean_over_all_orders(dialect: str) -> None:
    """Of a block-causal model, over those that fill one block after the other."""
    model, total = like_the_toy(dialect, 2), 0.0
    every, nothing = spans((0, 7)), spans((0, 0))
    origin = len(PROMPT) if model.blocks_from_answer else 0
    blocks = [(len(PROMPT) + place - origin) // (model.block_length or 7) for place in range(4)]
    prompt_alone = Layout.without_padding(torch.arange(7)[None] < len(PROMPT))
    orders = [order for order in itertools.permutations(range(4)) if [blocks[place] for place in order] == blocks]
    for order in orders:
        ids = torch.tensor([[*PROMPT, *[MASK] * 4]])
        for place in order:
            first, size = origin + blocks[place] * (model.block_length or 7), model.block_length or 7
            plan = Plan(every, every, store=nothing, reuse=nothing, block=spans((first, first + size)))
            logits = model.open(1, 7).logits(ids, prompt_alone, plan)
            total += float(logits[0, 3 + place].log_softmax(-1)[ANSWER[place]])
            ids[0, 3 + place] = ANSWER[place]
    exact = log_likelihood(model, PROMPT, ANSWER, method="exact")
    assert exact == pytest.approx(total / len(orders), abs=1e-9)


def test_the_estimate_goes_to_the_exact_value() -> None:
    model = like_the_toy("llada", 2)
    exact = log_likelihood(model, PROMPT, ANSWER, method="exact")
    estimates = [log_likelihood(model, PROMPT, ANSWER, samples=128, seed=seed) for seed in range(30)]
    spread = torch.tensor(estimates).std()
    assert 0 < spread < 0.1 * abs(exact)
    assert abs(sum(estimates) / 30 - exact) < 4 * float(spread) / 30**0.5
    assert estimates[0] == log_likelihood(model, PROMPT, ANSWER, samples=128, seed=0, batch_size=16)


def test_one_token_has_one_likelihood() -> None:
    model = like_the_toy("dream", 2)
    one = log_likelihood(model, PROMPT, [15], samples=1)
    assert one == pytest.approx(log_likelihood(model, PROMPT, [15], method="exact"), abs=1e-12)
    assert log_likelihood(model, [], [15, 3], method="exact") < 0


def test_guided_likelihood_hides_the_prompt_alone() -> None:
    model = like_the_toy("llada", 2)
    assert log_likelihood(Guided(model, 0.0), PROMPT, ANSWER, method="exact") == pytest.approx(
        log_likelihood(model, PROMPT, ANSWER, method="exact"), abs=1e-9
    )
    assert log_likelihood(Guided(model, 1.0), PROMPT, ANSWER) != log_likelihood(model, PROMPT, ANSWER)


@pytest.mark.parametrize(
    ("prompt", "answer", "settings", "message"),
    [
        (PROMPT, [], {}, "the answer is empty"),
        (PROMPT, [MASK], {}, "contains the mask token"),
        (PROMPT, [99], {}, "outside the vocabulary"),
        (PROMPT, ANSWER, {"samples": 0}, "at least 1"),
        (PROMPT, ANSWER, {"samples": 5.5}, "whole numbers"),
        ("add", "3", {}, "must be lists of token ids"),
        (PROMPT, ANSWER, {"method": "montecarlo"}, "'monte carlo' or 'exact'"),
        (PROMPT, ANSWER * 4, {"method": "exact"}, "can be masked in 65535 ways"),
    ],
)
def test_mistakes_are_one_sentence(prompt: list[int], answer: list[int], settings: dict, message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        log_likelihood(like_the_toy("llada", 2), prompt, answer, **settings)
