"""The stepper: the only place that runs a network for decoding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Unpack

import numpy as np
import torch
from torch import Tensor

from ..canvas import Canvas
from ..denoiser import Denoiser
from ..errors import RowError, UncodeError
from ..logits_check import check_shape, mask_not_barred
from ..support.arguments import checks_arguments
from ..support.arrays import Ints
from ..support.reprs import counted
from ..support.threads import at_most
from ..support.transfer import Download
from ..trace.row_record import FILLED, OPEN, RowRecord
from ..trace.trace import Trace, header_of
from ..view import View
from .failures import Failures, bad_rows, check_beliefs, latest, over_limit, stalled
from .lanes.decide import Decision, decide
from .requests import DecodeOptions, Samplers, Seeds
from .state import State


@dataclass(slots=True)
class Step:
    """One forward, its probes, and their effects. Tensors are views that are valid until the next step."""

    index: int
    """Steps of the batch before this one."""
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
    probes: int = 0
    """Forwards of the batch within this step, beside its own."""
    failed: tuple[RowError, ...] = ()
    """Why rows cannot go on, one error for each of them; empty where `advance` raises."""

    def __repr__(self) -> str:
        ended = f", {len(self.finished)} finished" if self.finished else ""
        rows, written = counted(len(self.rows), "row"), int(self.committed.sum())
        return f"Step(index={self.index}, {rows}, {written} committed{ended})"

    @property
    def committed(self) -> Tensor:
        """Which columns of the window were written, `[B, W]`."""
        return self.decision.chosen


@torch.inference_mode()
def advance(state: State, *, raises: bool = True) -> Step:
    """One forward for all rows that are unfinished, and all that follows from it:

    1. Each row without an open block opens its next one and counts its masked positions.
    2. Ask the cache policies for a plan; run one forward over its window; take logits of the open window only. (On a
       GPU a single row's forward may have been launched at the end of the step before; see 8.)
    3. Propose a token everywhere; form the belief (float32; float64 logits keep float64).
    4. Eligible = masked and in the open block, whose end the beliefs of its first step may decide. Score (a sum of
       terms in float64); -inf elsewhere.
    5. Select, after probes where a piece needs them: forwards over other canvases, in a session without a KV cache,
       each counted as a forward of its row. Write. Remember with what belief each token was committed.
    6. Remask among the decoder's own tokens, this step's included; erase.
    7. A row with nothing written or erased whose selector may not wait: raise `Stalled`. Over the limit: the same.
       Logits that are NaN are the model's fault: the error names it. This is checked after a block's first step,
       when a row stalls, and in the finished trace, so that it needs no separate host sync. With `raises=False`
       such rows are in `step.failed`; drop them, and the others go on.
    8. Ask the stop rule; record; hand out the step. The host syncs only where a block can be filled or a row can end;
       see :mod:`.lookahead`.
    """
    if state.all_finished:
        raise UncodeError("there is no unfinished row to advance: add rows first.")
    with at_most(state.threads):
        step = _advance(state)
    if raises and step.failed:
        raise step.failed[0]
    return step


def _advance(state: State) -> Step:
    if state.lookahead.must_open_blocks:
        state.open_blocks()
    logits = state.lookahead.take_logits()
    if logits is None:
        logits = _forward(state)
    view = view_of(state)
    decision = decide(state.lanes, logits, view)
    probes = state.record_probes()
    if decision.block_stop is not None:
        view.eligible = view.eligible & (view.offsets < decision.block_stop)
    seen = view.tokens == state.facts.mask_id if state.observe == "span" else view.eligible
    _write(state, decision)
    state.record.reserve(state.clock + 1 - state.earliest_join)
    state.record.append(decision, seen, state.batch.unfinished)
    synced = _sync(state, decision, logits, view.eligible) if state.lookahead.count_step() else _NOTHING_SYNCED
    state.clock += 1
    failed = synced.failed | over_limit(state, logits, view.eligible)
    return Step(
        index=state.clock - 1,
        rows=state.rows.ids,
        tokens=state.batch.tokens,
        offsets=view.offsets,
        decision=decision,
        finished=synced.finished,
        probes=probes,
        failed=tuple(failed.values()),
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
        noise=state.noise(state.batch.seeds, state.record.steps),
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
    bad = bad_rows(state, logits, eligible, ~state.rows.finished)
    if bad:
        raise next(iter(bad.values()))
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
    record.commit_step_in_window.write(chosen, record.steps)
    if state.drafts:
        record.draft(state.blocks.window, decision.belief.token, ~state.rows.finished)
    if decision.revised:
        _record_events(state, decision)
    if decision.erased is not None:
        state.blocks.tokens.write(decision.erased, torch.full_like(record.steps, state.facts.mask_id))
        record.commit_step_in_window.write(decision.erased, torch.full_like(record.steps, OPEN))


def _record_events(state: State, decision: Decision) -> None:
    """Where a remasker or an editor runs, offsets are written more than once: keep every change, in order."""
    own, revising = state.record.steps[:, 0].tolist(), state.revising
    offsets = state.blocks.window.offsets.expand(len(own), -1)
    for change, token in ((decision.chosen, decision.belief.token), (decision.erased, None)):
        for row, column in [] if change is None else change.nonzero().tolist():
            if not revising[row]:
                continue
            written = -1 if token is None else int(token[row, column])
            state.record.events[row].append((own[row], int(offsets[row, column]), written))


@dataclass(frozen=True)
class _Synced:
    """What the host learned from a sync."""

    finished: tuple[int, ...]
    failed: Failures


_NOTHING_SYNCED = _Synced((), {})


def _sync(state: State, decision: Decision, logits: Tensor, eligible: Tensor) -> _Synced:
    """Ask the device which blocks are filled, which rows have ended, and which cannot go on.

    All that the host must know comes in one device-to-host copy.
    """
    state.flush_step_counts()
    done = _ask_stop_rules(state)
    left = state.blocks.window.restrict(state.blocks.tokens.read() == state.facts.mask_id)
    if decision.block_stop is not None:
        left = left & (state.blocks.window.offsets < decision.block_stop)
    changed = decision.chosen.any(-1) if decision.erased is None else (decision.chosen | decision.erased).any(-1)
    facts = [left.sum(-1), changed, decision.pending_rows[:, 0], done]
    if (state.rows.block_step == 1).any():  # a block's first step
        facts.append((decision.belief.log_sumexp.isnan() & eligible).any(-1))
        facts += _ends_of_blocks(state, decision)
    copied = Download(torch.stack(facts))
    if state.may_run_ahead:
        state.lookahead.logits = _forward(state)
    found = copied()
    filled, unchanged, may_close = found[0] == 0, found[1] == 0, found[2] == 0
    stuck = ~filled & unchanged & ~state.rows.finished
    suspects = stuck | (found[4:5] > 0).any(0)
    failed: Failures = stalled(state, decision, stuck)
    failed |= bad_rows(state, latest(state, logits), eligible, suspects)  # the model's fault, if it is one
    if len(found) > 5:
        state.end_blocks(*found[5:])
    return _Synced(state.apply(filled & may_close, found[3] > 0), failed)


def _ends_of_blocks(state: State, decision: Decision) -> list[Tensor]:
    """Where this step has ended blocks, `[B]`, how many masks are behind each of them, and at which offset the first
    of these is; nothing where it has ended none."""
    stop = decision.block_stop
    if stop is None:
        return []
    span = state.batch.generated
    behind = (span == state.facts.mask_id) & (torch.arange(span.shape[1], device=span.device) >= stop)
    return [stop[:, 0], behind.sum(-1), behind.long().argmax(-1)]


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
    """The decode as an iterator of steps, one forward and its probes each; see :func:`decode`."""
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
