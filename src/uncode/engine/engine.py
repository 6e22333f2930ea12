"""The engine: continuous batching over the one stepper."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import torch

from ..core.canvas import Canvas
from ..core.denoiser import Denoiser
from ..core.errors import RowError, UncodeError, require
from ..core.stepper.advance import Step, advance
from ..core.stepper.failures import check_beliefs
from ..core.stepper.record import HostRows
from ..core.stepper.requests import DecodeOptions
from ..core.stepper.state import State
from ..core.support.arguments import whole_number
from ..core.support.arrays import Ints
from .columns import ColumnRule, Extent
from .errors import ForwardFailed, first_line
from .finished_row import FinishedRow
from .memory import MemoryBudget
from .queue import Queue, Waiting
from .request import Request, Result
from .row_step import row_steps

FORWARDS_TO_GROW = 64
"""Good forwards after a failed one, until the batch may have twice the rows again."""
SHORT = 4
"""A request is short if it has at most a fourth of the masks of the longest row in the batch."""
AVERAGING = 0.1
"""Weight of the latest row in the moving average of forwards per mask."""
QUEUED_AHEAD = 2
"""Batches of requests that `run` keeps waiting, so that an endless iterable is never read to its end."""


@dataclass
class _Active:
    """A request in the batch."""

    waiting: Waiting
    since: float
    share_before: float
    """The engine's `_share` when it joined."""
    is_extra: bool = False
    """Whether it is one of the short requests beyond `max_rows`."""


