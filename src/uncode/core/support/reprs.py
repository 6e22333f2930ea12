"""Numbers with their nouns, for reprs and messages."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 row`, `2 rows`, `1,000 rows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
