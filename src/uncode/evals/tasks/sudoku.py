"""Sudoku, four by four with eight clues (the puzzles of d1, Zhao et al., 2025)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import final

from ..data import DataSource, Fields
from ..grade.claims import says_unsolvable
from ..grade.find import Found, before_next, boxed, closed, fenced, first_of, gives_up, stated, tagged
from ..grade.pattern import lazy_pattern
from ..task import Example, Grade, Task, TaskSettings

_LABEL = r"(?P<label>(?:[a-z]+ )?r(?:ow)?\s?\d?\W{0,6}(?:is\W{1,3})?|\d[.):]\s{1,3}|[a-d]\b\W{0,3})?"
_ROW = lazy_pattern(
    rf"\W{{0,12}}{_LABEL}\W{{0,6}}" + r"\W{0,6}".join(["([0-4])"] * 4) + r"(?:\W{0,6}([0-4]))?\W{0,12}", re.I
)
_ROW_NUMBERS = (
    dict.fromkeys(("1", "one", "first", "1st", "top"), 1)
    | dict.fromkeys(("2", "two", "second", "2nd"), 2)
    | dict.fromkeys(("3", "three", "third", "3rd"), 3)
    | dict.fromkeys(("4", "four", "fourth", "4th", "last", "final", "bottom"), 4)
)
_ROW_NAME = lazy_pattern(
    rf"\b(?:row|line)\s?(?:number\s|#)?(?P<after>[1-4]|one|two|three|four)\b|\b(?P<before>{'|'.join(_ROW_NUMBERS)})\s(?:row|line)\b"
    r"|(?:^|(?<=[.;]\s))(?P<numeral>[1-4])[.)][ \t]+(?=[0-4]\W)",
    re.I | re.M,
)
_FOUR_CELLS = lazy_pattern(
    r"(?<![\d.])[0-4](?:(?:[\s,;|-]|\band\b){0,6}[0-4]){3}(?!\d|(?:[\s,;|-]|\band\b){1,6}\d(?![.)]))", re.I
)
MAX_ROW_NAMES = 100
_MAX_ROW_CHARACTERS = 120
"""A longer line is not a row of the grid."""


@dataclass(frozen=True)
class SudokuPuzzle(Example):
    clues: str
    """Sixteen digits, row by row. 0 is an empty cell."""
    solution: str
    """One solution. A quarter of the puzzles have several."""


@final
class Sudoku(Task[SudokuPuzzle]):
    """Our rule accepts every grid that keeps the clues and the rules, in any layout."""

    name = "sudoku"
    title = "Sudoku"
    source = DataSource("sudoku.csv", sha256="419655fdc297ba5c607b9decb793b2ab0986ff1b42a0701182fb6a0a1ce47765")
    settings = TaskSettings(shots=5, length=128, rate=0.0, chat=True, block_length=32)
    format = r"\s*<answer>[1-4]{16}</answer>"

    def read(self, row: Fields, number: int) -> SudokuPuzzle:
        clues, solution = row["Puzzle"].strip(), row["Solution"].strip()
        if not re.fullmatch(r"[0-4]{16}", clues):
            raise ValueError(f"'{clues}' is no puzzle of sixteen digits")
        return SudokuPuzzle(f"sudoku/{number}", clues, solution)

    def placeholders(self, example: SudokuPuzzle) -> dict[str, str]:
        rows = [example.clues[at : at + 4] for at in range(0, 16, 4)]
        return {"grid": "\n".join(rows)}

    def grade_ours(self, example: SudokuPuzzle, text: str) -> Grade:
        found = grid_of(before_next(text, "Puzzle:", answered=_solved), example.clues)
        if found is None:
            return Grade(False, None, "there is no grid of sixteen digits")
        cells, place = found
        if not re.fullmatch(r"[0-4]{16}", cells):
            return Grade(False, place.span, f"{cells[:60]!r} is no grid of sixteen digits")
        fault = fault_of(cells, example.clues)
        return Grade(fault is None, place.span, fault or f"{cells} keeps the clues and the rules")

    def grade_as_released(self, example: SudokuPuzzle, text: str) -> Grade:
        """With tags, they must hold exactly the known solution; without tags, it may be anywhere in the text."""
        match = re.search(r"<answer>(.*?)</answer>", text, re.DOTALL)
        if match is not None:
            same = match[1].strip() == example.solution
            return Grade(same, match.span(1), f"the tags {'hold' if same else 'do not hold'} {example.solution}")
        same = example.solution in text.replace(" ", "").replace("\n", "")
        return Grade(same, None, f"{example.solution} {'occurs' if same else 'does not occur'}")


def fault_of(cells: str, clues: str) -> str | None:
    """The first rule that a grid breaks; None for a solution."""
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


def grid_of(text: Found, clues: str) -> tuple[str, Found] | None:
    """The grid in the marked answer; that answer itself if it holds no grid or several; else the last grid of the text.

    The puzzle, quoted next to a solution, is not an answer.
    """
    for finder in (tagged, boxed, closed, stated, fenced):
        region = first_of([finder], text)
        if region is None:
            continue
        if finder is not closed and gives_up(region):
            return region.text, region
        if not re.search(r"\d", region.text):
            continue
        grids = _answers(region, clues)
        alike = len({cells for cells, _ in grids}) == 1 or finder in (closed, fenced)
        return grids[-1] if grids and alike else (region.text, region)
    grids = _answers(text, clues)
    if grids and says_unsolvable(text.whole[grids[-1][1].end : text.end]):
        return None
    return grids[-1] if grids else None


def _answers(region: Found, clues: str) -> list[tuple[str, Found]]:
    """The grids of a region that are not denied. The puzzle is left out if there are other grids."""
    grids = [grid for grid in grids_of(region) or _only_digits(region) if not grid[1].is_denied]
    return [grid for grid in grids if grid[0] != clues] or grids


def _solved(text: Found) -> bool:
    return any("0" not in cells for cells, _ in grids_of(text))


def _only_digits(text: Found) -> list[tuple[str, Found]]:
    """The grid of a text that holds sixteen digits, not counting row numbers. Columns are not rows."""
    if re.search(r"\b(?:first|second|third|fourth|last) column\b", text.text, re.I):
        return []
    bare = re.sub(r"(?i)\brow\s?\d|\br\d\b|<[^<>]{1,20}>|\\[a-z]+", lambda m: " " * len(m[0]), text.text)
    digits = list(re.finditer(r"\d", bare))
    if len(digits) != 16 or any(m[0] not in "01234" for m in digits):
        return []
    return [("".join(m[0] for m in digits), text.part(digits[0].start(), digits[-1].end()))]


def grids_of(text: Found) -> list[tuple[str, Found]]:
    """All grids: four lines of four digits each, or sixteen digits with no letter between them."""
    found = _by_rows(text) or _by_sentences(text) or _by_digits(text)
    solid = [(m[0], text.part(*m.span())) for m in re.finditer(r"(?<!\d)[0-4]{16}(?!\d)", text.text)]
    return sorted({grid[1].span: grid for grid in (*found, *solid)}.values(), key=lambda grid: grid[1].end)


def _by_rows(text: Found) -> list[tuple[str, Found]]:
    """Grids of four lines with four digits, with or without labels. Blank lines and rulers may come between."""
    groups: list[list[_Row]] = [[]]
    at = 0
    for line in text.text.split("\n"):
        bare = (
            re.sub(r"\\[a-z]+(?:\{[a-z|]*\})*", lambda m: " " * len(m[0]), line)
            if len(line) <= _MAX_ROW_CHARACTERS
            else "?"
        )
        match = _ROW.fullmatch(bare.rstrip())
        if match is not None:
            numbered = match[6] is not None
            first = 3 if numbered else 2
            label = match[2] if numbered else match["label"] or ""
            place = text.part(at + match.start(first), at + match.end(first + 3))
            if groups[-1] and groups[-1][-1].numbered != numbered:
                groups.append([])
            groups[-1].append(_Row("".join(match.group(*range(first, first + 4))), label, numbered, place))
        elif re.search(r"\w", bare):
            groups.append([])
        at += len(line) + 1
    grids = []
    for rows in map(_without_header, groups):
        fours = [rows[k : k + 4] for k in range(0, len(rows) - 3, 4)]
        for four in fours:
            if not any(row.numbered for row in four) or "".join(row.label for row in four) in ("1234", "0123"):
                place = Found(text.whole, four[0].place.start, four[3].place.end)
                grids.append(("".join(row.cells for row in four), place))
    return grids


def _by_sentences(text: Found) -> list[tuple[str, Found]]:
    """Grids whose rows are sentences: "1. The first row is 3 1 4 2." A sentence with two lists of four is no row."""
    names = list(_ROW_NAME.finditer(text.text))[-MAX_ROW_NAMES:]
    grids, rows = [], list[Found]()
    for n, name in enumerate(names):
        after = names[n + 1].start() if n + 1 < len(names) else len(text.text)
        number = _ROW_NUMBERS[(name["after"] or name["before"] or name["numeral"]).lower()]
        fours = list(_FOUR_CELLS.finditer(text.text, name.end(), min(after, name.end() + _MAX_ROW_CHARACTERS)))
        if not fours:
            continue
        place = text.part(*fours[0].span())
        if len({_digits(four[0]) for four in fours}) > 1 or place.is_denied or number not in (1, len(rows) + 1):
            rows = []
            continue
        rows = [*rows, place] if number > 1 else [place]
        if number == 4:
            grids.append(("".join(_digits(row.text) for row in rows), Found(text.whole, rows[0].start, rows[3].end)))
    return grids


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


@dataclass(frozen=True)
class _Row:
    cells: str
    label: str
    numbered: bool
    """Whether the label is a bare digit, which may also be a fifth cell."""
    place: Found


def _without_header(rows: list[_Row]) -> list[_Row]:
    """The rows without a header of column numbers: 1 2 3 4 above labelled rows, or above four rows."""
    kept = []
    for n, row in enumerate(rows):
        counts = row.cells in ("1234", "0123") and not row.label
        above_labels = n + 1 < len(rows) and rows[n + 1].label != ""
        if not (counts and (above_labels or (n == 0 and len(rows) == 5))):
            kept.append(row)
    return kept


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
