"""Admission: the requests that wait, and which of them join the batch.

In the order of arrival, one that does not fit is overtaken a bounded number of times. With `short_rows`, each request
has a deadline: the forwards of the engine when it came, plus those that so many masks took lately. The earliest
deadline is served first, so a short request passes long ones that came shortly before it, and a long one is passed only
by requests that came before its deadline.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

from .columns import ColumnRule, Extent
from .memory import MemoryBudget
from .request import K, Request

MAX_OVERTAKEN = 16
"""How many later requests may join before one that does not fit. Then the batch drains until it fits."""
SHORT = 4
"""A request is short if it has at most a fourth of the masks of the longest row in the batch."""


@dataclass(eq=False)
class Submission(Generic[K]):
    """A request that the engine has, in the queue or in the batch."""

    ticket: int
    request: Request[K]
    arrived: float
    deadline: float
    """In forwards of the engine."""
    overtaken: int = 0
    is_extra: bool = False
    """Whether it is one of the short requests beyond the rows of the batch."""
    joined: float = 0.0
    """When it joined the batch."""
    share_before: float = 0.0
    """Seconds of all forwards until it joined, each divided by the rows in it."""


class Admission(Generic[K]):
    """The queue, and what joins from it while rows, memory and columns allow."""

    def __init__(self, columns: ColumnRule, budget: MemoryBudget, short_rows: int) -> None:
        self.columns = columns
        self._budget, self._short_rows = budget, short_rows
        self._queue: deque[Submission[K]] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[Submission[K]]:
        return iter(self._queue)

    def push(self, new: Submission[K]) -> None:
        at = bisect_right(self._queue, new.deadline, key=lambda one: one.deadline) if self._short_rows else len(self)
        self._queue.insert(at, new)

    def push_back(self, returned: Sequence[Submission[K]]) -> None:
        """Requests whose batch failed come first again, in their old order."""
        self._queue.extendleft(sorted(returned, key=lambda one: one.ticket, reverse=True))

    def remove(self, ticket: int) -> bool:
        """Take a request out of the queue. Returns whether it was there."""
        found = [one for one in self._queue if one.ticket == ticket]
        for one in found:
            self._queue.remove(one)
        return bool(found)

    def take(self, running: Sequence[Submission[K]], columns: tuple[int, int], limit_rows: int) -> list[Submission[K]]:
        """The requests that join now; they leave the queue. The batch with the `running` ones has so many `columns`,
        before the span and in it."""
        extra_rows = sum(one.is_extra for one in running)
        space = limit_rows - (len(running) - extra_rows)
        if not self._queue or not (space > 0 or self._short_rows):
            return []
        fits = self._fits(running, columns)
        taken = self._take_in_order(fits, space)
        for one in taken:
            one.is_extra = False
        if running and len(taken) >= space:
            masks = max(one.request.masks for one in running) // SHORT
            taken += self._take_short(fits, masks, self._short_rows - extra_rows)
        return taken

    def _take_in_order(self, fits: Callable[[Request[K]], bool], most: int) -> list[Submission[K]]:
        """At most `most` requests that fit. One that does not fit is overtaken at most MAX_OVERTAKEN times."""
        taken, passed = list[Submission[K]](), list[Submission[K]]()
        most_overtaken = 0  # of those passed
        while self._queue and len(taken) < most and most_overtaken < MAX_OVERTAKEN:
            first = self._queue.popleft()
            if fits(first.request):
                taken.append(first)
                for one in passed:
                    one.overtaken += 1
                most_overtaken += bool(passed)
            else:
                passed.append(first)
                most_overtaken = max(most_overtaken, first.overtaken)
        self._queue.extendleft(reversed(passed))
        return taken

    def _take_short(self, fits: Callable[[Request[K]], bool], masks: int, most: int) -> list[Submission[K]]:
        """At most `most` requests with at most so many masks that fit, from anywhere in the queue."""
        taken = list[Submission[K]]()
        for one in self._queue if most > 0 else ():
            if len(taken) < most and one.request.masks <= masks and fits(one.request):
                one.is_extra = True
                taken.append(one)
        for one in taken:
            self._queue.remove(one)
        return taken

    def _fits(self, running: Sequence[Submission[K]], now: tuple[int, int]) -> Callable[[Request[K]], bool]:
        """A function that says whether a request fits into the batch beside those that it has let in before."""
        known = Extent.of([one.request for one in running])

        def fits(request: Request[K]) -> bool:
            nonlocal known
            canvas, joined = request.canvas, known.joined_by(request)
            same = self.columns.may_pad or (known.start, known.span) == (canvas.start, canvas.span)
            columns = self.columns.columns(joined)
            if not self.columns.is_large(joined):  # a large batch is trimmed when rows join
                columns = max(columns[0], now[0]), max(columns[1], now[1])
            if known.rows and not (same and self._budget.allows(joined.rows * sum(columns))):
                return False
            known = joined
            return True

        return fits
