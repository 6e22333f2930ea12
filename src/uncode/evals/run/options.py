"""How a run is executed, and how it reports its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunOptions:
    """How a run is executed. Nothing here changes an answer, apart from rounding in batches of other shapes."""

    batch: int = 32
    """The most rows of a batch."""
    data: Path | None = None
    """A folder with the benchmarks' files."""
    limit: int | None = None
    """Only the first examples of each task."""
    traces: bool = False
    """Whether to keep traces."""
    observe_span: bool = False
    """Whether beliefs are formed over every masked position at every step, for the entropy over time."""
    process: int = 0
    processes: int = 1
    """This process of so many, which share the run's samples."""
    claims: Path | None = None
    """A folder in which processes claim whole cells and share the grades of programs. Without one they divide the
    examples."""
    graders: int | None = None
    """Answers that are graded at the same time; None is one for each core."""


@dataclass(frozen=True)
class RunProgress:
    """The state of a run, for a progress bar."""

    cell: str
    done: int
    total: int
    """Samples of this process, in all cells."""
    right: int
    """Right answers of the current cell, of `answered`."""
    answered: int


OnProgress = Callable[[RunProgress], None]
