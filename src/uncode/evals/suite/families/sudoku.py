"""Sudoku, four by four, four to six clues, one solution."""

from __future__ import annotations

import itertools
from functools import cache
from random import Random
from typing import final

from ...tasks.sudoku import SudokuPuzzle, fault_of
from .family import Family

CLUES = range(4, 7)
"""The possible numbers of given cells."""


@final
class MiniSudoku(Family[SudokuPuzzle]):
    """The split is by solution: no solved grid is in both training and test."""

    name = "mini_sudoku"
    title = "Sudoku in miniature"
    benchmark = "sudoku"
    problem = SudokuPuzzle
    length = 40
    prompt_template = "Puzzle:\n{{grid}}\nAnswer:"
    styles = (("direct", 1),)

    def draw(self, random: Random) -> SudokuPuzzle:
        while True:
            solution = random.choice(grids())
            shown = set(random.sample(range(16), random.choice(CLUES)))
            clues = "".join(cell if place in shown else "0" for place, cell in enumerate(solution))
            if _solutions(clues).bit_count() == 1:
                return SudokuPuzzle("", clues, solution)

    def response(self, example: SudokuPuzzle, style: str) -> str:
        return f" <answer>{example.solution}</answer>"

    def split_key(self, example: SudokuPuzzle) -> str:
        return example.solution


def _solutions(clues: str) -> int:
    """The grids that keep the clues, a bit each."""
    found = (1 << len(grids())) - 1
    for place, cell in enumerate(clues):
        if cell != "0":
            found &= _with_cell()[place, cell]
    return found


@cache
def _with_cell() -> dict[tuple[int, str], int]:
    """For each place and digit the grids that have it there, a bit each."""
    return {
        (place, digit): sum(1 << number for number, grid in enumerate(grids()) if grid[place] == digit)
        for place in range(16)
        for digit in "1234"
    }


@cache
def grids() -> tuple[str, ...]:
    """All 288 solved grids, in order."""
    rows = ["".join(row) for row in itertools.permutations("1234")]
    halves = [a + b for a, b in itertools.permutations(rows, 2) if not set(a[:2]) & set(b[:2])]
    return tuple(top + low for top in halves for low in halves if fault_of(top + low, "0" * 16) is None)
