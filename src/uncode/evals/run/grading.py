"""Grading while a model decodes: several answers at a time, equal answers once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from ..task import Example, Grade, Task

T = TypeVar("T")
Grades = dict[str, Grade]
"""The grades of an answer, by metric."""
MAX_PENDING = 256
"""Answers that wait for their grades; then decoding waits too, so that a kill loses little."""


class GradingPool:
    """Grades answers in threads. A program of an answer runs in the sandbox, in a process of its own."""

    def __init__(self, workers: int | None = None) -> None:
        self._pool = ThreadPoolExecutor(workers or os.cpu_count() or 1)
        self._known: dict[tuple[str, str, str], Future[Grades]] = {}

    def close(self) -> None:
        """Stop. Answers that are not being graded yet are dropped."""
        self._pool.shutdown(cancel_futures=True)

    def submit(self, task: Task[Any], example: Example, text: str) -> Future[Grades]:
        """Grade an answer by every metric of its task. Equal answers to the same example share one grade."""
        name = task.name, example.id, text
        if name not in self._known:
            self._known[name] = self._pool.submit(grade_by_all_metrics, task, example, text)
        return self._known[name]

    def graded(self, task: Task[Any], answers: Iterable[tuple[Example, str, T]]) -> Iterator[tuple[T, Grades]]:
        """The grades of a stream of answers, in the order in which they are found."""
        pending: dict[Future[Grades], list[T]] = {}
        for example, text, payload in answers:
            pending.setdefault(self.submit(task, example, text), []).append(payload)
            yield from _finished(pending, block=len(pending) >= MAX_PENDING)
        while pending:
            yield from _finished(pending, block=True)


def grade_by_all_metrics(task: Task[Any], example: Example, text: str) -> Grades:
    return {metric: task.grade(example, text, metric) for metric in task.graders}


def _finished(pending: dict[Future[Grades], list[T]], block: bool) -> Iterator[tuple[T, Grades]]:
    done = wait(pending, return_when=FIRST_COMPLETED).done if block else {one for one in pending if one.done()}
    for future in [one for one in pending if one in done]:
        for payload in pending.pop(future):
            yield payload, future.result()
