"""The stepper: the only place that runs a network for decoding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..canvas import Canvas
from ..denoiser import Denoiser
from ..errors import Stalled, UncodeError
from ..logits_check import bad_logits, check_shape, find_bad_logits, mask_not_barred
from ..row_record import FILLED, OPEN, RowRecord
from ..support.arguments import checks_arguments
from ..support.arrays import Ints
from ..support.reprs import counted
from ..support.threads import at_most
from ..support.transfer import Download
from ..trace import Trace, header_of
from ..view import View
from .decide import Decision, Lane, decide
from .requests import DecodeOptions, Samplers, Seeds
from .state import State


@dataclass(slots=True)
class Step:
    """One forward and its effects. Tensors are views that are valid until the next step."""

    index: int
    """Forwards of the batch before this one."""
    rows: Ints
    """Ids of the rows in the batch, in its order."""
    tokens: Tensor
    """The whole canvas after the step, `[B, L]`."""
    offsets: Tensor
    """Offsets of the window's columns, `[1, W]` or `[B, W]`."""
    decision: Decision
    """What was written and erased in the window, with the belief and the score behind it."""
    finished: tuple[int, ...]
    """Ids of the rows that ended with this step."""

    def __repr__(self) -> str:
        ended = f", {len(self.finished)} finished" if self.finished else ""
        rows, written = counted(len(self.rows), "row"), int(self.committed.sum())
        return f"Step(index={self.index}, {rows}, {written} committed{ended})"

    @property
    def committed(self) -> Tensor:
        """Which columns of the window were written, `[B, W]`."""
        return self.decision.chosen


@torch.inference_mode()
def advance(state: State) -> Step:
    """One forward for all rows that are unfinished, and all that follows from it:

    1. Each row without an open block opens its next one and counts its masked positions.
    2. Ask the cache policies for a plan; run one forward over its window; take logits of the open window only. (On a
       GPU a single row's forward may have been launched at the end of the step before; see 8.)
    3. Propose a token everywhere; form the belief (float32; float64 logits keep float64).
    4. Eligible = masked and in the open block. Score (a sum of terms in float64); -inf elsewhere.
    5. Select; write. Remember with what belief each token was committed.
    6. Remask among the decoder's own tokens, this step's included; erase.
    7. A row with nothing written or erased whose selector may not wait: raise `Stalled`. Over the limit: the same.
       Logits that are NaN are the model's fault: the error names it. This is checked after a block's first step,
       when a row stalls, and in the finished trace, so that it costs no host sync of its own.
    8. Ask the stop rule; record; hand out the step. The host syncs only where a block can be filled or a row can end;
       see :mod:`.lookahead`.
    """
    if state.all_finished:
        raise UncodeError("there is no unfinished row to advance: add rows first.")
    with at_most(state.threads):
        return _advance(state)


def _advance(state: State) -> Step:
    if state.lookahead.must_open_blocks:
        state.open_blocks()
    _check_limit(state)
    logits = state.lookahead.take_logits()
    if logits is None:
        logits = _forward(state)
    view = view_of(state)
    seen = view.tokens == state.facts.mask_id if state.observe == "span" else view.eligible
    decision = decide(state.lanes, logits, view)
    _write(state, decision)
    state.record.reserve(state.clock + 1 - state.earliest_join)
    state.record.append(decision, seen, state.batch.unfinished)
    finished = _sync(state, decision, logits, view.eligible) if state.lookahead.count_step() else ()
    state.clock += 1
    return Step(
        index=state.clock - 1,
        rows=state.rows.ids,
        tokens=state.batch.tokens,
        offsets=view.offsets,
        decision=decision,
        finished=finished,
    )


def view_of(state: State) -> View:
    """What the pieces see at the next step, before a belief is formed."""
    blocks, here = state.blocks, state.blocks.tokens.read()
    return View(
        tokens=here,
        eligible=blocks.window.restrict(here == state.facts.mask_id),
        offsets=blocks.window.offsets,
        places=blocks.window.places,
        block_start=blocks.start,
        block_length=blocks.length,
        block_masked=blocks.masked,
        block_steps=blocks.steps,
        block_step=state.block_step,
        noise=state.noise(state.batch.seeds, state.record.forwards),
        span=state.batch.generated,
        span_length=blocks.span_length,
        logp_at_commit=state.record.logp_at_commit if state.revises else None,
        own=blocks.own if state.revises else None,
    )


def _forward(state: State) -> Tensor:
    """Logits of the open window."""
    plan = state.plan()
    logits = state.session.logits(state.batch.tokens, state.batch.layout, plan)
    if state.unchecked:
        _check_first_forward(state, logits, plan.wanted.width)
        state.unchecked = False
    return logits


