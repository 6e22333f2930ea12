"""Sudoku, four by four, five to eight clues, one solution."""

from __future__ import annotations

import itertools
from functools import cache
from random import Random
from typing import final

from ..tasks.sudoku import Puzzle, fault_of
from .family import Family

CLUES = range(5, 9)
"""The possible numbers of given cells."""


@final
class MiniSudoku(Family[Puzzle]):
    """The split is by solution: no solved grid is in both training and test."""

    name = "mini_sudoku"
    title = "Sudoku in miniature"
    benchmark = "sudoku"
    problem = Puzzle
    length = 80
    prompt_template = "Puzzle:\n{{grid}}\nAnswer:"
    styles = (("direct", 5), ("rows", 5))

    def draw(self, random: Random) -> Puzzle:
        while True:
            solution = random.choice(grids())
            shown = set(random.sample(range(16), random.choice(CLUES)))
            clues = "".join(cell if place in shown else "0" for place, cell in enumerate(solution))
            if sum(all(grid[place] == clues[place] for place in shown) for grid in grids()) == 1:
                return Puzzle("", clues, solution)

    def response(self, example: Puzzle, style: str) -> str:
        answer = f"<answer>{example.solution}</answer>"
        if style == "direct":
            return answer
        rows = [example.solution[at : at + 4] for at in range(0, 16, 4)]
        return "\n".join(f"Row {number}: {row}" for number, row in enumerate(rows, 1)) + f"\n{answer}"

    def split_key(self, example: Puzzle) -> str:
        return example.solution


@cache
def grids() -> tuple[str, ...]:
    """All 288 solved grids, in order."""
    rows = ["".join(row) for row in itertools.permutations("1234")]
    halves = [a + b for a, b in itertools.permutations(rows, 2) if not set(a[:2]) & set(b[:2])]
    return tuple(top + low for top in halves for low in halves if fault_of(top + low, "0" * 16) is None)
