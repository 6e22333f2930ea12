"""The names of the mini-suite's samplers and groups of families, and the candidate rates. It imports no torch."""

from __future__ import annotations

from ...analysis import task_groups

RATES = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Candidates for Uncode's positional rate: the paper's four, and smaller ones for shorter answers."""
UNCODE = "uncode"
UNSEEN = "uncode unseen"
"""Uncode with `special="unseen"`, the preset's default: EOS counts as the most informative token, as in the release."""
DIRECT = "left_to_right direct"
"""Left to right, forced to answer without reasoning. It runs on the families that have such answers."""
QUICK = ("uniform", "confidence", "semi_ar", "left_to_right", UNCODE, "certain_first")

REASONING, PLANNING, PROGRAMS = (
    tuple(task for task in task_groups.GROUPS[kind] if task.startswith("mini_"))
    for kind in (task_groups.REASONING, task_groups.PLANNING, task_groups.PROGRAMS)
)
GROUPS = {"programs": PROGRAMS, "reasoning": REASONING, "planning": PLANNING}
"""Every family is in one group. The paper's claims are about reasoning and planning."""


def with_rate(rate: float) -> str:
    """The name of Uncode at a fixed rate."""
    return f"{UNCODE} {rate:g}"
