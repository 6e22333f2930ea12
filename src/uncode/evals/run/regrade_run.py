"""Grades the answers of a run again, without decoding."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from ...core.errors import UncodeError, require
from ...util.files import exclusive_lock
from ..task import Example
from ..tasks import find_task
from .folder import RunFolder
from .grading import GradingPool
from .sample import CellName, Sample


@dataclass
class RegradedCell:
    """How the grades of a cell have changed, by our grader."""

    cell: CellName
    answers: int = 0
    right_before: int = 0
    right: int = 0
    changed: int = 0
    """Answers of which any grade has changed, by any metric."""


def regrade_run(
    folder: RunFolder, data: Path | None, workers: int, on_progress: Callable[[int, int], None]
) -> list[RegradedCell]:
    """Grade every answer of a run again, and write the samples with their new grades.

    A run that is being written is refused.
    """
    with ExitStack() as stack:
        for lock in sorted(folder.path.glob("samples.*.lock")):
            stack.enter_context(exclusive_lock(lock, folder.path, "writing samples"))
        samples = folder.all_samples()
        require(len(samples) > 0, f"'{folder.path}' holds no answers yet.")
        graded = _graded(samples, data, workers, on_progress)
        folder.merge(graded)
    found: dict[CellName, RegradedCell] = {}
    for before, after in zip(samples, graded, strict=True):
        cell = found.setdefault(after.cell, RegradedCell(after.cell))
        cell.answers += 1
        cell.right_before += before.grades["correct"].correct
        cell.right += after.grades["correct"].correct
        cell.changed += before.grades != after.grades
    return list(found.values())


def _graded(
    samples: list[Sample], data: Path | None, workers: int, on_progress: Callable[[int, int], None]
) -> list[Sample]:
    """The samples in the same order, with new grades."""
    tasks = {name: find_task(name) for name in dict.fromkeys(sample.task for sample in samples)}
    examples = {name: {example.id: example for example in task.examples(data)} for name, task in tasks.items()}
    pool = GradingPool(workers)
    try:
        futures = [pool.submit(tasks[one.task], _example(one, examples[one.task]), one.text) for one in samples]
        found = []
        for sample, future in zip(samples, futures, strict=True):
            found.append(replace(sample, grades=future.result()))
            on_progress(len(found), len(samples))
    finally:
        pool.close()
    return found


def _example(sample: Sample, known: dict[str, Example]) -> Example:
    if sample.id not in known:
        raise UncodeError(f"the data of {sample.task} has no example '{sample.id}': give the data of the run.")
    return known[sample.id]
