"""Tasks by name: the paper's benchmarks and their miniatures."""

from __future__ import annotations

from typing import Any

from ..core.errors import nearest, require, suggest
from .families import FAMILIES
from .task import Task
from .tasks import TASKS

TASK_NAMES = (*TASKS, *FAMILIES)


def task_named(name: str) -> Task[Any]:
    """The task of that name, in any case. `stroy` is near `mini_story`: the part behind `mini_` counts."""
    known = name.lower()
    short = {family.removeprefix("mini_"): family for family in FAMILIES if family.removeprefix("mini_") not in TASKS}
    near = nearest(known, [*TASK_NAMES, *short])
    clause = suggest(known, TASK_NAMES) if near is None else f"did you mean '{short.get(near, near)}'?"
    require(known in TASK_NAMES, f"there is no task named '{name}': {clause}")
    return FAMILIES[known] if known in FAMILIES else TASKS[known]()
