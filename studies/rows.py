"""New rows among the stored ones, so that a new sampler has its place without decoding every preset again.

    uncode mini --all --samplers mine.toml --problems 256 --out mine
    python -m studies.rows mine/results.json

A second file is the run of the second seed. All rows are on the families and problems of the new ones; the forwards of
a stored row stay the mean of all its problems.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from uncode.core.errors import require
from uncode.evals.suite.board import Board
from uncode.evals.suite.report import differences, standings
from uncode.evals.suite.results import CellResults, Results
from uncode.evals.suite.run import problems_digest

from .trainings import trainings


def beside_stored(new: Results) -> Results:
    """The new rows and the stored ones of the same weights. A new row replaces a stored one of its name."""
    about, stored = new.about, [run.results for run in trainings()]
    found = next((one for one in stored if one.about["weights"] == about["weights"]), None)
    require(found is not None, f"there are no stored results of the weights of '{about['model']}'.")
    assert found is not None
    require(found.about["held_out"] == problems_digest(), "the stored rows are of other problems: measure them again.")
    require(about["draw"] is None, "the stored rows are of the published problems: leave out --draw.")
    require(about["seed"] == found.about["seed"], f"the stored rows were decoded with --seed {found.about['seed']}.")
    require(about["table"] == found.about["table"], "the model's frequency table is not that of its stored rows.")
    cells = {
        family: {name: _first(cell, about["problems"]) for name, cell in found.cells[family].items()} | rows
        for family, rows in new.cells.items()
    }
    entropies = {family: of for family, of in found.entropies.items() if family in cells}
    return replace(new, cells=cells, entropies=entropies)


def _first(cell: CellResults, problems: int) -> CellResults:
    sound = None if cell.sound is None else cell.sound[:problems]
    return replace(cell, right=cell.right[:problems], hasty=cell.hasty[:problems], sound=sound)


def main(files: list[Path]) -> None:
    runs = [Results.load(file) for file in files]
    board = Board.of([beside_stored(run) for run in runs])
    print(f"\n{standings(board).markdown()}")
    for name in runs[0].samplers():
        if name in board.names:
            print(f"\n{differences(board, name).markdown()}")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]] or sys.exit("usage: python -m studies.rows RESULTS [RESULTS]"))
