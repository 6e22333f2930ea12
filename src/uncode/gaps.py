"""Gaps in a text: `<mask:N>` stands for N tokens to fill. Needs no torch, so a bad one is reported at once."""

from __future__ import annotations

import re

from .core.errors import require

LONGEST_GAP = 100_000
MARKER = r"<mask:([^<>]*)>"


def gap_size(marker: re.Match[str]) -> int:
    """How many tokens a marker stands for; the tokenizer's own mask token, which has no number, for one."""
    number = marker[1]
    whole = number is None or (number.isascii() and number.isdigit() and len(number) <= len(str(LONGEST_GAP)))
    size = int(number or 1) if whole else 0
    require(
        0 < size <= LONGEST_GAP,
        f"'{marker[0][:40]}' is no gap: write <mask:N> with a whole number N from 1 to {LONGEST_GAP}.",
    )
    return size


def check_gaps(text: str) -> None:
    """Raise if a marker has no whole number."""
    for marker in re.finditer(MARKER, text):
        gap_size(marker)
