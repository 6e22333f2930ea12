"""How processes share whole cells: each claims the next unit of work that nobody has begun.

A unit is decoded by one process. So all of them end at about the same time, however long their units take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..task import Task
from .config import LABEL_FREE, SamplerEntry
from .sample import digest


class WorkUnit(NamedTuple):
    """Samplers of one task that one process runs."""

    task: str
    entries: tuple[SamplerEntry, ...]


def work_units(entries: Mapping[str, Sequence[SamplerEntry]], tasks: Mapping[str, Task[Any]]) -> list[WorkUnit]:
    """The units of all tasks, by the entries of each: units of several samplers first, then those whose answers are
    programs, which run while others are decoded, then the longest.

    A sampler is a unit. Samplers with a label-free rate, and those of the same presets with fixed rates, are one
    unit: the process that chooses the rate needs it again, and has the answers at the chosen rate already.
    """

    def order(unit: WorkUnit) -> tuple[int, bool, int]:
        task = tasks[unit.task]
        return -len(unit.entries), not task.grades_in_processes, -task.settings.length

    return sorted((unit for task, of in entries.items() for unit in _units(task, of)), key=order)


def _units(task: str, entries: Sequence[SamplerEntry]) -> list[WorkUnit]:
    calibrated = {entry.preset for entry in entries if entry.options.get("rate") == LABEL_FREE}
    together = tuple(entry for entry in entries if entry.preset in calibrated)
    alone = [WorkUnit(task, (entry,)) for entry in entries if entry.preset not in calibrated]
    return [WorkUnit(task, together), *alone] if together else alone


def claim(folder: Path, model: str, unit: WorkUnit) -> bool:
    """Take a unit, unless a process has it. The folder belongs to one start of a run, so a kill leaves no claim."""
    name = digest([model, unit.task, [entry.label for entry in unit.entries]])
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
