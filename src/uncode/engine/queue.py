"""The requests that wait, and the order in which they are served.

In the order of arrival, one that does not fit is overtaken a bounded number of times. With `short_first`, each request
has a deadline: the forwards of the engine when it came, plus those that so many masks took lately. The earliest
deadline is served first, so a short request passes long ones that came shortly before it, and a long one is passed only
by requests that came before its deadline.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .request import Request

MAX_OVERTAKEN = 16
"""How many later requests may join before one that does not fit. Then the batch drains until it fits."""


@dataclass
class Waiting:
    """A request in the queue."""

    ticket: int
    request: Request
    since: float
    deadline: float = 0.0
    """In forwards of the engine."""
    overtaken: int = 0

    @property
    def masks(self) -> int:
        """Tokens to fill."""
        return self.request.masks


class Queue:
    """Requests in the order in which they are served."""

    def __init__(self, short_first: bool = False) -> None:
        self._short_first = short_first
        self._waiting: deque[Waiting] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._waiting)

    def push(self, waiting: Waiting) -> None:
        if not self._short_first:
            self._waiting.append(waiting)
        else:
            at = bisect_right(self._waiting, waiting.deadline, key=lambda one: one.deadline)
            self._waiting.insert(at, waiting)

    def push_back(self, returned: list[Waiting]) -> None:
        """Requests whose batch failed come first again, in their old order."""
        self._waiting.extendleft(sorted(returned, key=lambda one: one.ticket, reverse=True))

    def remove(self, ticket: int) -> Waiting | None:
        """Take a request out, if it waits."""
        for waiting in self._waiting:
            if waiting.ticket == ticket:
                self._waiting.remove(waiting)
                return waiting
        return None

    def take(self, fits: Callable[[Request], bool], most: int) -> list[Waiting]:
        """Take at most `most` requests that fit. One that does not fit is overtaken at most MAX_OVERTAKEN times."""
        taken: list[Waiting] = []
        passed: list[Waiting] = []
        most_overtaken = 0  # of those passed
        while self._waiting and len(taken) < most and most_overtaken < MAX_OVERTAKEN:
            waiting = self._waiting.popleft()
            if fits(waiting.request):
                taken.append(waiting)
                for one in passed:
                    one.overtaken += 1
                most_overtaken += bool(passed)
            else:
                passed.append(waiting)
                most_overtaken = max(most_overtaken, waiting.overtaken)
        self._waiting.extendleft(reversed(passed))
        return taken

    def take_short(self, fits: Callable[[Request], bool], masks: int, most: int) -> list[Waiting]:
        """Take at most `most` requests with at most so many masks that fit, from anywhere in the queue."""
        taken: list[Waiting] = []
        for waiting in self._waiting:
            if len(taken) < most and waiting.masks <= masks and fits(waiting.request):
                taken.append(waiting)
        for waiting in taken:
            self._waiting.remove(waiting)
        return taken
