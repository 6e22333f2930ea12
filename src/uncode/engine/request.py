"""What is asked of the engine, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.canvas import Canvas
from ..core.constraint import Constraint
from ..core.denoiser import Denoiser
from ..core.errors import UncodeError, require, shown
from ..core.pieces.policy import Sampler
from ..core.stepper.record import Alternatives, HostRows
from ..core.support.arguments import whole_number
from ..core.support.arrays import Ints
from ..core.trace.trace import Trace, header_of
from .row_step import RowStep

Listener = Callable[[RowStep], bool]
"""Called after each forward of a row. Returns whether the row ends now, with the masks that are left."""
K = TypeVar("K")
"""The type of the keys by which a caller tells requests apart."""


@dataclass(frozen=True, eq=False)
class Request(Generic[K]):
    """One row to decode. Its result does not depend on the rows beside it."""

    canvas: Canvas
    """Of one row."""
    sampler: Sampler
    seed: int = 0
    constraint: Constraint | None = None
    key: K = None  # type: ignore[assignment]  # a Request[None] needs no key
    """Whatever the caller wants to find on the result."""
    on_step: Listener | None = None
    """For callers who stream, or who end a row before its last mask is filled."""
    alternatives: int = 0
    """Remember so many of the most probable tokens at each commit, with their log probabilities."""

    def __post_init__(self) -> None:
        if not isinstance(self.canvas, Canvas):
            raise UncodeError(f"a request holds a Canvas of one row, not {shown(self.canvas)}.")
        rows = self.canvas.rows
        require(rows == 1, f"a request holds a canvas of one row, not of {rows}: make a request for each row.")
        fits = self.constraint is None or isinstance(self.constraint, Constraint)
        require(fits, f"a request's constraint is made by uncode.constraint(...), not {shown(self.constraint)}.")
        whole_number(self.alternatives, "alternatives", 0)
        if not isinstance(self.sampler, Sampler):  # the text of a sampler takes longer than the check
            raise UncodeError(f"a request holds a Sampler, not {shown(self.sampler)}.")

    @cached_property
    def masks(self) -> int:
        """Tokens to fill."""
        return int(self.canvas.masked.sum())

    @property
    def has_cache(self) -> bool:
        """Whether its sampler stores keys and values."""
        return self.sampler.cache.needs_kv_cache


@dataclass(frozen=True, eq=False)
class FinishedRow:
    """What was decoded of a row, without the padding of its batch. Rows that finish at one step share their arrays."""

    rows: HostRows
    at: int
    """Its index among `rows`."""
    canvas: Canvas
    """As it was requested."""
    start: int
    """Columns before the generated span in `rows`."""
    denoiser: Denoiser
    observe: str

    @property
    def tokens(self) -> Ints:
        """The row's whole canvas, `[L]`."""
        return self.rows.tokens[self.at, self.start - self.canvas.start : self.start + self.canvas.span]

    @property
    def generated(self) -> Ints:
        """The generated span, `[S]`."""
        return self.rows.tokens[self.at, self.start : self.start + self.canvas.span]

    @property
    def commit_step(self) -> Ints:
        """The forward at which each offset was committed; -1 given, -2 filled by the stop rule."""
        return self.rows.commit_step[self.at, : self.canvas.span]

    @property
    def drawn_logp(self) -> NDArray[np.float64]:
        """The log probability of each committed token in the distribution it was drawn from; NaN elsewhere. For an
        engine with `drawn_logp`."""
        return self.rows.drawn_logp[self.at, : self.canvas.span]

    @property
    def alternatives(self) -> list[Alternatives]:
        """The most probable tokens of each offset when it was committed, as many as the request asked for."""
        return self.rows.alternatives(self.at)[: self.canvas.span]

    @property
    def forwards(self) -> int:
        """Probes included."""
        return self.rows.forwards[self.at]

    @property
    def columns(self) -> int:
        """The columns that they computed, without probes and drafts."""
        return self.rows.columns(self.at)

    def forwards_before(self, step: int) -> int:
        """Forwards of the row before one of its steps, probes included."""
        return step + sum(self.rows.probes[self.at][:step])

    def trace(self) -> Trace:
        """The trace of this row, as if it had been decoded alone."""
        record = self.rows.record(self.at).without_padding(self.start, self.canvas.start, self.canvas.span)
        return Trace.of(self.canvas, [record], header_of(self.denoiser, self.observe))


@dataclass(frozen=True, eq=False)
class Result(Generic[K]):
    """A request that has left the engine: with a trace, or with the error that ended it."""

    request: Request[K]
    row: FinishedRow | None
    """What was decoded; None where there is an error."""
    error: UncodeError | None = None
    """Why it could not be decoded."""
    seconds: float = 0.0
    """From the step at which it joined the batch to its last one."""
    share_seconds: float = 0.0
    """Its share of the time: of each forward, the seconds divided by the rows in it. The shares of all rows add up."""
    waited: float = 0.0
    """Seconds in the queue."""

    @cached_property
    def trace(self) -> Trace | None:
        """Of the one row, as if it had been decoded alone. It is made when it is first asked for."""
        return None if self.row is None else self.row.trace()
