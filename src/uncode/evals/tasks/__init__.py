"""The benchmarks of the paper, and tasks by name."""

from __future__ import annotations

from typing import Any

from ..task import Task
from .benchmarks import TASKS as TASKS


def find_task(name: str) -> Task[Any]:
    """The benchmark or mini family of that name."""
    from ..names import find_task_or_family  # the families are made of benchmarks

    return find_task_or_family(name)
