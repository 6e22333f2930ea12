"""Sudoku, four by four with eight clues (the puzzles of d1, Zhao et al., 2025)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from ..data import Source
from ..grade.find import Found, boxed, closed, everything, fenced, first_of, stated, tagged
from ..task import Example, Grade, Settings, Task

_ROW = re.compile(
    r"^[^\w\n]*(?:[A-Za-z ]*\b\d?\W*[:=]|\d[.)])?[^\w\n]*" + r"[^\w\n]*".join(["([0-4])"] * 4) + r"[^\w\n]*$"
)
_RULER = re.compile(r"^[^\w\n]*$")


@dataclass(frozen=True)
class Puzzle(Example):
    clues: str
    """Sixteen digits, row by row; 0 is an empty cell."""
    solution: str
    """One solution; a quarter of the puzzles have several."""


@final
class Sudoku(Task[Puzzle]):
    """Our rule accepts every grid that keeps the clues and the rules, in any layout."""

    name = "sudoku"
    title = "Sudoku"
    source = Source("sudoku.csv", sha256="419655fdc297ba5c607b9decb793b2ab0986ff1b42a0701182fb6a0a1ce47765")
    settings = Settings(shots=5, length=128, rate=0.0, chat=True, block_length=32)

    def read(self, row: Mapping[str, Any], number: int) -> Puzzle:
        clues, solution = row["Puzzle"].strip(), row["Solution"].strip()
        if not re.fullmatch(r"[0-4]{16}", clues):
            raise ValueError(f"'{clues}' is no puzzle of sixteen digits")
        return Puzzle(f"sudoku/{number}", clues, solution)

    def blanks(self, example: Puzzle) -> dict[str, str]:
        rows = [example.clues[at : at + 4] for at in range(0, 16, 4)]
        return {"grid": "\n".join(rows), "puzzle": example.clues}

    def ours(self, example: Puzzle, text: str) -> Grade:
        found = grid_of(everything(text))
        if found is None:
            return Grade(False, None, "there is no grid of sixteen digits")
        cells, place = found
        if not re.fullmatch(r"[0-4]{16}", cells):
            return Grade(False, place.span, f"{cells[:60]!r} is no grid of sixteen digits")
        fault = fault_of(cells, example.clues)
        return Grade(fault is None, place.span, fault or f"{cells} keeps the clues and the rules")

    def paper(self, example: Puzzle, text: str) -> Grade:
        """In tags, the sixteen digits and nothing else; without tags, the one known solution anywhere."""
        match = re.search(r"<answer>(.*?)</answer>", text, re.DOTALL)
        if match is not None:
            same = match[1].strip() == example.solution
            return Grade(same, match.span(1), f"the tags {'hold' if same else 'do not hold'} {example.solution}")
        same = example.solution in text.replace(" ", "").replace("\n", "")
        return Grade(same, None, f"{example.solution} {'occurs' if same else 'does not occur'}")


def fault_of(cells: str, clues: str) -> str | None:
    """None for a solution; else the first rule it breaks."""
    if "0" in cells:
        return "a cell is empty"
    if any(clue not in ("0", cell) for cell, clue in zip(cells, clues, strict=True)):
        return "a clue was changed"
    for name, places in _UNITS:
        if len({cells[place] for place in places}) < 4:
            return f"{name} holds a digit twice"
    return None


_UNITS = (
    [(f"row {r + 1}", [4 * r + c for c in range(4)]) for r in range(4)]
    + [(f"column {c + 1}", [4 * r + c for r in range(4)]) for c in range(4)]
    + [(f"box {b + 1}", [4 * (b // 2 * 2 + k // 2) + b % 2 * 2 + k % 2 for k in range(4)]) for b in range(4)]
)


def grid_of(text: Found) -> tuple[str, Found] | None:
    """The last grid of the marked answer, or that answer itself where it holds none; of the whole text where none is
    marked.
    """
    for finder in (tagged, boxed, closed, stated, fenced):
        region = first_of([finder], text)
        if region is not None and re.search(r"\d", region.text):
            return last_grid(region) or (region.text, region)
    return last_grid(text)


def last_grid(text: Found) -> tuple[str, Found] | None:
    """The last four rows of four digits on lines of their own, or sixteen digits with no letter between them."""
    found = [grid for grid in (_by_rows(text), _by_digits(text)) if grid is not None]
    return max(found, key=lambda grid: grid[1].end, default=None)


def _by_rows(text: Found) -> tuple[str, Found] | None:
    rows: list[tuple[str, int, int]] = []
    best = None
    at = 0
    for line in text.text.split("\n"):
        match = _ROW.match(line)
        if match is not None:
            rows.append(("".join(match.groups()), at + match.start(1), at + match.end(4)))
            if len(rows) >= 4:
                best = "".join(r[0] for r in rows[-4:]), text.part(rows[-4][1], rows[-1][2])
        elif not _RULER.match(line):
            rows = []
        at += len(line) + 1
    return best


def _by_digits(text: Found) -> tuple[str, Found] | None:
    best = None
    for run in re.finditer(r"(?<![\w.])\d(?:[^\w]*\d)*(?!\w)", text.text):
        digits = list(re.finditer(r"\d", run[0]))
        cells = "".join(m[0] for m in digits[-16:])
        if len(digits) % 16 == 0 and re.fullmatch(r"[0-4]{16}", cells):
            best = cells, text.part(run.start() + digits[-16].start(), run.end())
    return best
