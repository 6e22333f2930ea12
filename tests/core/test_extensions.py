"""Extensions that are one class: a cache that slides, pieces that know what the decoder wrote, rows with constraints of
their own in one lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.toy import MASK, ToyDenoiser
from uncode import Canvas, Policy, Sampler, Stalled, decode, presets, steps
from uncode.core.pieces.blocks import Blocks
from uncode.core.pieces.branches import LeastUncertainNext
from uncode.core.pieces.cache import CachePolicy, Place, Plan
from uncode.core.pieces.propose import Greedy
from uncode.core.pieces.score import Confidence, ExponentialPosition, Score
from uncode.core.pieces.select import Threshold, TopK
from uncode.core.stepper.advance import advance
from uncode.core.stepper.state import State
from uncode.core.view import View
from uncode.testing import check_piece
from uncode.testing.hash_model import HashDenoiser


@dataclass(frozen=True)
class FromFirstMask(CachePolicy):
    """Recomputes everything up to a few columns behind the first mask."""

    sees_span: ClassVar[bool] = False
    follows_masks: ClassVar[bool] = True
    columns: int = 4

    def __call__(self, place: Place) -> Plan:
        nothing = place.span(0, 0)
        window = place.span(0, np.minimum(place.first_mask + self.columns, place.length))
        return Plan(window=window, wanted=place.wanted, store=nothing, reuse=nothing)


def canvas_of(*lengths: int) -> Canvas:
    prompts = [[1 + row] * (1 + row) for row in range(len(lengths))]
    return Canvas.after_prompt(prompts, length=list(lengths), mask_id=31)


@pytest.mark.parametrize("select", [TopK(), Threshold(0.3)])
@pytest.mark.parametrize("blocks", [Blocks(), Blocks(length=6)])
def test_only_what_was_computed_is_written(select: Any, blocks: Blocks) -> None:
    """The model's logits are NaN elsewhere. Committed tokens lie near the first mask, though the block is wide."""
    model, sampler = HashDenoiser(), Sampler(Policy(Confidence(), select, blocks), cache=FromFirstMask())
    check_piece(sampler)
    canvas = canvas_of(17, 9)
    run, tokens = steps(model, canvas, sampler), canvas.tokens.clone()
    for step in run:
        for at, row in enumerate(step.rows.tolist()):
            first = int((tokens[row] == MASK).int().argmax())
            wrote = canvas.start + step.offsets.expand_as(step.committed)[at][step.committed[at]]
            assert bool(((wrote >= first) & (wrote < first + 4)).all())
            tokens[row] = step.tokens[at]
    for row, length in enumerate((17, 9)):
        alone = decode(model, Canvas.after_prompt([[1 + row] * (1 + row)], length=length, mask_id=31), sampler)
        assert alone.generated[0].tolist() == run.trace().generated[row, :length].tolist()


@dataclass(frozen=True)
class StaysAtTheStart(FromFirstMask):
    """Its window stays where the block starts, however wide that is."""

    follows_masks: ClassVar[bool] = False

    def __call__(self, place: Place) -> Plan:
        return super().__call__(replace(place, first_mask=place.block.start))


def test_a_window_that_leaves_all_masks_out_is_named() -> None:
    with pytest.raises(Stalled, match="StaysAtTheStart computed none of the masks of its open block"):
        decode(HashDenoiser(), canvas_of(9), Sampler(Policy(Confidence()), cache=StaysAtTheStart()))


def test_the_first_mask_is_among_the_facts_of_a_sync() -> None:
    state, sampler = State(HashDenoiser()), Sampler(Policy(Confidence(), Threshold(0.5), Blocks(length=5)))
    state.add(canvas_of(16, 7).with_anchors([{0: 3, 5: 4}, {1: 2}]), sampler)
    while not state.all_finished:
        state.open_blocks()
        for row in np.flatnonzero(~state.rows.finished):
            first = int((state.batch.generated[row] == MASK).int().argmax())
            assert state.rows.first_mask[row] == first
        advance(state)


@dataclass(frozen=True)
class CountsOwn(Score):
    """Later, the more of the block the decoder has written."""

    def __call__(self, view: View) -> Tensor:
        return view.belief.logp - view.own.sum(-1, keepdim=True)


@pytest.mark.parametrize("beside", [presets.confidence(), presets.remdm(block_length=6, start=0.5)])
def test_every_piece_sees_what_the_decoder_wrote(beside: Sampler) -> None:
    check_piece(CountsOwn())
    canvas = Canvas.after_prompt([[1, 2], [3]], length=[8, 8], mask_id=MASK).with_anchors({2: 5})
    run = steps(ToyDenoiser(1), canvas, [Sampler(Policy(CountsOwn())), beside])
    for count, step in zip(range(6), run, strict=False):
        found, at = step.decision.terms[0][0] - step.decision.belief.logp[0], step.committed[0].nonzero()
        assert len(at) == 1 and round(float(found[at[0]])) == -count


@dataclass(frozen=True)
class Allow(Greedy):
    """The most likely of the row's own `tokens`, and in probes too: the simplest constraint."""

    per_row: ClassVar[tuple[str, ...]] = ("tokens",)
    _barred: ClassVar[Tensor | None] = None
    seen: ClassVar[list[tuple[int, ...]]] = []

    tokens: tuple[int, ...] = ()

    def for_rows(self, rows: Sequence[Self], facts: Any) -> Self:
        barred = torch.ones(len(rows), 1, facts.vocab_size, dtype=torch.bool, device=facts.device)
        for row, piece in enumerate(rows):
            barred[row, 0, list(piece.tokens)] = False
        return self.holding(_barred=barred)

    def without_banned(self, logits: Tensor, view: View) -> Tensor:
        assert self._barred is not None
        self.seen.append(tuple(view.tokens.shape))
        return logits.masked_fill(self._barred, -torch.inf)


@pytest.mark.parametrize("select", [TopK(), LeastUncertainNext(candidates=3)])
def test_rows_with_constraints_of_their_own_share_a_lane(select: Any) -> None:
    policy = Policy(Confidence() + ExponentialPosition(0.1), select, Blocks(length=5))
    samplers = [Sampler(policy, Allow(tokens=tokens)) for tokens in [(3, 4), (5,), (6, 7, 8), (5,)]]
    lengths = [7, 12, 9, 10]
    run = steps(ToyDenoiser(2), canvas_of(*lengths), samplers)
    Allow.seen.clear()
    next(run)
    assert len(run.state.lanes) == 1
    assert Allow.seen[0] == (4, 5) and all(shape == (4, 12) for shape in Allow.seen[1:])
    assert (len(Allow.seen) > 1) == bool(select.max_probes)
    trace = run.trace()
    assert list(trace.samplers) == samplers
    for row, sampler in enumerate(samplers):
        canvas = Canvas.after_prompt([[1 + row] * (1 + row)], length=lengths[row], mask_id=MASK)
        alone = decode(ToyDenoiser(2), canvas, sampler, row).generated[0].tolist()
        assert alone == trace.generated[row, : lengths[row]].tolist()
        assert set(alone) <= set(sampler.propose.tokens) if isinstance(sampler.propose, Allow) else False
    other = [*samplers, Sampler(policy, Allow(("eos",), (3,)))]
    assert len(steps(ToyDenoiser(2), canvas_of(*lengths, 5), other).state.lanes) == 2
