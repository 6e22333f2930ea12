"""Sudoku, four by four with eight clues (the puzzles of d1, Zhao et al., 2025)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from ..data import Source
from ..grade.find import Found, before_next, boxed, closed, fenced, first_of, stated, tagged
from ..task import Example, Grade, Settings, Task

_LABEL = r"(?:(?:[a-z]+ )?r(?:ow)?\s?\d?\W{0,6}(?:is\W{1,3})?|\d[.):]\s{1,3})?"
_ROW = re.compile(
    rf"\W{{0,12}}{_LABEL}\W{{0,6}}" + r"\W{0,6}".join(["([0-4])"] * 4) + r"(?:\W{0,6}([0-4]))?\W{0,12}", re.I
)
_WIDEST = 120
"""Characters of a line that may be a row."""


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
        return {"grid": "\n".join(rows)}

    def ours(self, example: Puzzle, text: str) -> Grade:
        found = grid_of(before_next(text, "Puzzle:", answered=_solved))
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
    """The grid of the marked answer, or that answer itself where it holds none or several; else the text's last."""
    for finder in (tagged, boxed, closed, stated, fenced):
        region = first_of([finder], text)
        if region is not None and re.search(r"\d", region.text):
            grids = grids_of(region) or _only_digits(region)
            alike = len({cells for cells, _ in grids}) == 1 or finder in (closed, fenced)
            return grids[-1] if grids and alike else (region.text, region)
    grids = grids_of(text) or _only_digits(text)
    return grids[-1] if grids else None


def _solved(text: Found) -> bool:
    return any("0" not in cells for cells, _ in grids_of(text))


def _only_digits(text: Found) -> list[tuple[str, Found]]:
    """A place whose digits, but for the numbers of rows, are sixteen."""
    bare = re.sub(r"(?i)\brow\s?\d|\br\d\b|<[^<>]{1,20}>|\\[a-z]+", lambda m: " " * len(m[0]), text.text)
    digits = list(re.finditer(r"\d", bare))
    if len(digits) != 16 or any(m[0] not in "01234" for m in digits):
        return []
    return [("".join(m[0] for m in digits), text.part(digits[0].start(), digits[-1].end()))]


def grids_of(text: Found) -> list[tuple[str, Found]]:
    """Every four rows of four digits on lines of their own, and every sixteen digits with no letter between them."""
    found = _by_rows(text) or _by_digits(text)
    solid = [(m[0], text.part(*m.span())) for m in re.finditer(r"(?<!\d)[0-4]{16}(?!\d)", text.text)]
    return sorted({grid[1].span: grid for grid in (*found, *solid)}.values(), key=lambda grid: grid[1].end)


def _by_rows(text: Found) -> list[tuple[str, Found]]:
    """Lines of four digits, or of five that begin with the row's number; blank lines and rulers may come between."""
    grids, rows, at = [], list[tuple[str, int, int]](), 0
    for line in text.text.split("\n"):
        bare = re.sub(r"\\[a-z]+(?:\{[a-z|]*\})*", lambda m: " " * len(m[0]), line) if len(line) <= _WIDEST else "?"
        match = _ROW.fullmatch(bare.rstrip())
        if match is not None and (match[5] is None or match[1] == str(len(rows) + 1)):
            first = 1 if match[5] is None else 2
            rows.append(("".join(match.groups("")[first - 1 :]), at + match.start(first), at + match.end(first + 3)))
        elif re.search(r"\w", bare):
            rows = []
        if len(rows) == 4:
            grids.append(("".join(row[0] for row in rows), text.part(rows[0][1], rows[3][2])))
            rows = []
        at += len(line) + 1
    return grids


def _by_digits(text: Found) -> list[tuple[str, Found]]:
    grids = []
    for run in re.finditer(r"(?<![\w.])\d(?:[^\w]{0,20}\d)*(?!\w)", text.text):
        digits = list(re.finditer(r"\d", run[0]))
        cells = "".join(m[0] for m in digits)
        if len(digits) % 16 == 0 and re.fullmatch(r"[0-4]+", cells):
            for k in range(0, len(digits), 16):
                start, end = run.start() + digits[k].start(), run.start() + digits[k + 15].end()
                grids.append((cells[k : k + 16], text.part(start, end)))
    return grids
