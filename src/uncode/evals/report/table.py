"""Tables of text, independent of the format in which they are written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_TAG = re.compile(r"<(?=[A-Za-z/!?])")


class Table(NamedTuple):
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
        body = [[_markdown(cell, (r, c) in self.best) for c, cell in enumerate(row)] for r, row in enumerate(self.rows)]
        lines = [[_markdown(title) for title in self.titles], marks, *body]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


class Section(NamedTuple):
    """The tables of one model. The notes say what the tables lack, and come before them."""

    title: str
    tables: Sequence[Table]
    notes: Sequence[str] = ()


class Document(NamedTuple):
    """A whole report."""

    title: str
    sections: Sequence[Section]


def markdown_escape(text: str) -> str:
    """Text for Markdown in one line: signs with a meaning are written out."""
    return _TAG.sub("&lt;", " ".join(text.replace("|", "\\|").split("\n")))


def _markdown(cell: str, is_best: bool = False) -> str:
    return f"**{markdown_escape(cell)}**" if is_best else markdown_escape(cell)
