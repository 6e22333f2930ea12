"""The benchmarks of the paper, and tasks by name."""

from __future__ import annotations

from ...core.errors import nearest, require, suggest
from ..task import AnyTask
from .benchmarks import TASKS as TASKS


def find_task(name: str) -> AnyTask:
    """The benchmark or mini family of that name, in any case. Suggestions ignore `mini_`: for `stroy` it is
    `mini_story`."""
    from ..names import TASK_NAMES
    from ..suite.families import FAMILIES  # they are made of benchmarks

    known = name.lower()
    short = {family.removeprefix("mini_"): family for family in FAMILIES if family.removeprefix("mini_") not in TASKS}
    near = nearest(known, [*TASK_NAMES, *short])
    clause = suggest(known, TASK_NAMES) if near is None else f"did you mean '{short.get(near, near)}'?"
    require(known in TASK_NAMES, f"there is no task named '{name}': {clause}")
    return FAMILIES[known] if known in FAMILIES else TASKS[known]()