def _check_first_forward(state: State, logits: Tensor, width: int) -> None:
    """Raise an error that names the model where a session's first logits break their contract."""
    check_shape(state.denoiser, logits, (len(state.rows), width, state.facts.vocab_size), state.batch.tokens.shape[1])
    eligible = view_of(state).eligible
    _check_logits(state, logits, eligible, ~state.rows.finished)
    if bool((logits[..., state.facts.mask_id][eligible] > -torch.inf).any()):
        raise mask_not_barred(state.denoiser)


def _write(state: State, decision: Decision) -> None:
    """Commit what was chosen, erase what was taken back."""
    if state.any_finished and decision.erased is not None:
        decision.erased = decision.erased & (state.batch.unfinished > 0)
    if state.any_finished and decision.edited is not None:
        decision.chosen = decision.chosen & ~(decision.edited & (state.batch.unfinished == 0))
    chosen, record = decision.chosen, state.record
    state.blocks.tokens.write(chosen, decision.belief.token)
    record.commit_step_in_window.write(chosen, record.forwards)
    if state.drafts:
        record.draft(state.blocks.window, decision.belief.token, ~state.rows.finished)
    if decision.revised:
        _record_events(state, decision)
    if decision.erased is not None:
        state.blocks.tokens.write(decision.erased, torch.full_like(record.forwards, state.facts.mask_id))
        record.commit_step_in_window.write(decision.erased, torch.full_like(record.forwards, OPEN))


def _record_events(state: State, decision: Decision) -> None:
    """Where a remasker or an editor runs, offsets are written more than once: keep every change, in order."""
    own, revising = state.record.forwards[:, 0].tolist(), state.revising
    offsets = state.blocks.window.offsets.expand(len(own), -1)
    for change, token in ((decision.chosen, decision.belief.token), (decision.erased, None)):
        for row, column in [] if change is None else change.nonzero().tolist():
            if not revising[row]:
                continue
            written = -1 if token is None else int(token[row, column])
            state.record.events[row].append((own[row], int(offsets[row, column]), written))


def _sync(state: State, decision: Decision, logits: Tensor, eligible: Tensor) -> tuple[int, ...]:
    """Ask the device which blocks are filled and which rows have ended; returns the ids of the latter.

    All that the host must know comes in one device-to-host copy.
    """
    state.flush_step_counts()
    done = _ask_stop_rules(state)
    left = state.blocks.window.restrict(state.blocks.tokens.read() == state.facts.mask_id).sum(-1)
    changed = decision.chosen.any(-1) if decision.erased is None else (decision.chosen | decision.erased).any(-1)
    facts = [left, changed, decision.pending_rows[:, 0], done]
    if (state.rows.block_step == 1).any():  # a block's first step
        facts.append((decision.belief.log_sumexp.isnan() & eligible).any(-1))
    copied = Download(torch.stack(facts))
    if state.may_run_ahead:
        state.lookahead.logits = _forward(state)
    found = copied()
    filled, unchanged, may_close = found[0] == 0, found[1] == 0, found[2] == 0
    stuck = ~filled & unchanged & ~state.rows.finished
    suspects = stuck | (found[4:] > 0).any(0)
    if suspects.any():
        next_logits = state.lookahead.logits
        _check_logits(state, logits if next_logits is None else next_logits, eligible, suspects)
    _check_progress(state, decision, stuck)
    return state.apply(filled & may_close, found[3] > 0)


def _check_logits(state: State, logits: Tensor, eligible: Tensor, suspects: NDArray[np.bool_]) -> None:
    """Raise an error that names the model where a row's logits `[W, V]` give no token a probability."""
    for row in np.flatnonzero(suspects):
        columns = eligible[row].nonzero()[:, 0]
        found = find_bad_logits(logits[row, columns]) if len(columns) else None
        if found is not None:
            at, kind = found
            offsets = state.blocks.window.offsets.expand(len(eligible), -1)
            raise _bad_logits(state, int(row), int(offsets[row, columns[at]]), kind)


def _bad_logits(state: State, row: int, offset: int, kind: str) -> UncodeError:
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


def _check_limit(state: State) -> None:
    """Raise :class:`Stalled` where a row has used up its forwards, or name the model if its logits are the reason."""
    rows = state.rows
    if state.clock < state.deadline:
        return
    over = np.flatnonzero((state.clock - rows.joined_at_step >= rows.limit) & ~rows.finished)
    if not len(over):
        return
    _check_logits(state, _forward(state), view_of(state).eligible, ~rows.finished)
    row = int(over[0])
    spec = state.spec_of(row)
    slow = spec.policy.remask if spec.policy.remask.erases else spec.policy.select
    raise Stalled(
        f"row {int(rows.ids[row])} is not finished after {int(rows.limit[row])} forwards, the limit of sampler "
        f"'{spec.name}' ({type(slow).__name__}): raise the limit or change it.",
        int(rows.ids[row]),
    )


