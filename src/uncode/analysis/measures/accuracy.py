"""The share of right answers, from traces that a grader has marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.errors import UncodeError
from ...stats import Interval, wilson
from ..read_traces import Numbers, TraceRow, Whole


@dataclass(frozen=True, eq=False)
class Accuracy:
    """The right answers of a group."""

    correct: Whole
    """`[N]`, 1 for a right answer, 0 for a wrong one, in the order of the traces."""
    traces: int
    """All traces, also those without a grade."""

    @property
    def share(self) -> Interval:
        """With Wilson's interval."""
        return wilson(int(self.correct.sum()), len(self.correct))

    def data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {"traces": self.traces, "accuracy": [*self.share], "correct": self.correct.tolist()}

    def columns(self) -> dict[str, Numbers | Whole]:
        """One value per answer, for CSV."""
        return {"answer": np.arange(len(self.correct)), "correct": self.correct}


class AccuracyOf:
    """Adds the traces of one group. It keeps one number per trace."""

    needs = ("correct",)

    def __init__(self, parts: int | None = None) -> None:
        self.traces, self._correct = 0, list[bool]()
        self._source = ""

    def add(self, row: TraceRow) -> None:
        self.traces += 1
        self._source = row.source
        if row.correct is not None:
            self._correct.append(row.correct)

    def result(self) -> Accuracy:
        if not self._correct:
            raise UncodeError(f"'{self._source}' has no grades: decode again with `uncode eval --traces`.")
        return Accuracy(np.array(self._correct, dtype=np.int64), self.traces)
