"""The engine: continuous batching over the one stepper."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, Unpack

import numpy as np
import torch

from ..core.canvas import Canvas
from ..core.denoiser import Denoiser
from ..core.errors import RowError, UncodeError, require
from ..core.stepper.advance import Step, advance
from ..core.stepper.failures import check_beliefs
from ..core.stepper.requests import DecodeOptions
from ..core.stepper.state import State
from ..core.support.arguments import whole_number
from .admission import Admission, Submission
from .columns import ColumnRule, Extent
from .memory import MemoryBudget
from .recovery import Recovery, refused
from .request import FinishedRow, K, Request, Result
from .row_step import row_steps

AVERAGING = 0.1
"""Weight of the latest row in the moving average of forwards per mask."""
QUEUED_AHEAD = 2
"""Batches of requests that `run` keeps waiting, so that an endless iterable is never read to its end."""


class Engine(Generic[K]):
    """Decodes requests in one running batch. Rows join between forwards and leave when they finish.

    `step` runs one forward and never blocks otherwise, so an event loop can drive it; `run` drains an iterable. A row's
    result equals the row decoded alone. Requests join in the order in which they came; one that does not fit into the
    batch is overtaken a bounded number of times, so none starves.

    `max_rows` bounds the batch. With `short_rows`, short requests are served first, and so many of them may join a
    batch that is full of long ones; no request starves either way. `memory` is the number of bytes that forwards may
    take; None is 80 % of what is free. With `drawn_logp`, rows have the log probability of each token in the
    distribution it was drawn from. The remaining options are those of :func:`uncode.decode`.
    """

    def __init__(
        self,
        denoiser: Denoiser,
        *,
        max_rows: int = 32,
        short_rows: int = 0,
        memory: int | None = None,
        drawn_logp: bool = False,
        **options: Unpack[DecodeOptions],
    ) -> None:
        self.denoiser = denoiser
        self.max_rows = whole_number(max_rows, "max_rows", 1)
        self.budget = MemoryBudget(torch.device(denoiser.device), memory)
        self._admission = Admission[K](ColumnRule.of(denoiser), self.budget, whole_number(short_rows, "short_rows"))
        self._recovery = Recovery[K](self._admission, self.budget, self.max_rows)
        self.forwards = 0
        """Forwards of all batches so far, probes included."""
        self.last_step: Step | None = None
        """The last forward, for callers who stream; valid until the next one."""
        self.last_rows = 0
        """Rows of the last forward."""
        self._options, self._tickets, self._drawn_logp = options, itertools.count(), drawn_logp
        self._state = self._new_state()
        self._rows: dict[int, Submission[K]] = {}
        """Requests in the batch, by the id of their row."""
        self._joining: list[Submission[K]] = []
        """Requests that are being added to the batch."""
        self._tickets_of_step: dict[int, int] = {}
        """Tickets of the rows of the last step, by the row's id. It has those that the step finished too."""
        self._results: list[Result[K]] = []
        self._forwards_per_mask = 1.0
        """The moving average of forwards per mask over finished rows: fast samplers fill several masks in a forward."""
        self._share = 0.0
        """Seconds of all forwards so far, each divided by the rows in it."""

    def _new_state(self) -> State:
        return State(self.denoiser, drawn_logp=self._drawn_logp, **self._options)

    # -- requests --------------------------------------------------------------------------------

    def submit(self, request: Request[K]) -> int:
        """Put a request into the queue. Returns a ticket, with which it can be cancelled."""
        require(isinstance(request, Request), f"submit takes a Request, not {type(request).__name__}.")
        ours, theirs = self.denoiser.mask_id, request.canvas.mask_id
        require(ours == theirs, f"the canvas was made with mask_id={theirs}, but the model's mask id is {ours}.")
        ticket = next(self._tickets)
        deadline = self.forwards + self._forwards_per_mask * request.masks
        self._admission.push(Submission(ticket, request, time.monotonic(), deadline))
        return ticket

    def cancel(self, ticket: int) -> bool:
        """Drop a request, waiting or in the batch. Returns whether it was there; it has no result then."""
        if self._admission.remove(ticket):
            return True
        found = [row for row, one in self._rows.items() if one.ticket == ticket]
        for row in found:
            del self._rows[row]
            with self._recovering():
                self._keep(self._state.rows.ids != row)
        return bool(found)

    def waited(self, ticket: int) -> float:
        """Seconds that a request has waited in the queue: until it joined the batch, or until now."""
        now = time.monotonic()
        until = [(one, one.joined) for one in self._rows.values()] + [(one, now) for one in self._admission]
        return next((end - one.arrived for one, end in until if one.ticket == ticket), 0.0)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, runs or is finished and not yet handed out."""
        return not (self.waiting or self._rows or self._results)

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._admission)

    @property
    def tokens(self) -> int:
        """Tokens of the batch, padding included."""
        return self._state.batch.tokens.numel() if self._rows else 0

    @property
    def running(self) -> int:
        """Rows in the batch."""
        return len(self._rows)

    @property
    def limit_rows(self) -> int:
        """Rows of the next batches; below `max_rows` after a forward has failed."""
        return self._recovery.limit_rows

    def ticket_of(self, row: int) -> int | None:
        """The ticket of a row of :attr:`last_step`, by the row's id."""
        return self._tickets_of_step.get(row)

    # -- the loop --------------------------------------------------------------------------------

    def run(self, requests: Iterable[Request[K]]) -> Iterator[Result[K]]:
        """The results of all requests, in the order in which they finish."""
        source = iter(requests)
        while True:
            missing = QUEUED_AHEAD * self.max_rows - self.waiting
            for request in itertools.islice(source, max(missing, 0)):
                self.submit(request)
            if self.is_idle:
                return
            yield from self.step()

    def step(self) -> list[Result[K]]:
        """Let requests join, run one forward, and return the results of the rows that it finished."""
        with self._recovering():
            columns = (self._state.batch.start, self._state.batch.span) if self._rows else (0, 0)
            self._join(self._admission.take(list(self._rows.values()), columns, self.limit_rows))
            if self._rows:
                self._advance()
            else:
                self.last_step, self._tickets_of_step = None, {}  # do not keep a batch that is done
        return self._hand_out()

    def abandon(self, error: Exception) -> list[Result[K]]:
        """After `step` has raised: the rows that took part are results with an error, and the next batches are half as
        large until they work. Requests in the queue stay there."""
        self._results += self._recovery.forward_failed(self._leave(), error)
        self._state, self.last_step = self._new_state(), None
        return self._hand_out()

    def _hand_out(self) -> list[Result[K]]:
        found, self._results = self._results, []
        return found

    def _leave(self) -> list[Submission[K]]:
        """All requests out of the batch, those included that were joining it."""
        left = [*self._joining, *self._rows.values()]
        self._joining, self._rows = [], {}
        return left

    @contextmanager
    def _recovering(self) -> Iterator[None]:
        """Memory may run out in a forward, or while rows join or leave. All rows start again in smaller batches."""
        try:
            yield
        except torch.OutOfMemoryError as error:
            tokens = self.tokens + len(self._joining) * sum(self._columns(self._joining))
            self._results += self._recovery.out_of_memory(self._leave(), tokens, error)
            self.last_step, self._tickets_of_step = None, {}

    # -- rows join -------------------------------------------------------------------------------

    def _join(self, taken: list[Submission[K]]) -> None:
        """Requests become rows. One that the stepper refuses is a result with an error."""
        self._joining = list(taken)
        try:
            self._add(taken)
        except UncodeError:
            for one in taken:  # find out which of them it is
                try:
                    self._add([one])
                except UncodeError as error:
                    self._joining.remove(one)
                    self._results.append(refused(one, error))

    def _add(self, taken: list[Submission[K]]) -> None:
        """Add requests to the batch. Where the stepper refuses one, none has joined."""
        if not taken:
            return
        if not self._rows:
            self._state = self._new_state()
            self.budget.begin()
        requests = [one.request for one in taken]
        start, span = self._columns(taken)
        canvas = _together(requests, start, span)
        with self.budget.watching((len(self._rows) + len(taken)) * (start + span)):
            samplers, seeds = [one.sampler for one in requests], [one.seed for one in requests]
            constraints, alternatives = [one.constraint for one in requests], [one.alternatives for one in requests]
            ids = self._state.add(canvas, samplers, seeds, constraints, alternatives)
        now = time.monotonic()
        for row, one in zip(ids, taken, strict=True):
            one.joined, one.share_before = now, self._share
            self._rows[row] = one
            self._joining.remove(one)
        if self._admission.columns.is_large(self._extent()):
            self._trim()  # the columns that were rounded up while the batch was small

    def _extent(self, joining: Sequence[Submission[K]] = ()) -> Extent:
        """The columns that the batch needs, with the requests that join it."""
        return Extent.of([one.request for one in (*self._rows.values(), *joining)])

    def _columns(self, joining: Sequence[Submission[K]]) -> tuple[int, int]:
        """The same, rounded up where that pays: before the span and in it."""
        return self._admission.columns.columns(self._extent(joining))

    # -- a forward -------------------------------------------------------------------------------

    def _advance(self) -> None:
        began = time.monotonic()
        try:
            with self.budget.measuring(self.tokens):
                self.last_step = step = advance(self._state, raises=False)
        except RowError as error:  # of the first forward of a batch
            self._results += self._recovery.first_forward_failed(self._rows, error)
            self._rows = {}
            return
        self.forwards += 1 + step.probes
        self.last_rows = len(self._rows)
        self._recovery.forward_worked()
        self._tickets_of_step = {row: one.ticket for row, one in self._rows.items()}
        self._share += (time.monotonic() - began) / len(self._rows)
        self._collect(step, self._tell_listeners(step))

    def _tell_listeners(self, step: Step) -> list[int]:
        """Tell the requests that listen what the step did to their rows. Returns the ids of the rows that end now."""
        ids = self._state.rows.ids.tolist()
        heard = [at for at, row in enumerate(ids) if self._rows[row].request.on_step is not None]
        if not heard:
            return []
        requests = [self._rows[ids[at]].request for at in heard]
        steps = row_steps(self._state, step, np.array(heard), [request.canvas.span for request in requests])
        ends = [request.on_step(one) for request, one in zip(requests, steps, strict=True) if request.on_step]
        return [ids[at] for at, ended in zip(heard, ends, strict=True) if ended]

    # -- rows leave ------------------------------------------------------------------------------

    def _collect(self, step: Step, ended: list[int]) -> None:
        """Rows that have finished, or whose listener has `ended` them, leave the batch with what was decoded; rows
        that cannot go on leave with an error."""
        rows = self._state.rows
        if not self._state.any_finished and not ended and not step.failed:
            return
        failed = {error.row: error for error in step.failed if error.row is not None}
        for row, error in failed.items():
            self._results.append(refused(self._rows.pop(row), error))
        staying = ~(rows.finished | np.isin(rows.ids, [*ended, *failed]))
        self._read(np.flatnonzero(~staying & ~np.isin(rows.ids, list(failed))))
        self._keep(staying)

    def _read(self, rows: np.ndarray) -> None:
        """The results of rows (indices) that leave the batch."""
        if not len(rows):
            return
        now, state = time.monotonic(), self._state
        found = state.read_rows(rows)
        suspects = found.rows_without_probability
        for at, index in enumerate(rows.tolist()):
            one = self._rows.pop(int(state.rows.ids[index]))
            try:
                if suspects[at]:
                    check_beliefs(state, index, found.record(at))
            except RowError as error:
                self._results.append(refused(one, error))
                continue
            row = FinishedRow(found, at, one.request.canvas, state.batch.start, self.denoiser, state.observe)
            per_mask = row.forwards / max(one.request.masks, 1)
            self._forwards_per_mask += AVERAGING * (per_mask - self._forwards_per_mask)
            share, waited = self._share - one.share_before, one.joined - one.arrived
            self._results.append(Result(one.request, row, None, now - one.joined, share, waited))

    def _keep(self, rows: np.ndarray) -> None:
        self._state.keep(np.flatnonzero(rows))
        if len(self._state.rows):
            self._trim()

    def _trim(self) -> None:
        """Drop columns that no row uses, if they are many. The KV cache is copied before its old columns are freed."""
        self._state.trim(self._admission.columns.trim_share(self._extent()))


def _together(requests: Sequence[Request[K]], start: int, span: int) -> Canvas:
    """One canvas of several requests, with at least so many columns before the span and in it."""
    heads = [request.canvas.tokens[0, : request.canvas.start] for request in requests]
    tails = [request.canvas.tokens[0, request.canvas.start :] for request in requests]
    whole = Canvas._assemble(heads, tails, requests[0].canvas.mask_id, None)
    return whole.padded(max(start - whole.start, 0), max(span - whole.span, 0))
