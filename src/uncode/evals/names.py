"""Tasks by name: the paper's benchmarks and their miniatures."""

from __future__ import annotations

from typing import Any

from ..core.errors import require, suggest
from .families import FAMILIES
from .task import Task
from .tasks import TASKS

TASK_NAMES = (*TASKS, *FAMILIES)


def task_named(name: str) -> Task[Any]:
    """The task of that name, in any case."""
    known = name.lower()
    require(known in TASK_NAMES, f"there is no task named '{name}': {suggest(known, TASK_NAMES)}")
    return FAMILIES[known] if known in FAMILIES else TASKS[known]()
