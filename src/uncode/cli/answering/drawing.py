"""Drawing a canvas in the terminal: masks, drafts, and tokens coloured by commit time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from rich.text import Text

from ...core.moments import EARLY, LATE, MIDDLE, moments
from ...view.row_summary import TraceLine, eos_ids_of
from ...view.visible_text import BREAK, EOS_SIGN

STYLES = {
    EARLY: "bold #1a1a1a on #fde047",
    MIDDLE: "#ffffff on #0e7490",
    LATE: "underline #ffffff on #6b2189",
    "filled": "dim",
    "given": "",
    "masked": "dim",
    "draft": "dim italic",
}
"""Backgrounds go from light to dark, for readers who do not see colours. Without colours: bold, plain, underlined."""
MASK = "·"


class Cell(NamedTuple):
    """A drawn token of a canvas."""

    text: str
    kind: str
    """A key of STYLES."""
    is_eos: bool = False


def draw(cells: Sequence[Cell]) -> Text:
    """The tokens as running text. Each EOS token is one character, since an answer may end in hundreds of them."""
    drawn = Text()
    for cell in cells:
        word = cell.text.lstrip(" ")
        drawn.append(cell.text[: len(cell.text) - len(word)] if drawn else "")  # blanks between words are not coloured
        sign = EOS_SIGN if cell.is_eos else MASK if cell.kind == "masked" else ""
        drawn.append(sign or word.replace("\r", "").replace("\n", f"{BREAK}\n"), style=STYLES[cell.kind])
    return drawn


def cells_of(row: TraceLine) -> list[Cell]:
    """The generated tokens of a finished row."""
    eos_ids = eos_ids_of(row)
    tokens = zip(row["generated_texts"], moments(row["commit_step"]), row["generated_ids"], strict=True)
    return [Cell(text, moment, token in eos_ids) for text, moment, token in tokens]


def merge_eos(cells: Sequence[Cell]) -> list[Cell]:
    """The cells with each run of EOS tokens merged into one, for output without colours."""
    found = list[Cell]()
    for is_eos, run in groupby(cells, key=lambda cell: cell.is_eos):
        same = list(run)
        found += [Cell(f" {EOS_SIGN} x {len(same)}", "given")] if is_eos else same
    return found


def legend(*kinds: str) -> Text:
    """The legend of the colours and signs."""
    drawn = Text().append("committed", style="dim")
    for moment in (EARLY, MIDDLE, LATE):
        drawn.append(" ").append(moment, style=STYLES[moment])
    for kind in kinds:
        sign = {"masked": f"{MASK} masked", "eos": f"{EOS_SIGN} EOS", "draft": "draft"}[kind]
        drawn.append("   ").append(sign, style=STYLES.get(kind, "dim"))
    return drawn
