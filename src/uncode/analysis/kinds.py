"""The names of the figures. This module imports neither torch nor numpy."""

from __future__ import annotations

from ..core.errors import require, suggest

KINDS = {
    "heatmap": "the probability that each position is unmasked by each step, and the boundary-first index",
    "trivial": "the share of trivial tokens among the tokens of each step",
    "answers": "when the answer is committed, with what entropy, and whether before the reasoning",
    "accuracy": "the share of right answers, by task and sampler",
    "entropy": "the mean predictive entropy of the masked positions at each step",
}
"""For each figure what it shows."""
RELATIVE = ("answers", "accuracy")
"""Figures without an axis of steps or offsets, which take traces of any length."""


def check_choices(kind: str, parts: int | None, has_reference: bool) -> None:
    """Raise if there is no such figure, or if it does not take these options."""
    require(kind in KINDS, f"there is no figure '{kind}': {suggest(kind, KINDS)}")
    require(parts is None or parts >= 2, f"`parts=` must be at least 2, not {parts}.")
    require(kind == "trivial" or not has_reference, f"the figure '{kind}' has no reference: leave `reference=` out.")
    require(kind not in RELATIVE or parts is None, f"the figure '{kind}' has no steps to divide: leave `parts=` out.")
