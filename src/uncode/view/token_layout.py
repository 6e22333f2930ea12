"""Tokens on lines of monospaced columns, for pictures in which nothing can measure a font."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .visible_text import BREAK

CUT = "…"
HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Unicode categories without a shape: controls, direction marks, surrogates, private, unassigned, separators."""


class Part(NamedTuple):
    """The part of a token that stands on one line."""

    line: int
    column: int
    width: int
    text: str


class TokenText(NamedTuple):
    """The text to lay out for one token. A piece that is `alone` (a mask, an EOS) is no part of a word."""

    text: str
    alone: bool = False


def visible(text: str) -> str:
    """The text with the number of each character that has no shape, or that turns the direction of its neighbours.

    Line breaks stay. The result holds only characters that XML allows.
    """
    return "".join(
        one if one == "\n" or unicodedata.category(one) not in HIDDEN else f"\\u{ord(one):04x}"  # as on the page
        for one in text.replace("\r\n", "\n")
    )


def width_of(text: str) -> int:
    """The columns that a text takes: two for a wide character (CJK, emoji), none for a combining one."""
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def cut_to(text: str, width: int) -> str:
    """The text, or its start with an ellipsis, in at most `width` columns (at least one)."""
    if width_of(text) <= width:
        return text
    kept = ""
    for character in text:
        if width_of(kept + character) > width - 1:
            break
        kept += character
    return kept + CUT


def wrap(text: str, columns: int) -> list[str]:
    """The lines of a text, broken between words where they are too long."""
    pieces = [TokenText(word) for word in _words(visible(text))]
    parts, lines = lay_out(pieces, columns)
    found = [""] * lines
    for part in (one for each in parts for one in each):
        found[part.line] += " " * (part.column - width_of(found[part.line])) + part.text.replace(BREAK, "")
    return found


def _words(text: str) -> Iterator[str]:
    """The words, each with the blanks before it and the line break after it."""
    word = ""
    for character in text:
        if character == " " and word.strip(" "):
            yield word
            word = ""
        word += character
        if character == "\n":
            yield word
            word = ""
    if word:
        yield word


def lay_out(pieces: Sequence[TokenText], columns: int) -> tuple[list[list[Part]], int]:
    """The parts of each token, and the number of lines.

    Lines break after a line break in the text, and before a word that does not fit. A word may be several tokens. The
    blanks before a word belong to no part, and there are none at the start of a wrapped line.
    """
    found, line, column, wrapped = list[list[Part]](), 0, 0, True
    for at, piece in enumerate(pieces):
        body = piece.text.lstrip(" ") or piece.text
        blanks = len(piece.text) - len(body)
        width = _word_width(pieces, at)
        starts = at == 0 or _starts_word(pieces, at)
        if starts and column > 0 and column + blanks + width > columns >= width:
            line, column, wrapped = line + 1, 0, True
        column += 0 if column == 0 and wrapped else blanks
        parts = list[Part]()
        for number, text in enumerate(body.split("\n")):
            if number > 0:  # the break's sign stands at the end of the line before, also beyond its last column
                last = parts.pop() if parts and parts[-1].line == line else Part(line, column, 0, "")
                parts.append(Part(last.line, last.column, last.width + 1, last.text + BREAK))
                line, column, wrapped = line + 1, 0, False
            for start in _slices(text, columns - column, columns):
                own = max(width_of(start), 1)  # a combining character alone takes a column too
                line, column = (line + 1, 0) if column > 0 and column + own > columns else (line, column)
                parts.append(Part(line, column, own, start))
                column += own
        if not parts:  # a token without a text
            line, column = (line + 1, 0) if column >= columns else (line, column)
            parts, column = [Part(line, column, 1, "")], column + 1
        found.append(parts)
    ends = [part.line + 1 for parts in found for part in parts]
    return found, max(ends, default=1)


def _starts_word(pieces: Sequence[TokenText], at: int) -> bool:
    before, here = pieces[at - 1], pieces[at]
    return here.alone or before.alone or here.text.startswith(" ")


def _word_width(pieces: Sequence[TokenText], at: int) -> int:
    """The columns of the word that begins with the token, up to its line break."""
    first = pieces[at].text.lstrip(" ") or pieces[at].text
    width = max(width_of(first.split("\n")[0]), 1)
    while "\n" not in pieces[at].text and at + 1 < len(pieces) and not _starts_word(pieces, at + 1):
        at += 1
        width += width_of(pieces[at].text.split("\n")[0])
    return width


def _slices(text: str, room: int, columns: int) -> Iterator[str]:
    """The text in slices: one if it fits on a line, else a first one of at most `room` columns, and others."""
    limit = room if room > 0 and width_of(text) > columns else columns
    kept = ""
    for character in text:
        if kept and width_of(kept + character) > limit:
            yield kept
            kept, limit = "", columns
        kept += character
    if kept:
        yield kept
