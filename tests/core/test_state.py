"""Rows that join, leave and advance on their own."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Literal

import numpy as np
import pytest
import torch

from tests.checkpoints import like_the_toy
from tests.toy import MASK, ToyDenoiser
from uncode import Canvas, Guided, Policy, Sampler, UncodeError, decode, presets
from uncode.core.denoiser import Denoiser
from uncode.core.pieces.blocks import Blocks
from uncode.core.pieces.cache import DualCache, PrefixCache
from uncode.core.pieces.score import Confidence, ExponentialPosition
from uncode.core.pieces.select import Even, Threshold, TopK, split_steps
from uncode.core.pieces.stop import AfterEos
from uncode.core.stepper.advance import advance
from uncode.core.stepper.state import State
from uncode.core.trace.row_record import RowRecord

SAMPLERS = [
    presets.confidence(steps=6),
    presets.fast_dllm(threshold=0.6, block_length=5, cache="dual"),
    presets.fast_dllm(threshold=0.6, block_length=4, cache="prefix"),
    presets.remdm(block_length=6, start=0.5),
    presets.uniform(),
]
PROMPTS = [[1, 2, 3], [4], [5, 6, 7, 8, 9], [2, 2], [9, 8]]
LENGTHS = [10, 12, 9, 12, 4]


MODELS: dict[str, Callable[[], Denoiser]] = {
    "toy": lambda: ToyDenoiser(3),
    "llada": lambda: like_the_toy("llada", 3),
    "dream": lambda: like_the_toy("dream", 4),
    "guided": lambda: Guided(like_the_toy("llada", 3), 0.7),
}


def alone(model: Denoiser, row: int) -> list[int]:
    canvas = Canvas.after_prompt([PROMPTS[row]], length=LENGTHS[row], mask_id=MASK)
    return decode(model, canvas, SAMPLERS[row], [row]).generated[0].tolist()


@pytest.mark.parametrize("every", [1, pytest.param(2, marks=pytest.mark.slow), 3])
@pytest.mark.parametrize("model", MODELS)
def test_rows_join_and_leave_between_steps(every: int, model: str) -> None:
    """As a server does it: a new row every few steps, finished rows dropped at once or kept a while.

    Every second step under `make verify`.
    """
    state, found, clock = State(MODELS[model]()), {}, 0
    waiting = list(range(5))
    names: dict[int, int] = {}
    while waiting or len(state.rows):
        if waiting and clock % every == 0:
            row = waiting.pop(0)
            canvas = Canvas.after_prompt([PROMPTS[row]], length=LENGTHS[row], mask_id=MASK)
            names[state.add(canvas, SAMPLERS[row], [row])[0]] = row
        if not state.rows.finished.all():
            advance(state)
        clock += 1
        done = np.flatnonzero(state.rows.finished)
        if len(done) > 1 or (not waiting and len(done)):
            for index in done:
                row = names[int(state.rows.ids[index])]
                read = state.read(int(index))
                found[row] = read.tokens[state.batch.start : state.batch.start + LENGTHS[row]].tolist()
            state.keep(np.flatnonzero(~state.rows.finished))
    assert found == {row: alone(MODELS[model](), row) for row in range(5)}


def test_a_finished_row_is_frozen() -> None:
    state = State(ToyDenoiser(0))
    canvas = Canvas.after_prompt([[1], [2]], length=[3, 8], mask_id=MASK)
    state.add(canvas, presets.confidence())
    for _ in range(8):
        advance(state)
    assert state.record.steps[:, 0].tolist() == [3, 8]
    assert state.read(0).mean_entropy.shape == (3,)
    assert not state.read(0).mean_entropy.isnan().any()


def test_a_finished_row_stays_as_it_is_beside_a_remasker() -> None:
    state = State(ToyDenoiser(0), drafts=True)
    canvas = Canvas.after_prompt([[1, 2], [3, 4]], length=[9, 30], mask_id=MASK)
    state.add(canvas, [presets.remdm(block_length=16), presets.confidence()])
    ended = None
    while not state.all_finished:
        advance(state)
        if state.rows.finished[0]:
            ended = state.batch.tokens[0].clone() if ended is None else ended
            assert torch.equal(state.batch.tokens[0], ended)
    assert len(state.read(0).drafts) == state.read(0).forwards
    with pytest.raises(UncodeError, match="no unfinished row"):
        advance(state)
    with pytest.raises(UncodeError, match="no unfinished row"):
        advance(State(ToyDenoiser(0)))


def test_a_row_that_cannot_join_leaves_the_others_alone() -> None:
    state, canvas = State(ToyDenoiser(0)), Canvas.after_prompt([[1, 2]], length=9, mask_id=MASK)
    state.add(canvas, presets.confidence())
    advance(state)
    two = Canvas.after_prompt([[1], [2]], length=5, mask_id=MASK)
    with pytest.raises(UncodeError, match="covers 5 tokens"):
        state.add(two, [presets.entropy(), presets.uncode(frequency=torch.ones(5))])
    while not state.all_finished:
        advance(state)
    assert state.read(0).forwards == 9


@pytest.mark.parametrize("masks", [1, 2, 8, 9, 12, 16, 20, 31, 32])
def test_remdm_takes_back_whatever_the_length(masks: int) -> None:
    canvas = Canvas.after_prompt([[1, 2]], length=masks, mask_id=MASK)
    trace = decode(ToyDenoiser(0), canvas, presets.remdm(steps=8, block_length=32))
    share = min(8, masks)
    erased = sum(token < 0 for _, _, token in trace.events[0])
    assert erased == (share if share > 1 else 0)
    assert int(trace.committed.sum()) == masks + erased
    assert len(trace) == (2 * share if share > 1 else 1)


def test_a_state_can_be_filled_again() -> None:
    state = State(ToyDenoiser(3))
    for row in (0, 1):
        canvas = Canvas.after_prompt([PROMPTS[row]], length=LENGTHS[row], mask_id=MASK)
        state.add(canvas, SAMPLERS[row], [row])
        while not state.rows.finished.all():
            advance(state)
        assert state.read(0).tokens[state.batch.start :].tolist() == alone(ToyDenoiser(3), row)
        state.keep(np.zeros(0, dtype=np.int64))


def test_rows_with_different_rates_share_a_batch() -> None:
    canvas = Canvas.after_prompt([[1, 2]] * 8, length=12, mask_id=MASK)
    samplers = [presets.uncode(informativeness=False, rate=rate / 10) for rate in range(8)]
    batch = decode(ToyDenoiser(5), canvas, samplers, seed=[0] * 8)
    for row, sampler in enumerate(samplers):
        one = Canvas.after_prompt([[1, 2]], length=12, mask_id=MASK)
        assert batch.commit_step[row].tolist() == decode(ToyDenoiser(5), one, sampler).commit_step[0].tolist()


def test_blocks_are_filled_in_order_and_share_the_steps() -> None:
    canvas = Canvas.after_prompt([[1]], length=10, mask_id=MASK)
    trace = decode(ToyDenoiser(1), canvas, Sampler(Policy(Confidence(), TopK(Even(5)), Blocks(count=3))))
    steps = trace.commit_step[0]
    assert len(trace) == 5
    assert steps[:4].max() < steps[4:8].min() <= steps[4:8].max() < steps[8:].min()
    assert trace.committed[0].tolist() == [2, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("samplers", "trips"),
    [
        ([presets.confidence()], 0),
        ([presets.confidence().stopping(AfterEos())], 1),
        ([presets.fast_dllm(), presets.confidence().stopping(AfterEos())], 1),
    ],
)
def test_a_step_syncs_at_most_once(samplers: list[Sampler], trips: int, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State(ToyDenoiser(3, boost=-50.0))
    state.add(Canvas.after_prompt([[1, 2]] * len(samplers), 40, MASK), samplers)
    for _ in range(3):
        advance(state)
    seen = list[str]()
    for name in ("cpu", "numpy", "item", "tolist", "__bool__", "__int__", "__float__", "nonzero"):
        real = getattr(torch.Tensor, name)

        def watched(
            tensor: torch.Tensor, *given: object, name: str = name, real: Callable[..., object] = real
        ) -> object:
            seen.append(name)
            return real(tensor, *given)

        monkeypatch.setattr(torch.Tensor, name, watched)
    step = advance(state)
    monkeypatch.undo()
    assert len(seen) == trips and step.finished == ()


@pytest.mark.parametrize("cache", ["none", "dual"])
@pytest.mark.parametrize("boost", [-50.0, 3.0])  # an EOS token that never comes, and one that does
def test_a_look_ahead_forward_changes_no_token(cache: Literal["none", "dual"], boost: float) -> None:
    sampler = presets.semi_ar(blocks=3, cache=cache).stopping(AfterEos())
    found = []
    for is_async in (False, True):
        model = ToyDenoiser(3, boost=boost)
        state = State(model)
        state.lookahead.is_async = is_async
        state.add(Canvas.after_prompt([[1, 2]], 30, MASK), sampler)
        steps = 0
        while not state.all_finished:
            advance(state)
            steps += 1
        found.append((state.read(0), steps, model.forwards))
    (plain, steps, asked), (ahead, steps_ahead, asked_ahead) = found
    assert plain.tokens.tolist() == ahead.tokens.tolist() and steps == steps_ahead == asked
    for name in ("commit_step", "logp", "window", "forwards"):
        one, other = (torch.as_tensor(getattr(each, name)).nan_to_num() for each in (plain, ahead))
        assert torch.equal(one, other)
    ended = boost > 0
    assert (steps < 30) == ended and asked_ahead == steps + ended  # the one that ran in vain


@pytest.mark.parametrize("boost", [-50.0, 3.0])
@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (3, 4, 5))])
def test_rows_that_join_or_leave_discard_look_ahead_logits(seed: int, boost: float) -> None:
    """While there is one row its forward runs ahead of looks; then another joins, or it leaves.

    Three seeds; six under `make verify`.
    """
    kinds = [presets.semi_ar(blocks=3, cache="dual"), presets.confidence(), presets.semi_ar(blocks=2, cache="prefix")]
    found = []
    for is_async in (False, True):
        random, state = Random(seed), State(ToyDenoiser(3 + seed % 3, boost=boost))
        state.lookahead.is_async = is_async
        rows: dict[int, RowRecord] = {}
        waiting = 4
        while waiting or len(state.rows):
            if waiting and (not len(state.rows) or random.random() < 0.1):
                canvas = Canvas.after_prompt([[1] * random.randint(1, 5)], random.randint(5, 24), MASK)
                state.add(canvas, random.choice(kinds).stopping(AfterEos()), random.randint(0, 99))
                waiting -= 1
            advance(state)
            rows |= {int(state.rows.ids[r]): state.read(int(r)) for r in np.flatnonzero(state.rows.finished)}
            if state.any_finished:
                state.keep(np.flatnonzero(~state.rows.finished))
        found.append(rows)
    plain, ahead = found
    assert plain.keys() == ahead.keys() == {0, 1, 2, 3}
    for row, known in plain.items():
        for name in ("tokens", "commit_step", "logp", "window", "forwards"):
            one, other = (torch.as_tensor(getattr(each, name)).nan_to_num() for each in (known, ahead[row]))
            assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("total", "masked", "shares"),
    [
        (20, [32] * 8, [3, 3, 3, 3, 2, 2, 2, 2]),
        (256, [32] * 8, [32] * 8),
        (None, [4, 0, 2], [4, 0, 2]),
        (5, [4, 4, 2], [2, 2, 1]),
        (100, [3, 1], [3, 1]),
        (1, [3, 0, 3], [1, 0, 1]),
        (5, [1, 1, 1, 20], [1, 1, 1, 2]),
    ],
)
def test_steps_are_split_by_masks(total: int | None, masked: list[int], shares: list[int]) -> None:
    assert split_steps(total, np.array([masked]))[0].tolist() == shares


def test_more_steps_than_masks_are_not_empty_forwards() -> None:
    canvas = Canvas.after_prompt([[1]], length=5, mask_id=MASK)
    model = ToyDenoiser(1)
    assert len(decode(model, canvas, presets.confidence(steps=99))) == model.forwards == 5


def test_windows_are_recorded() -> None:
    canvas = Canvas.after_prompt([[1, 2]], length=8, mask_id=MASK)
    for cache, later in ((PrefixCache(), [6, 10]), (DualCache(), [6, 10])):
        policy = Policy(Confidence(), TopK(), Blocks(length=4))
        trace = decode(ToyDenoiser(1), canvas, Sampler(policy, cache=cache))
        assert trace.window[0, 0].tolist() == [0, 10]
        assert trace.window[0, 4].tolist() == [0, 10], "the second block opens with a full forward"
        assert trace.window[0, 5].tolist() == later
    assert decode(ToyDenoiser(1), canvas, presets.confidence()).window[0].tolist() == [[0, 10]] * 8
    wide = Canvas.after_prompt([[1, 2], [3, 4, 5, 6]], length=[8, 9], mask_id=MASK)
    batch = decode(ToyDenoiser(1), wide, Sampler(policy, cache=DualCache()))
    assert batch.window[0, :8].tolist() == trace.window[0].tolist(), "in the row's own positions"


def test_observing_the_span_sees_every_mask() -> None:
    canvas = Canvas.after_prompt([[1, 2]], length=8, mask_id=MASK)
    sampler = presets.semi_ar(blocks=2)
    seen = decode(ToyDenoiser(1), canvas, sampler, observe="span")
    narrow = decode(ToyDenoiser(1), canvas, sampler)
    assert torch.equal(seen.tokens, narrow.tokens)
    logits = ToyDenoiser(1).network(canvas.tokens)
    p = logits[:, 2:].softmax(-1)
    expected = torch.special.entr(p).sum(-1).mean()
    torch.testing.assert_close(seen.mean_entropy[0, 0], expected)
    torch.testing.assert_close(seen.sequence_entropy[0], seen.mean_entropy[0].mean())
    assert not torch.isclose(narrow.mean_entropy[0, 0], expected)
    with pytest.raises(UncodeError, match="observe='span'"):
        narrow.sequence_entropy


def test_the_span_cannot_be_observed_through_a_dual_cache() -> None:
    canvas = Canvas.after_prompt([[1, 2]], length=8, mask_id=MASK)
    sampler = presets.fast_dllm(block_length=4, cache="dual")
    with pytest.raises(UncodeError, match="DualCache"):
        decode(ToyDenoiser(1), canvas, sampler, observe="span")
    assert len(decode(ToyDenoiser(1), canvas, presets.fast_dllm(block_length=4, cache="prefix"), observe="span"))


def test_drafts_are_kept_on_request() -> None:
    canvas = Canvas.after_prompt([[1, 2]], length=6, mask_id=MASK)
    trace = decode(ToyDenoiser(1), canvas, presets.confidence(), drafts=True)
    assert len(trace.drafts[0]) == 6
    for step, draft in enumerate(trace.drafts[0]):
        here = trace.commit_step[0] == step
        assert torch.tensor(draft)[here].tolist() == trace.generated[0][here].tolist()
    assert decode(ToyDenoiser(1), canvas, presets.confidence()).drafts == ([],)


def test_the_record_holds_belief_runner_up_and_terms() -> None:
    canvas = Canvas.after_prompt([[1, 2]], length=40, mask_id=MASK)
    sampler = presets.uncode(informativeness=False, rate=0.1)
    model = ToyDenoiser(2)
    trace = decode(model, canvas, sampler)
    tokens = canvas.tokens.clone()
    for step in range(40):
        logp = model.network(tokens)[0, 2:].log_softmax(-1)
        best, token = logp.max(-1)
        score = (best - 0.1 * torch.arange(40)).masked_fill(tokens[0, 2:] != MASK, -torch.inf)
        at, *others = score.argsort(descending=True, stable=True).tolist()
        assert trace.commit_step[0, at] == step and trace.generated[0, at] == token[at]
        torch.testing.assert_close(trace.logp[0, at], best[at])
        torch.testing.assert_close(trace.score[0, at], score[at])
        torch.testing.assert_close(trace.terms[0]["ExponentialPosition"][at], -0.1 * torch.tensor(at).double())
        torch.testing.assert_close(trace.entropy[0, at], torch.special.entr(logp[at].exp()).sum())
        runner_up = trace.runner_up[0, at]
        assert runner_up == others[0] if step < 39 else bool(runner_up.isnan())
        tokens[0, 2 + at] = token[at]


def test_thresholds_of_confidence_and_of_the_score() -> None:
    canvas = Canvas.after_prompt([[1, 2]], length=16, mask_id=MASK)
    trace = decode(ToyDenoiser(2), canvas, Sampler(Policy(Confidence(), Threshold(0.5))))
    for step in range(len(trace)):
        p = trace.logp[0][trace.commit_step[0] == step].exp()
        assert len(p) == 1 or bool((p >= 0.5).all())
    assert len(trace) < 16


def test_drafts_line_up_with_offsets_when_there_are_blocks() -> None:
    canvas = Canvas.after_prompt([[1, 2], [3]], length=[8, 6], mask_id=MASK)
    trace = decode(ToyDenoiser(1), canvas, presets.semi_ar(blocks=2), drafts=True)
    for row, length in ((0, 8), (1, 6)):
        for step, draft in enumerate(trace.drafts[row]):
            here = trace.commit_step[row] == step
            assert torch.tensor(draft)[here].tolist() == trace.generated[row][here].tolist()
            assert -1 in draft[:length], "the other block was not looked at"


def test_score_terms_of_one_class_have_different_names() -> None:
    canvas = Canvas.after_prompt([[1, 2]], length=8, mask_id=MASK)
    sampler = Sampler(Policy(ExponentialPosition(0.1) + Confidence() + ExponentialPosition(0.2)))
    trace = decode(ToyDenoiser(1), canvas, sampler)
    assert list(trace.terms[0]) == ["ExponentialPosition", "Confidence", "ExponentialPosition 2"]
    torch.testing.assert_close(sum(trace.terms[0].values()), trace.score[0])


def test_any_seed_of_64_bits() -> None:
    canvas = Canvas.after_prompt([[1, 2]], length=8, mask_id=MASK)
    orders = set()
    for seed in (-1, 0, 2**63 - 1, -(2**63)):
        trace = decode(ToyDenoiser(1), canvas, presets.uniform(), seed)
        assert trace.seeds == (seed,)
        orders.add(tuple(trace.commit_step[0].tolist()))
    assert len(orders) == 4
    with pytest.raises(UncodeError, match="64 bits"):
        decode(ToyDenoiser(1), canvas, presets.uniform(), 2**63)
