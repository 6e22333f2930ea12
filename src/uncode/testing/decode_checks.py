"""Whole decodes with a piece: alone, in a batch that rows join and leave, and twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch

from ..core.canvas import Canvas
from ..core.pieces.blocks import Blocks
from ..core.pieces.cache import DualCache
from ..core.pieces.policy import Policy, Sampler
from ..core.pieces.score import Confidence
from ..core.pieces.select import Threshold
from ..core.stepper.advance import advance
from ..core.stepper.decode import Steps
from ..core.stepper.state import State
from ..core.trace.row_record import RowRecord
from .contract import Check, expect
from .hash_model import HashDenoiser

_PROMPTS, _LENGTHS, _SEEDS = ([5, 6, 7], [8], [9, 10]), (13, 6, 9), (3, 4, 5)
_NEIGHBOUR = Sampler(Policy(Confidence(), Threshold(0.6), Blocks(length=11)), cache=DualCache())
"""Decodes beside the rows: wider blocks, another sampler, and it leaves in the middle."""


def decode_checks(make: Callable[[], Sampler], model: HashDenoiser) -> Iterator[Check]:
    """The promises of a sampler. `make` builds it from the piece that is checked."""

    def canvas(rows: list[int]) -> Canvas:
        lengths = [_LENGTHS[row] for row in rows]
        whole = Canvas.after_prompt([_PROMPTS[row] for row in rows], length=lengths, mask_id=model.mask_id)
        return whole.with_anchors({3: 2})

    def fills_every_mask() -> None:
        """It fills every mask, and twice alike"""
        sampler, rows = make(), [0, 1, 2]
        first, second = (Steps(model, canvas(rows), sampler, list(_SEEDS)).trace() for _ in range(2))
        expect(torch.equal(first.tokens, second.tokens), f"{_name(sampler)} writes other tokens the second time.")

    def is_the_same_in_a_batch() -> None:
        """A row is the same alone and in a batch that rows join and leave"""
        sampler = make()
        together = _busy_decode(model, sampler, canvas)
        for row in range(len(_LENGTHS)):
            alone = Steps(model, canvas([row]), sampler, [_SEEDS[row]]).trace()
            record, length = together[row], _LENGTHS[row]
            start = len(record.tokens) - len(record.commit_step)
            tokens = torch.equal(record.tokens[start : start + length], alone.generated[0])
            steps = torch.equal(record.commit_step[:length], alone.commit_step[0])
            expect(
                tokens and steps,
                f"with {_name(sampler)} row {row} is decoded otherwise alone than in a batch that rows join and leave.",
            )

    def knows_its_fewest_steps() -> None:
        """A block is filled no sooner than min_steps says"""
        select, masked, one = make().policy.select, np.array([[12]]), Canvas.after_prompt([[1]], 12, model.mask_id)
        trace = Steps(model, one, Sampler(Policy(Confidence(), select))).trace()
        least = int(select.min_steps(masked[:, 0], select.shares(masked)[:, 0])[0])
        filled, name = int(trace.commit_step.max()) + 1, type(select).__name__
        expect(filled >= least, f"{name}.min_steps says {least} for a block that it fills in {filled} steps.")

    yield from (fills_every_mask, is_the_same_in_a_batch, knows_its_fewest_steps)


def _busy_decode(model: HashDenoiser, sampler: Sampler, canvas: Callable[[list[int]], Canvas]) -> dict[int, RowRecord]:
    """Row 0 starts beside the neighbour; the others join later; each row leaves when it has finished."""
    state, found, names = State(model), dict[int, RowRecord](), dict[int, int]()
    beside = Canvas.after_prompt([[1, 2, 3, 4]], 11, model.mask_id)
    state.add(beside, _NEIGHBOUR, 77)
    waiting = [0, 1, 2]
    while waiting or len(state.rows):
        if waiting and (state.clock % 2 == 0 or not len(state.rows)):
            row = waiting.pop(0)
            names[state.add(canvas([row]), sampler, [_SEEDS[row]])[0]] = row
        advance(state)
        for at in np.flatnonzero(state.rows.finished):
            row_id = int(state.rows.ids[at])
            if row_id in names:
                found[names[row_id]] = state.read(int(at))
        if state.any_finished:
            state.keep(np.flatnonzero(~state.rows.finished))
    return found


def _name(sampler: Sampler) -> str:
    pieces = [type(part).__name__ for part in (*sampler.policy.parts, sampler.propose, sampler.cache)]
    return " + ".join(pieces)
