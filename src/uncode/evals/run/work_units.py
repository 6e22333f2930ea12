"""How processes share whole cells: each claims the longest unit of work that nobody has begun.

A unit is decoded by one process. So all of them end at about the same time, however long their units take.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .config import LABEL_FREE, SamplerEntry
from .sample import digest


class WorkUnit(NamedTuple):
    """Samplers of one task that one process runs."""

    task: str
    entries: tuple[SamplerEntry, ...]


def work_units(
    entries: Mapping[str, Sequence[SamplerEntry]], lengths: Mapping[str, int], whole: Collection[str] = ()
) -> list[WorkUnit]:
    """The units of all tasks, the longest first: `entries` and the tokens of an answer, by task.

    A sampler is a unit. Samplers with a label-free rate, and those of the same presets with fixed rates, are one
    unit: the process that chooses the rate needs it again, and has the answers at the chosen rate already. A task of
    `whole` is one unit: equal programs are run once per process, and a run costs more than an answer.
    """
    found = [
        unit
        for task, of in entries.items()
        for unit in ([WorkUnit(task, tuple(of))] if task in whole else _units(task, of))
    ]
    return sorted(found, key=lambda unit: -len(unit.entries) * lengths[unit.task])


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
