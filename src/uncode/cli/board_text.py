"""The leaderboard on the terminal, as JSON, and as a figure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..core.errors import require
from ..util.extras import check_installed
from .outputs import check_output
from .printing import print_table, printing

if TYPE_CHECKING:
    from ..evals.suite.board import Board
    from ..evals.suite.results import Results

FIGURE_KINDS = (".svg", ".png")


def check_plot(plot: Path) -> None:
    """Raise before any work if the figure cannot be drawn there."""
    check_installed("matplotlib", "plots", "--plot")
    require(plot.suffix.lower() in FIGURE_KINDS, f"--plot takes a .svg or .png file, not '{plot}'.")
    check_output(plot, "--plot", "figure", force=False)


def show_board(runs: Sequence[Results], plot: Path | None, as_json: bool) -> None:
    """Print the leaderboard of one or two runs, and draw it if a file is given."""
    from ..evals.suite.board import Board
    from ..util.write import write_whole

    board = Board.of(runs)
    if plot is not None:
        from ..evals.suite.scatter import draw_board

        write_whole(plot, draw_board(board, plot.suffix.lower().removeprefix(".")))
    if as_json:
        typer.echo(json.dumps(_data(board), indent=1))
    else:
        _print(board)


def _print(board: Board) -> None:
    from ..evals.suite import report
    from ..evals.suite.board import NOT_RUN

    about = board.first.about
    with printing() as console:
        console.print(f"{about['model']}: {about['problems']} held-out problems a family, per cent right\n")
        print_table(console, report.standings(board))
        for seed in board.runs:
            console.print()
            print_table(console, report.by_family(board, seed))
        if len(board.names) > 1:
            console.print(
                "\neach row minus the one in the title, in points, with 95 % intervals (not corrected for their "
                "number); p-values of McNemar's exact test after Holm's correction over the table\n",
                soft_wrap=True,
            )
        for reference in board.references if len(board.names) > 1 else ():
            print_table(console, report.differences(board, reference))
            console.print()
        for name, why in board.without_row.items():
            if why != NOT_RUN:
                console.print(f"no row for {name}: {why}", markup=False, soft_wrap=True)
        rest = list(board.without_row.values()).count(NOT_RUN)
        if rest:
            console.print(f"no row for {rest} other presets: {NOT_RUN}")


def _data(board: Board) -> dict[str, Any]:
    """The leaderboard for a program. Accuracies are shares, each with its interval."""
    found = {
        reference: {seed: board.differences(reference, seed) for seed in board.runs} for reference in board.references
    }
    rows = [
        {
            "name": name,
            "seeds": {
                seed: {
                    "average": one.average,
                    "forwards": one.forwards,
                    "on_front": name in board.fronts[seed],
                    "minus": {ref: of[seed][name]._asdict() for ref, of in found.items() if name in of[seed]},
                }
                for seed, one in board.standings[name].items()
            },
        }
        for name in board.names
    ]
    return {
        "rows": rows,
        "without_row": board.without_row,
        "about": {seed: run.about for seed, run in board.runs.items()},
    }
