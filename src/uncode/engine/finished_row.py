"""A row that has finished, without the padding of its batch."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.canvas import Canvas
from ..core.denoiser import Denoiser
from ..core.stepper.record import HostRows
from ..core.support.arrays import Ints
from ..core.trace.trace import Trace, header_of


@dataclass(frozen=True, eq=False)
class FinishedRow:
    """One of the rows that finished at the same step. They share their arrays on the host."""

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
    def forwards(self) -> int:
        """Probes included."""
        return self.rows.forwards[self.at]

    def forwards_before(self, step: int) -> int:
        """Forwards of the row before one of its steps, probes included."""
        return step + sum(self.rows.probes[self.at][:step])

    def trace(self) -> Trace:
        """The trace of this row, as if it had been decoded alone."""
        record = self.rows.record(self.at).without_padding(self.start, self.canvas.start, self.canvas.span)
        return Trace.of(self.canvas, [record], header_of(self.denoiser, self.observe))
