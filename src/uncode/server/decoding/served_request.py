"""A request that is being served: its rows, and the events that come from the engine's thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Literal

from ...core.canvas import Canvas
from ...core.constraint import Constraint
from ...core.errors import UncodeError
from ...core.pieces.policy import Sampler
from ...engine import Request, Result, RowStep
from ..errors import ApiError, Json, of_row
from .reader import CompletionOutput, RowReader, Update

Outcome = Literal["finished", "failed", "timeout", "client_gone", "refused", "shutdown"]
"""How a row ended, for the metrics."""
RowEvent = tuple[int, Update | CompletionOutput]
"""The number of a choice, and what happened to it."""


class ServedRow:
    """One row of a request. The engine's thread calls its methods; they hand events to the request."""

    def __init__(
        self,
        served: ServedRequest,
        canvas: Canvas,
        sampler: Sampler,
        seed: int,
        reader: RowReader,
        constraint: Constraint | None = None,
    ) -> None:
        self.served, self.number, self.reader = served, len(served.rows), reader
        self.ticket: int | None = None
        """The engine's, once it has the request."""
        self.waited = self.seconds = 0.0
        """In the queue, and in the batch."""
        self._unreadable: Exception | None = None
        self.request = Request(
            canvas,
            sampler,
            seed,
            constraint,
            alternatives=reader.wanted.alternatives,
            key=self,
            on_step=self._on_step if reader.wanted.listens else None,
        )

    def _on_step(self, step: RowStep) -> bool:
        if self.served.is_over:
            return True
        try:
            update = self.reader.update(step)
        except Exception as error:  # the other rows of the batch must not suffer
            self._unreadable = error
            return True
        if step.index == 0 or not update.is_empty:  # the first says that the row has begun
            self.served.push(self.number, update)
        return self.reader.is_stopped

    def finish(self, result: Result[ServedRow]) -> Outcome:
        """The engine has ended the row. Returns how."""
        self.waited, self.seconds = result.waited, result.seconds
        if self.served.is_over:
            self.fail(late(self.served.seconds))
            return self.served.cancelled_as if self.served.is_cancelled else "timeout"
        try:
            if result.row is None:
                raise result.error or UncodeError("no row")
            if self._unreadable is not None:
                raise self._unreadable
            output = self.reader.finish(result.row)
        except UncodeError as error:
            self.fail(of_row(error))
        except Exception as error:  # a tokenizer that fails must not end the thread
            message = f"the answer could not be read ({type(error).__name__})."
            self.fail(ApiError(500, message, code="unreadable_answer"))
        else:
            self.served.push(self.number, output)
            return "finished"
        return "failed"

    def fail(self, error: ApiError) -> None:
        """The row ends with an error."""
        self.served.push(self.number, error)


def late(seconds: float) -> ApiError:
    """The error of a request whose time is up."""
    message = f"the answer was not finished within {seconds:g} s: ask for fewer tokens, or try again later."
    return ApiError(408, message, code="timeout")


@dataclass(eq=False)
class ServedRequest:
    """The rows of one HTTP request."""

    loop: asyncio.AbstractEventLoop
    seconds: float
    """How long it may take."""
    recipe: Json
    """What makes the answer again: `seed`, `sampler` and `sampler_options`."""
    drop: Callable[[list[ServedRow]], None]
    """Drops rows at the next step."""
    rows: list[ServedRow] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    first_text: float | None = None
    """Seconds until the first settled text."""
    cancelled_as: Outcome = "client_gone"
    """Why rows that have not ended are cancelled."""
    is_cancelled: bool = False
    _outputs: dict[int, CompletionOutput] = field(default_factory=dict)
    _events: asyncio.Queue[tuple[int, Update | CompletionOutput | ApiError]] = field(default_factory=asyncio.Queue)

    @property
    def sampler(self) -> str:
        """The sampler's name, for logs and metrics. A server has a bounded number of them."""
        name = self.recipe["sampler"]
        return name if isinstance(name, str) else "data"

    @property
    def outputs(self) -> list[CompletionOutput]:
        """Of the rows that have ended, in the order of the choices."""
        return [self._outputs[number] for number in sorted(self._outputs)]

    def cancel(self) -> None:
        """Nobody waits for the answer any more."""
        self.is_cancelled = True
        self.drop(self.rows)

    @property
    def is_over(self) -> bool:
        """Whether it was cancelled, or its time is up. The engine's thread asks before it turns the tokens of a row
        into text, so that a request with much text cannot hold the others after its client has left."""
        return self.is_cancelled or time.monotonic() >= self._deadline

    @property
    def _deadline(self) -> float:
        return self.began + self.seconds

    def push(self, number: int, event: Update | CompletionOutput | ApiError) -> None:
        """From the engine's thread. A closed loop has no reader: the event is dropped."""
        try:
            self.loop.call_soon_threadsafe(self._events.put_nowait, (number, event))
        except RuntimeError:
            return

    async def events(self) -> AsyncIterator[RowEvent]:
        """The events of all rows until the last has ended. An error of one row is an error of the request."""
        while len(self._outputs) < len(self.rows):
            try:
                async with asyncio.timeout(max(self._deadline - time.monotonic(), 0.001)):
                    number, event = await self._events.get()
            except TimeoutError:
                self.cancelled_as = "timeout"
                raise late(self.seconds) from None
            if isinstance(event, ApiError):
                self.cancelled_as = "timeout" if event.code == "timeout" else "failed"  # the other rows have no reader
                raise event
            if self.first_text is None and (isinstance(event, CompletionOutput) or event.text):
                self.first_text = time.monotonic() - self.began
            if isinstance(event, CompletionOutput):
                self._outputs[number] = event
            yield number, event