class Engine:
    """Decodes requests in one running batch. Rows join between forwards and leave when they finish.

    `step` runs one forward and never blocks otherwise, so an event loop can drive it; `run` drains an iterable. A row's
    result equals the row decoded alone. Requests join in the order in which they came; one that does not fit into the
    batch is overtaken a bounded number of times, so none starves.

    `max_rows` bounds the batch. With `short_rows`, short requests are served first, and so many of them may join a
    batch that is full of long ones; no request starves either way. `memory` is the number of bytes that forwards may
    take; None is 80 % of what is free. The remaining options are those of :func:`uncode.decode`.
    """

    def __init__(
        self,
        denoiser: Denoiser,
        *,
        max_rows: int = 32,
        short_rows: int = 0,
        memory: int | None = None,
        **options: Unpack[DecodeOptions],
    ) -> None:
        self.denoiser = denoiser
        self.max_rows = whole_number(max_rows, "max_rows", 1)
        self.short_rows = whole_number(short_rows, "short_rows")
        self.limit_rows = self.max_rows
        """Rows of the next batches; below `max_rows` after a forward has failed."""
        self._good_forwards = 0
        self.budget = MemoryBudget(torch.device(denoiser.device), memory)
        self.forwards = 0
        """Forwards of all batches so far, probes included."""
        self.last_step: Step | None = None
        """The last forward, for callers who stream; valid until the next one."""
        self.last_rows = 0
        """Rows of the last forward."""
        self._options, self._queue, self._tickets = options, Queue(self.short_rows > 0), itertools.count()
        self._state = State(denoiser, **options)
        self._active: dict[int, _Active] = {}
        """Requests in the batch, by the id of their row."""
        self._tickets_of_step: dict[int, int] = {}
        """Tickets of the rows of the last step, by the row's id. It has those that the step finished too."""
        self._results: list[Result] = []
        self._joining: list[Waiting] = []
        """Requests that are being added to the batch."""
        self._forwards_per_mask = 1.0
        """The moving average of forwards per mask over finished rows: fast samplers fill several masks in a forward."""
        self._share = 0.0
        """Seconds of all forwards so far, each divided by the rows in it."""
        self._columns = ColumnRule.of(denoiser)

    # -- requests --------------------------------------------------------------------------------

    def submit(self, request: Request) -> int:
        """Put a request into the queue. Returns a ticket, with which it can be cancelled."""
        require(isinstance(request, Request), f"submit takes a Request, not {type(request).__name__}.")
        ours, theirs = self.denoiser.mask_id, request.canvas.mask_id
        require(ours == theirs, f"the canvas was made with mask_id={theirs}, but the model's mask id is {ours}.")
        ticket = next(self._tickets)
        deadline = self.forwards + self._forwards_per_mask * request.masks
        self._queue.push(Waiting(ticket, request, time.monotonic(), deadline))
        return ticket

    def cancel(self, ticket: int) -> bool:
        """Drop a request, waiting or in the batch. Returns whether it was there; it has no result then."""
        if self._queue.remove(ticket) is not None:
            return True
        found = [row for row, active in self._active.items() if active.waiting.ticket == ticket]
        for row in found:
            del self._active[row]
            self._keep(self._state.rows.ids != row)
        return bool(found)

    def waited(self, ticket: int) -> float:
        """Seconds that a request has waited in the queue: until it joined the batch, or until now."""
        now = time.monotonic()
        active = [(one.waiting, one.since) for one in self._active.values()]
        queued = [(one, now) for one in self._queue]
        return next((end - one.since for one, end in [*active, *queued] if one.ticket == ticket), 0.0)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, runs or is finished and not yet handed out."""
        return not (self._queue or self._active or self._results)

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    @property
    def tokens(self) -> int:
        """Tokens of the batch, padding included."""
        return self._state.batch.tokens.numel() if self._active else 0

    @property
    def running(self) -> int:
        """Rows in the batch."""
        return len(self._active)

    def ticket_of(self, row: int) -> int | None:
        """The ticket of a row of :attr:`last_step`, by the row's id."""
        return self._tickets_of_step.get(row)

    # -- steps -----------------------------------------------------------------------------------

    def step(self) -> list[Result]:
        """Let requests join, run one forward, and return the results of the rows that it finished."""
        self._admit()
        if self._active:
            self._advance()
        else:
            self.last_step, self._tickets_of_step = None, {}  # do not keep a batch that is done
        found, self._results = self._results, []
        return found

    def abandon(self, error: Exception) -> list[Result]:
        """After `step` has raised: the rows that took part are results with an error, and the next batches are half as
        large until they work. Requests in the queue stay there."""
        lost = {waiting.ticket: waiting for waiting in self._joining}
        lost |= {active.waiting.ticket: active.waiting for active in self._active.values()}
        self.limit_rows = max(1, min(self.limit_rows, len(lost)) // 2)
        self._joining, self._active, self._good_forwards = [], {}, 0
        self._state, self.last_step = State(self.denoiser, **self._options), None
        for _, waiting in sorted(lost.items()):
            reason = ForwardFailed(f"the forward failed ({type(error).__name__}: {first_line(error)}): try again.")
            self._fail(waiting, reason, time.monotonic())
        found, self._results = self._results, []
        return found

    def run(self, requests: Iterable[Request]) -> Iterator[Result]:
        """The results of all requests, in the order in which they finish."""
        source = iter(requests)
        while True:
            missing = QUEUED_AHEAD * self.max_rows - len(self._queue)
            for request in itertools.islice(source, max(missing, 0)):
                self.submit(request)
            if self.is_idle:
                return
            yield from self.step()

    def _admit(self) -> None:
        """Let requests join while rows and memory allow."""
        regular = sum(not active.is_extra for active in self._active.values())
        space = self.limit_rows - regular
        if not self._queue or not (space > 0 or self.short_rows):
            return
        fits = self._fits()
        taken = self._queue.take(fits, space) if space > 0 else []
        extra = self._take_short(fits) if self._queue and len(taken) >= space else []
        if taken or extra:
            self._join([*taken, *extra])
            tickets = {waiting.ticket for waiting in extra}
            for active in self._active.values():
                active.is_extra |= active.waiting.ticket in tickets

    def _take_short(self, fits: Callable[[Request], bool]) -> list[Waiting]:
        """Short requests that join a batch which is full of long ones."""
        masks = [active.waiting.masks for active in self._active.values()]
        space = self.short_rows - sum(active.is_extra for active in self._active.values())
        return self._queue.take_short(fits, max(masks) // SHORT, space) if masks and space > 0 else []

    def _fits(self) -> Callable[[Request], bool]:
        """A function that says whether a request fits into the batch beside those that it has let in before."""
        known = self._extent()
        now = (self._state.batch.start, self._state.batch.span) if known.rows else (0, 0)

        def fits(request: Request) -> bool:
            nonlocal known
            canvas, joined = request.canvas, known.joined_by(request)
            same = self.denoiser.sees_padding or (known.start, known.span) == (canvas.start, canvas.span)
            columns = self._columns.columns(joined)
            if not self._columns.is_large(joined):  # a large batch is trimmed when rows join
                columns = max(columns[0], now[0]), max(columns[1], now[1])
            if known.rows and not (same and self.budget.allows(joined.rows * sum(columns))):
                return False
            known = joined
            return True

        return fits

    def _extent(self, joining: Sequence[Request] = ()) -> Extent:
        """The columns that the batch needs, with the requests that join it."""
        return Extent.of([*(active.waiting.request for active in self._active.values()), *joining])

    def _join(self, taken: list[Waiting]) -> None:
        """Requests become rows. One that the stepper refuses is a result with an error."""
        self._joining = taken
        error = self._try_to_add(taken)
        if error is not None and len(taken) > 1:  # find out which of them it is
            for number, waiting in enumerate(taken):
                self._joining = taken[number:]
                alone = self._try_to_add([waiting])
                if alone is not None:
                    self._fail(waiting, alone, time.monotonic())
        elif error is not None:
            self._fail(taken[0], error, time.monotonic())
        self._joining = []

    def _try_to_add(self, taken: list[Waiting]) -> UncodeError | None:
        """Add requests to the batch. Returns why the stepper refuses them; none has joined then."""
        if not self._active:
            self._state = State(self.denoiser, **self._options)
            self.budget.begin()
        try:
            requests = [waiting.request for waiting in taken]
            canvas, joined = self._together(requests), self._extent(requests)
            with self.budget.watching(joined.rows * sum(self._columns.columns(joined))):
                ids = self._state.add(canvas, [r.sampler for r in requests], [r.seed for r in requests])
        except UncodeError as error:
            return error
        except torch.OutOfMemoryError as error:
            self._shrink_and_restart(canvas.tokens.numel(), error, taken)
            return None
        now = time.monotonic()
        for row, waiting in zip(ids, taken, strict=True):
            self._active[row] = _Active(waiting, now, self._share)
        if self._columns.is_large(self._extent()):
            self._trim()  # the columns that were rounded up while the batch was small
        return None

    def _together(self, requests: list[Request]) -> Canvas:
        """One canvas of the requests that join, its columns rounded up on both sides of the span's start."""
        heads = [request.canvas.tokens[0, : request.canvas.start] for request in requests]
        tails = [request.canvas.tokens[0, request.canvas.start :] for request in requests]
        whole = Canvas._assemble(heads, tails, requests[0].canvas.mask_id, None)
        start, span = self._columns.columns(self._extent(requests))
        return whole.padded(max(start - whole.start, 0), max(span - whole.span, 0))

    def _advance(self) -> None:
        tokens, began = self._state.batch.tokens.numel(), time.monotonic()
        try:
            with self.budget.measuring(tokens):
                self.last_step = advance(self._state, raises=False)
        except RowError as error:  # of the first forward of a batch, before anything was written
            self._restart(error, error.row)
        except torch.OutOfMemoryError as error:
            self._shrink_and_restart(tokens, error, [])
        else:
            self.forwards += 1 + self.last_step.probes
            self.last_rows = len(self._active)
            self._grow_again()
            self._tickets_of_step = {row: active.waiting.ticket for row, active in self._active.items()}
            self._share += (time.monotonic() - began) / len(self._active)
            self._collect_finished(self.last_step, self._tell_listeners(self.last_step))

    def _grow_again(self) -> None:
        """After a failure the batch may grow again, to twice the rows after each so many good forwards."""
        self._good_forwards += 1
        if self.limit_rows < self.max_rows and self._good_forwards >= FORWARDS_TO_GROW:
            self.limit_rows, self._good_forwards = min(2 * self.limit_rows, self.max_rows), 0

    def _shrink_and_restart(self, tokens: int, error: torch.OutOfMemoryError, joining: list[Waiting]) -> None:
        """Memory ran out, in a forward or while rows joined. All start again in smaller batches; a row alone leaves."""
        self.budget.shrink(tokens + (self.tokens if joining else 0))
        rows = [*joining, *(active.waiting for active in self._active.values())]
        self._active = {}
        if len(rows) == 1:
            reason = ForwardFailed(f"one row does not fit into memory: {first_line(error)}")
            self._fail(rows[0], reason, time.monotonic())
        else:
            self._queue.push_back(rows)

    def _restart(self, error: UncodeError, row: int | None) -> None:
        """A forward failed: `row` leaves with the error. All others start again, which gives the same results."""
        if row is None and isinstance(error, RowError):
            raise error
        if row is not None:
            self._fail(self._active.pop(row).waiting, error, time.monotonic())
        self._queue.push_back([active.waiting for active in self._active.values()])
        self._active = {}

    def _fail(self, waiting: Waiting, error: UncodeError, now: float) -> None:
        self._results.append(Result(waiting.request, None, error, waited=now - waiting.since))

    def _tell_listeners(self, step: Step) -> list[int]:
        """Tell the requests that listen what the step did to their rows. Returns the ids of the rows that end now."""
        state = self._state
        ids = state.rows.ids.tolist()
        heard = [at for at, row in enumerate(ids) if self._active[row].waiting.request.on_step is not None]
        if not heard:
            return []
        requests = [self._active[ids[at]].waiting.request for at in heard]
        steps = row_steps(state, step, np.array(heard), [request.canvas.span for request in requests])
        ends = [request.on_step(one) for request, one in zip(requests, steps, strict=True) if request.on_step]
        return [ids[at] for at, ended in zip(heard, ends, strict=True) if ended]

    def _collect_finished(self, step: Step, ended: list[int]) -> None:
        """Rows that have finished, or whose listener has `ended` them, leave the batch with what was decoded; rows
        that cannot go on leave with an error."""
        state = self._state
        if not state.any_finished and not ended and not step.failed:
            return
        now, failed = time.monotonic(), {error.row: error for error in step.failed if error.row is not None}
        for row, error in failed.items():
            self._fail(self._active.pop(row).waiting, error, now)
        staying = ~(state.rows.finished | np.isin(state.rows.ids, [*ended, *failed]))
        self._collect(np.flatnonzero(~staying & ~np.isin(state.rows.ids, list(failed))), now)
        self._keep(staying)

    def _collect(self, rows: Ints, now: float) -> None:
        """The results of rows (indices) that leave the batch."""
        if not len(rows):
            return
        state = self._state
        found = state.read_rows(rows)
        suspects = found.rows_without_probability
        for at, row in enumerate(rows.tolist()):
            active = self._active.pop(int(state.rows.ids[row]))
            try:
                if suspects[at]:
                    check_beliefs(state, row, found.record(at))
            except RowError as error:
                self._fail(active.waiting, error, now)
            else:
                self._results.append(self._result(found, at, active, now))

    def _result(self, found: HostRows, at: int, active: _Active, now: float) -> Result:
        request, state = active.waiting.request, self._state
        row = FinishedRow(found, at, request.canvas, state.batch.start, self.denoiser, state.observe)
        per_mask = row.forwards / max(active.waiting.masks, 1)
        self._forwards_per_mask += AVERAGING * (per_mask - self._forwards_per_mask)
        waited, share = active.since - active.waiting.since, self._share - active.share_before
        return Result(request, row, seconds=now - active.since, waited=waited, share_seconds=share)

    def _keep(self, rows: np.ndarray) -> None:
        self._state.keep(np.flatnonzero(rows))
        if len(self._state.rows):
            self._trim()

    def _trim(self) -> None:
        """Drop columns that no row uses, if they are many."""
        try:
            self._state.trim(self._columns.trim_share(self._extent()))
        except torch.OutOfMemoryError as error:  # the KV cache is copied before its old columns are freed
            self._shrink_and_restart(self.tokens, error, [])
