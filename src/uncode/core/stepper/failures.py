"""Why rows cannot go on: they stall, they use up their forwards, or their logits are no numbers."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import BadLogits, RowError, Stalled
from ..logits_check import bad_logits, find_bad_logits
from ..support.reprs import counted
from ..trace.row_record import RowRecord
from .lanes.lane import Lane
from .record import Decision
from .state import State

Failures = dict[int, RowError]
"""Why rows cannot go on, by their index in the batch."""


def bad_rows(state: State, logits: Tensor, eligible: Tensor, suspects: NDArray[np.bool_]) -> Failures:
    """Errors that name the model, for rows whose logits `[W, V]` give no token a probability."""
    failed: Failures = {}
    for row in np.flatnonzero(suspects):
        columns = eligible[row].nonzero()[:, 0]
        found = find_bad_logits(logits[row, columns]) if len(columns) else None
        if found is not None:
            at, kind = found
            offsets = state.blocks.window.offsets.expand(len(eligible), -1)
            failed[int(row)] = _bad_logits(state, int(row), int(offsets[row, columns[at]]), kind)
    return failed


def _bad_logits(state: State, row: int, offset: int, kind: str) -> BadLogits:
    """The error for a row of the batch and an offset; positions count from the row's first valid token."""
    first = int(state.batch.valid[row].long().argmax())
    name = int(state.rows.ids[row])
    where = f" at position {state.batch.start + offset - first} of row {name}"
    return bad_logits(state.denoiser, kind, where, name)


def check_beliefs(state: State, row: int, found: RowRecord) -> None:
    """Raise if a finished row has a token without a probability: bad logits after a block's first step."""
    wrong = (found.commit_step >= 0) & found.entropy.isnan()
    if bool(wrong.any()) and not found.sampler.propose.ban:  # a ban of all tokens leaves none either
        raise _bad_logits(state, row, int(wrong.long().argmax()), "NaN or infinite")  # the logits are gone


def over_limit(state: State, logits: Tensor, eligible: Tensor) -> Failures:
    """Errors for rows that have used up their forwards. They name the model if its logits are the reason."""
    rows = state.rows
    over = (state.clock - rows.joined_at_step >= rows.limit) & ~rows.finished
    failed: Failures = {}
    for row in np.flatnonzero(over).tolist():
        spec = state.samplers[row]
        slow = spec.policy.remask if spec.policy.remask.erases else spec.policy.select
        limit = counted(int(rows.limit[row]), "forward")
        failed[row] = Stalled(
            f"row {int(rows.ids[row])} is not finished after {limit}, the limit of sampler "
            f"'{spec.name}' ({type(slow).__name__}): raise the limit or change it.",
            int(rows.ids[row]),
        )
    return failed | bad_rows(state, state.lookahead.latest(logits), eligible, over)


def stalled(state: State, decision: Decision, stuck: NDArray[np.bool_]) -> Failures:
    """Errors for rows that stand still although their selector may not wait."""
    failed: Failures = {}
    for row in np.flatnonzero(stuck).tolist():
        lane = state.lanes[int(state.rows.lane[row])]
        if not lane.sampler.policy.select.may_wait:
            failed[row] = Stalled(
                f"row {int(state.rows.ids[row])} cannot go on: {_culprit(state, lane, decision, row)} "
                f"and masks are left; change it in sampler '{lane.spec.name}'.",
                int(state.rows.ids[row]),
            )
    return failed


def _culprit(state: State, lane: Lane, decision: Decision, row: int) -> str:
    """The piece that lets a row stand still, and what it did."""
    policy = lane.sampler.policy
    constrained = state.constraints.given[row] is not None
    if constrained and bool((decision.belief.log_sumexp[row].isnan() & decision.eligible[row]).any()):
        return "no token that its constraint allows has a probability"
    if not bool(decision.eligible[row].any()):
        return f"{type(lane.sampler.cache).__name__} computed none of the masks of its open block"
    terms = zip(policy.score.terms, decision.terms, strict=False)
    rows = decision.score
    barring = [type(term).__name__ for term, v in terms if not bool((v.expand_as(rows)[row] > -torch.inf).all())]
    if barring and not bool((decision.score[row] > -torch.inf).any()):
        return f"{barring[0]} scored every open position -inf or NaN"
    return f"{type(policy.select).__name__} selected nothing"
