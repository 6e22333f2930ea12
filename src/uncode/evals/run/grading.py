"""Grading while a model decodes: several answers at a time, equal answers once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from ...util.files import read_text
from ...util.write import write_whole
from ..task import AnyTask, Example
from .sample import Grades, RunSample, digest, grades_from_row, grades_row

CLOSE_SECONDS = 5.0


class GradingPool:
    """Grades answers in threads. A program of an answer runs in the sandbox, in its own process."""

    def __init__(self, workers: int | None = None, shared: Path | None = None) -> None:
        """`shared` is a folder in which processes share the grades of programs: a program takes longer than a file."""
        self._pool = ThreadPoolExecutor(workers or os.cpu_count() or 1)
        self._shared = shared
        self._known: dict[tuple[str, str, str], Future[Grades]] = {}

    def close(self) -> None:
        """Finish what can be graded in CLOSE_SECONDS, and drop the rest."""
        wait(self._known.values(), timeout=CLOSE_SECONDS)
        self._pool.shutdown(cancel_futures=True)

    def submit(self, task: AnyTask, example: Example, text: str) -> Future[Grades]:
        """Grade an answer by every metric of its task. Equal answers to the same example share one grade."""
        name = task.name, example.id, text
        if name not in self._known:
            self._known[name] = self._graded(task, example, text)
        return self._known[name]

    def _graded(self, task: AnyTask, example: Example, text: str) -> Future[Grades]:
        """A grade in pure Python is made at once: a thread would compete with decoding for the interpreter, and
        every operation on the GPU would wait for it."""
        if task.grades_in_processes:
            return self._pool.submit(self._grade_or_read, task, example, text)
        made: Future[Grades] = Future()
        try:
            made.set_result(grade_by_all_metrics(task, example, text))
        except Exception as error:
            made.set_exception(error)
        return made

    def _grade_or_read(self, task: AnyTask, example: Example, text: str) -> Grades:
        """Grade an answer, unless a process has done so. Two that are at it at the same time both do."""
        if self._shared is None:
            return grade_by_all_metrics(task, example, text)
        file = self._shared / f"{digest([task.name, example.id, text])}.json"
        if file.is_file():
            return grades_from_row(json.loads(read_text(file)))
        grades = grade_by_all_metrics(task, example, text)
        write_whole(file, json.dumps(grades_row(grades)))
        return grades


def grade_by_all_metrics(task: AnyTask, example: Example, text: str) -> Grades:
    return {metric: task.grade(example, text, metric) for metric in task.graders}


def grade_again(
    samples: Sequence[RunSample],
    tasks: Iterable[AnyTask],
    examples: Mapping[str, Mapping[str, Example]],
    workers: int | None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[RunSample]:
    """The samples in the same order, with new grades. `examples` are those of each task, by their ids."""
    by_name, found = {task.name: task for task in tasks}, list[RunSample]()
    with closing(GradingPool(workers)) as pool:
        futures = [pool.submit(by_name[one.task], examples[one.task][one.id], one.text) for one in samples]
        for sample, future in zip(samples, futures, strict=True):
            found.append(replace(sample, grades=future.result()))
            on_progress(len(found), len(samples))
    return found
