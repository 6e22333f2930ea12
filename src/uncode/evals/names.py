"""The names of all tasks: the paper's benchmarks and the mini families."""

from __future__ import annotations

from .suite.families import FAMILIES
from .tasks.benchmarks import TASKS

TASK_NAMES = (*TASKS, *FAMILIES)
