"""Recovery: after a failure rows start again or leave with an error, and the next batches are smaller.

A row that starts again has the same result.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Generic

import torch

from ..core.errors import RowError, UncodeError
from .admission import Admission, Submission
from .memory import MemoryBudget
from .request import K, Result

FORWARDS_TO_GROW = 64
"""Good forwards after a failed one, until the batch may have twice the rows again."""


class ForwardFailed(UncodeError):
    """The forward that a row took part in failed, or the row does not fit into memory: no fault of the request."""


def first_line(error: BaseException) -> str:
    """What an error says, without the pages that follow."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def refused(one: Submission[K], error: UncodeError) -> Result[K]:
    """The result of a request that could not be decoded."""
    return Result(one.request, None, error, waited=time.monotonic() - one.arrived)


class Recovery(Generic[K]):
    """What becomes of the rows of a batch that failed, and how many rows the next may have."""

    def __init__(self, admission: Admission[K], budget: MemoryBudget, max_rows: int) -> None:
        self._admission, self._budget, self._max_rows = admission, budget, max_rows
        self.limit_rows = max_rows
        """Rows of the next batches."""
        self._good_forwards = 0

    def forward_worked(self) -> None:
        """After a failure the batch may grow again, to twice the rows after each so many good forwards."""
        self._good_forwards += 1
        if self.limit_rows < self._max_rows and self._good_forwards >= FORWARDS_TO_GROW:
            self.limit_rows, self._good_forwards = min(2 * self.limit_rows, self._max_rows), 0

    def forward_failed(self, rows: Sequence[Submission[K]], error: Exception) -> list[Result[K]]:
        """The rows leave with an error, and the next batches are half as large until they work."""
        self.limit_rows = max(1, min(self.limit_rows, len(rows)) // 2)
        self._good_forwards = 0
        reason = ForwardFailed(f"the forward failed ({type(error).__name__}: {first_line(error)}): try again.")
        return [refused(one, reason) for one in sorted(rows, key=lambda one: one.ticket)]

    def out_of_memory(
        self, rows: Sequence[Submission[K]], tokens: int, error: torch.OutOfMemoryError
    ) -> list[Result[K]]:
        """A batch of so many tokens did not fit. All rows start again in smaller batches; a row alone leaves."""
        self._budget.shrink(tokens)
        if len(rows) == 1:
            return [refused(rows[0], ForwardFailed(f"one row does not fit into memory: {first_line(error)}"))]
        self._admission.push_back(rows)
        return []

    def first_forward_failed(self, rows: dict[int, Submission[K]], error: RowError) -> list[Result[K]]:
        """Before anything was written: the row to blame leaves with the error, and all others start again."""
        if error.row is None:
            raise error
        blamed = rows.pop(error.row)
        self._admission.push_back(list(rows.values()))
        return [refused(blamed, error)]
