"""The requests that wait: first come, first served, with a bound on how often one may be overtaken."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
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
    overtaken: int = 0


class Queue:
    """Requests in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def push(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)

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
