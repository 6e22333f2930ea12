"""Short reprs for notebooks: one line that says what a thing is, never the numbers of a tensor."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ..pieces.piece import Piece, Table

LONGEST = 100
"""Characters of a repr."""


def counted(count: int, noun: str) -> str:
    """`1 row`, `2 rows`, `1,000 rows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def brief(piece: Piece, settings: bool = True) -> str:
    """A piece by its name, the pieces in it, and the settings that are not its defaults: `TopK(Even(steps=12))`.

    A sum of scores reads as a sum. Frequency tables are left out. Without `settings`, names alone.
    """
    terms = getattr(piece, "terms", (piece,))
    if len(terms) > 1:
        return " + ".join(brief(term, settings) for term in terms)
    inside = []
    for field in fields(piece):
        value = getattr(piece, field.name)
        if isinstance(value, Piece):
            inside.append(brief(value, settings))
        elif settings and value != field.default and not isinstance(value, Table):
            inside.append(f"{field.name}={_setting(value)}")
    return type(piece).__name__ + (f"({', '.join(inside)})" if inside else "")


def one_line(start: str, parts: list[Piece]) -> str:
    """Pieces in brackets after `start`, in at most :data:`LONGEST` characters."""
    for settings in (True, False):
        text = start + ", ".join(brief(part, settings) for part in parts) + ")"
        if len(text) <= LONGEST:
            return text
    return text[: LONGEST - 4] + "...)"


def _setting(value: Any) -> str:
    if isinstance(value, tuple) and len(value) > 3:
        return f"{len(value)} items"
    return repr(value)


def unusual(whole: Piece, names: tuple[str, ...]) -> list[Piece]:
    """The parts of a piece that are not its defaults."""
    made = {field.name: field.default_factory for field in fields(whole)}
    parts = ((name, getattr(whole, name)) for name in names)
    return [part for name, part in parts if part != made[name]()]  # type: ignore[operator]
