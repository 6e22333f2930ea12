"""The names of the figures. This module imports neither torch nor numpy."""

from __future__ import annotations

from ..core.errors import require, suggest

KINDS = {
    "heatmap": "the probability that each position is unmasked by each step, and the boundary-first index",
    "planning": "the accuracy of each sampler on reasoning and on planning",
    "trivial": "the share of trivial tokens among the tokens of each step",
    "rejection": "the accuracy if trivial tokens are rejected with a probability",
    "anchors": "how much earlier the neighbours of a given token are written",
    "answers": "when the answer is committed, with what entropy, and whether before the reasoning",
    "entropy": "the mean predictive entropy of the masked positions at each step",
    "accuracy": "the share of right answers, by task and sampler",
    "hyperparameters": "the accuracy of Uncode against its rate and its clip, with Sudoku apart",
    "rates": "mean predictive entropy and accuracy of Uncode over its rates, with Pearson's r",
    "priors": "the accuracy without a prior, with each of Uncode's two, and with both",
    "corpora": "the accuracy of Uncode with frequency tables of other corpora",
    "efficiency": "accuracy against speed-up of samplers that write several tokens a forward",
}
"""For each figure what it shows."""
SWEEPS = ("planning", "rejection", "accuracy", "hyperparameters", "rates", "priors", "corpora", "efficiency")
"""Figures of right and wrong answers."""
RELATIVE = ("answers", *SWEEPS)
"""Figures without an axis of steps or offsets, which take traces of any length."""
NO_PARTS = (*RELATIVE, "anchors")


def check_choices(kind: str, parts: int | None, has_reference: bool) -> None:
    """Raise if there is no such figure, or if it does not take these options."""
    require(kind in KINDS, f"there is no figure '{kind}': {suggest(kind, KINDS)}")
    require(parts is None or parts >= 2, f"`parts=` must be at least 2, not {parts}.")
    require(kind == "trivial" or not has_reference, f"the figure '{kind}' has no reference: leave `reference=` out.")
    require(kind not in NO_PARTS or parts is None, f"the figure '{kind}' has no steps to divide: leave `parts=` out.")
