"""What the samplers of the mini-suite are called, and the rates among which one is chosen. Imports no torch."""

from __future__ import annotations

RATES = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Candidates for Uncode's positional rate: the paper's four, and smaller ones, for answers here are shorter."""
BLOCKS = 8
"""Of block-wise samplers: 256 tokens in blocks of 32, in small."""
UNCODE = "uncode"
UNSEEN = "uncode unseen"
"""End tokens as the most informative of all, which is what the released tables imply and the preset's default."""
QUICK = ("uniform", "confidence", "semi_ar", "left_to_right", UNCODE)


def semi_ar(blocks: int) -> str:
    """The name of semi-AR; with as many blocks as the paper has, it needs none."""
    return "semi_ar" if blocks == BLOCKS else f"semi_ar {blocks}"


def with_rate(rate: float) -> str:
    """The name of Uncode at a fixed rate."""
    return f"{UNCODE} {rate:g}"
