"""The names of the mini-suite's samplers, and the candidate rates. It imports no torch."""

from __future__ import annotations

RATES = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Candidates for Uncode's positional rate: the paper's four, and smaller ones for shorter answers."""
UNCODE = "uncode"
UNSEEN = "uncode unseen"
"""Uncode with `special="unseen"`, the preset's default: EOS counts as the most informative token, as in the release."""
QUICK = ("uniform", "confidence", "semi_ar", "left_to_right", UNCODE, "certain_first")


def with_rate(rate: float) -> str:
    """The name of Uncode at a fixed rate."""
    return f"{UNCODE} {rate:g}"