def _ask_stop_rules(state: State) -> Tensor:
    """Fill the rest of the rows whose stop rule says so, without a forward; `[B]`: which have no mask left at all."""
    batch, span, mask_id = state.batch, state.batch.generated, state.facts.mask_id
    ended = torch.zeros_like(span[:, 0], dtype=torch.bool)
    for lane in state.lanes:
        if not lane.sampler.policy.stop.stops:
            continue
        rows = slice(None) if lane.rows is None else lane.rows
        here, own = span[rows], ~batch.given[rows, batch.start :]
        masked = here == mask_id
        fill = lane.sampler.policy.stop(here, masked, own)
        batch.tokens[rows, batch.start :] = torch.where(fill >= 0, fill, here)
        state.record.commit_step[rows] = torch.where(fill >= 0, FILLED, state.record.commit_step[rows])
        ended[rows] = ~(masked & (fill < 0)).any(-1)
    return ended


def _check_progress(state: State, decision: Decision, stuck: NDArray[np.bool_]) -> None:
    for row in np.flatnonzero(stuck):
        lane = state.lanes[int(state.rows.lane[row])]
        if not lane.sampler.policy.select.may_wait:
            raise Stalled(
                f"row {int(state.rows.ids[row])} cannot go on: {_culprit(lane, decision, int(row))} "
                f"and masks are left; change it in sampler '{lane.spec.name}'.",
                int(state.rows.ids[row]),
            )


def _culprit(lane: Lane, decision: Decision, row: int) -> str:
    """The piece that lets a row stand still, and what it did."""
    policy = lane.sampler.policy
    terms = zip(policy.score.terms, decision.terms, strict=False)
    rows = decision.score
    barring = [type(term).__name__ for term, v in terms if not bool((v.expand_as(rows)[row] > -torch.inf).all())]
    if barring and not bool((decision.score[row] > -torch.inf).any()):
        return f"{barring[0]} scored every open position -inf or NaN"
    return f"{type(policy.select).__name__} selected nothing"


OPTION_PARAMETERS = [p for p in signature(State).parameters.values() if p.name in DecodeOptions.__annotations__]
"""The options of `steps` and `decode` that :class:`State` takes."""


class Steps:
    """A decode in progress: iterate over it for its steps, then ask for its trace."""

    def __init__(self, state: State, canvas: Canvas) -> None:
        self.state, self._canvas = state, canvas
        self._rows: dict[int, RowRecord] = {}

    def __repr__(self) -> str:
        state = self.state
        return f"Steps({counted(len(state.rows), 'row')} in decoding, {counted(state.clock, 'forward')} so far)"

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        self._collect_finished()
        if not len(self.state.rows):
            raise StopIteration
        return advance(self.state)

    def _collect_finished(self) -> None:
        """Rows that have finished leave the batch."""
        state = self.state
        if state.any_finished:
            rows = np.flatnonzero(state.rows.finished)
            found = state.read_rows(rows)
            for at, row in enumerate(rows.tolist()):
                record = self._rows[int(state.rows.ids[row])] = found.record(at)
                check_beliefs(state, row, record)
            state.keep(np.flatnonzero(~state.rows.finished))

    def trace(self) -> Trace:
        """What happened, once every row has finished."""
        for _ in self:
            pass
        return Trace.of(
            self._canvas,
            [self._rows[row] for row in sorted(self._rows)],
            header_of(self.state.denoiser, self.state.observe),
        )


@checks_arguments(rest=OPTION_PARAMETERS)
def steps(
    denoiser: Denoiser, canvas: Canvas, sampler: Samplers, seed: Seeds = 0, **options: Unpack[DecodeOptions]
) -> Steps:
    """The decode as an iterator of steps, one forward each; see :func:`decode`."""
    state = State(denoiser, **options)
    state.add(canvas, sampler, seed)
    return Steps(state, canvas)


@checks_arguments(rest=OPTION_PARAMETERS)
def decode(
    denoiser: Denoiser, canvas: Canvas, sampler: Samplers, seed: Seeds = 0, **options: Unpack[DecodeOptions]
) -> Trace:
    """Fill every mask of the canvas and return the trace.

    `sampler` and `seed` are one for all rows (row r then uses seed + r) or one per row. `observe="span"`
    forms beliefs over all masked positions at every step, not only the open block; `drafts=True` keeps
    the whole proposal of every step; `noise` replaces the source of randomness.
    """
    return steps(denoiser, canvas, sampler, seed, **options).trace()
