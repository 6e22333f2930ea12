"""Tasks by name: the paper's benchmarks and the mini families."""

from __future__ import annotations

from typing import Any

from ..core.errors import nearest, require, suggest
from .families import FAMILIES
from .task import Task
from .tasks.benchmarks import TASKS

TASK_NAMES = (*TASKS, *FAMILIES)


def find_task_or_family(name: str) -> Task[Any]:
    """The task or family of that name, in any case. Suggestions ignore `mini_`: for `stroy` it is `mini_story`."""
    known = name.lower()
    short = {family.removeprefix("mini_"): family for family in FAMILIES if family.removeprefix("mini_") not in TASKS}
    near = nearest(known, [*TASK_NAMES, *short])
    clause = suggest(known, TASK_NAMES) if near is None else f"did you mean '{short.get(near, near)}'?"
    require(known in TASK_NAMES, f"there is no task named '{name}': {clause}")
    return FAMILIES[known] if known in FAMILIES else TASKS[known]()
