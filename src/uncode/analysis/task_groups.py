"""The paper's kinds of tasks."""

from __future__ import annotations

from collections.abc import Iterable

REASONING, PLANNING, PROGRAMS = "reasoning", "planning", "programs"
GROUPS = {
    REASONING: ("gsm8k", "math500", "gpqa", "mini_story", "mini_algebra", "mini_choice"),
    PLANNING: ("countdown", "sudoku", "mini_countdown", "mini_sudoku"),
    PROGRAMS: ("humaneval", "mbpp", "mini_docstring", "mini_sentence"),
}
"""The tasks of each kind: the paper's benchmarks, and the mini families."""
SUDOKU = ("sudoku", "mini_sudoku")


def of_group(group: str, tasks: Iterable[str]) -> list[str]:
    """The tasks of a kind."""
    return [task for task in tasks if task in GROUPS[group]]
