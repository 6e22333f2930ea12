"""A canvas in the terminal: masks, drafts, and tokens coloured by when they were committed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from rich.text import Text

from ...viewer.moments import EARLY, LATE, MIDDLE, Row, end_ids, moments

STYLES = {
    EARLY: "bold #1a1a1a on #fde047",
    MIDDLE: "#ffffff on #0e7490",
    LATE: "underline #ffffff on #6b2189",
    "filled": "dim",
    "given": "",
    "masked": "dim",
    "draft": "dim italic",
}
"""From light to dark, so that they are told apart without seeing colours; and without any: bold, plain, underlined."""
MASK, END, BREAK = "·", "∎", "↵"


class Cell(NamedTuple):
    """A token of a canvas as it is drawn."""

    text: str
    kind: str
    """A key of STYLES."""
    end: bool = False


def draw(spots: Sequence[Cell]) -> Text:
    """The tokens as running text. End tokens are one sign each: answers end in hundreds of them."""
    drawn = Text()
    for spot in spots:
        word = spot.text.lstrip(" ")
        drawn.append(spot.text[: len(spot.text) - len(word)] if drawn else "")  # blanks stay blank, words stand apart
        sign = END if spot.end else MASK if spot.kind == "masked" else ""
        drawn.append(sign or word.replace("\r", "").replace("\n", f"{BREAK}\n"), style=STYLES[spot.kind])
    return drawn


def spots_of(row: Row) -> list[Cell]:
    """The generated tokens of a finished row."""
    ends = end_ids(row)
    cells = zip(row["generated_texts"], moments(row["commit_step"]), row["generated_ids"], strict=True)
    return [Cell(text, moment, token in ends) for text, moment, token in cells]


def gathered(spots: Sequence[Cell]) -> list[Cell]:
    """Runs of end tokens as one spot each, where no colours tell them apart."""
    found = list[Cell]()
    for end, run in groupby(spots, key=lambda spot: spot.end):
        same = list(run)
        found += [Cell(f" {END} x {len(same)}", "given")] if end else same
    return found


def legend(*kinds: str) -> Text:
    """What the colours and signs mean."""
    drawn = Text().append("committed", style="dim")
    for moment in (EARLY, MIDDLE, LATE):
        drawn.append(" ").append(moment, style=STYLES[moment])
    for kind in kinds:
        sign = {"masked": f"{MASK} masked", "end": f"{END} end token", "draft": "draft"}[kind]
        drawn.append("   ").append(sign, style=STYLES.get(kind, "dim"))
    return drawn
