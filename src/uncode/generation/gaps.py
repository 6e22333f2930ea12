"""Gaps in a text: `<mask:N>` stands for N masked tokens, `<mask:?>` for as many as the model chooses.

This module imports no torch, so errors come at once.
"""

from __future__ import annotations

import re

from ..core.errors import require

MAX_GAP_TOKENS = 100_000
MARKER = r"<mask:([^<>]*)>"
CHOSEN = "?"
"""Instead of a number: the model chooses the size."""


def gap_size(marker: re.Match[str]) -> int | None:
    """The number of tokens that a marker stands for; None if the model chooses it. The tokenizer's own mask token has
    no number and stands for 1."""
    number = marker[1]
    if number == CHOSEN:
        return None
    is_whole = number is None or (number.isascii() and number.isdigit() and len(number) <= len(str(MAX_GAP_TOKENS)))
    size = int(number or 1) if is_whole else 0
    require(
        0 < size <= MAX_GAP_TOKENS,
        f"'{marker[0][:40]}' is no gap: write <mask:N> with a whole number N from 1 to {MAX_GAP_TOKENS}, or "
        f"<mask:{CHOSEN}>.",
    )
    return size


def check_gaps(text: str) -> None:
    """Raise if the number of a marker is not a whole number in range."""
    for marker in re.finditer(MARKER, text):
        gap_size(marker)
