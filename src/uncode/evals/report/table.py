"""Tables of text, independent of the format in which they are written, and numbers as text for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...util.stats import Interval

NONE = "-"
"""Shown where there is no number."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


class TextTable(NamedTuple):
    """Titles and rows. The first `labels` columns are names, the others are figures."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    notes: Sequence[str] = ()
    best: frozenset[tuple[int, int]] = frozenset()
    """The row and column of the cells that are the best of their column."""
    labels: int = 1

    def markdown(self) -> str:
        """The titles and rows in Markdown. The best cells are bold."""
        marks = ["---"] * self.labels + ["---:"] * (len(self.titles) - self.labels)
        rows = [[markdown_escape(cell) for cell in row] for row in self.rows]
        for row, column in self.best:
            rows[row][column] = f"**{rows[row][column]}**"
        lines = [[markdown_escape(title) for title in self.titles], marks, *rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


class Section(NamedTuple):
    """The tables of one model. The notes say what the tables lack, and come before them."""

    title: str
    tables: Sequence[TextTable]
    notes: Sequence[str] = ()


class Document(NamedTuple):
    """A whole report."""

    title: str
    sections: Sequence[Section]


def markdown_escape(text: str) -> str:
    """Text for Markdown in one line: signs with a meaning are written out."""
    return _TAG.sub("&lt;", " ".join(text.replace("|", "\\|").split("\n")))


def percent(value: Interval) -> str:
    """A share as `42.1 [34.8, 49.8]`."""
    estimate, low, high = (f"{100 * part:z.1f}" for part in value)
    return f"{estimate} [{low}, {high}]"


def points(value: Interval, mark: str = "") -> str:
    """A difference of shares as `+14.6 [+8.2, +21.0]`, with a mark behind the estimate."""
    estimate, low, high = (f"{100 * part:+z.1f}" for part in value)
    return f"{estimate}{mark} [{low}, {high}]"


def p_value(value: float) -> str:
    return "<0.0001" if value < 0.0001 else f"{value:.4f}" if value < 0.01 else f"{value:.3f}"


def number(value: float | None) -> str:
    """A number with at least three significant digits, without an exponent."""
    if value is None:
        return NONE
    size = abs(value)
    return f"{value:z.0f}" if size >= 1000 else f"{value:z.1f}" if size >= 100 else f"{value:z.2f}"


def times(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}x"
