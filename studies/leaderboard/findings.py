"""What the leaderboard says: claims in sentences, and wins, ties and losses as tables. The tests decide both."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from uncode.evals.report.table import NONE, TextTable
from uncode.evals.suite import report
from uncode.evals.suite.board import SIGNIFICANCE, Board
from uncode.evals.suite.every_preset import entries_by_label
from uncode.evals.suite.names import UNCODE
from uncode.samplers.catalog import catalog
from uncode.util.stats import McNemar, corrected_tests

from ..agreement import best_average

MOST_LUCKY = 3
"""Rows that are named for being right without sound reasoning."""
IN_WORDS = {1: "loss", 0: "tie", -1: "win"}
"""How a row stands to another one, by the sign of the other one."""


def headline(board: Board) -> str:
    """The best row, and the rows on the Pareto front."""
    found = list(signs(board, board.best).values())
    averages = {name: [one.average.estimate for one in board.standings[name].values()] for name in board.ranked}
    whole = [name for name in board.ranked if all(name in front for front in board.fronts.values())]
    front = f"{_listed(whole) or 'No row'} {'are' if len(whole) > 1 else 'is'} on the Pareto front with both seeds."
    return (
        f"**`{board.best}` has {best_average(averages)}.** It is significantly better than {found.count(-1)} of "
        f"{len(found)} other rows with both seeds. {front}"
    )


def own_rows(board: Board) -> list[str]:
    """The rows of Uncode and of this library's samplers."""
    known = catalog()
    sources = {label: known[entry.preset].source for label, entry in entries_by_label().items()}
    return [n for n in board.ranked if n.startswith(UNCODE) or sources.get(n, "").startswith("this library")]


def signs(board: Board, reference: str) -> dict[str, int]:
    """For each other ranked row 1 if it is significantly better than the reference with every seed, -1 if worse, or 0.

    The correction is over all rows, also the one that was chosen with labels.
    """
    found = {name: set[int]() for name in board.ranked if name != reference}
    for marks in board.marks.values():
        tests = corrected_tests({name: (marks[name], marks[reference]) for name in board.names if name != reference})
        for name, of in found.items():
            of.add(_sign(tests[name]))
    return {name: of.pop() if len(of) == 1 else 0 for name, of in found.items()}


def _sign(test: McNemar) -> int:
    """1 if the first is significantly better, -1 if the second is, else 0."""
    return 0 if test.p >= SIGNIFICANCE else 1 if test.only_a > test.only_b else -1


def dominating(board: Board, name: str) -> list[str]:
    """The rows that dominate this one with every seed."""
    known = board.standings
    return [n for n in board.ranked if all(known[n][seed].dominates(known[name][seed]) for seed in board.runs)]


def unbeaten(board: Board, rows: Sequence[str]) -> str:
    """Which of these rows lose against no other row, as a sentence."""
    found = [name for name in rows if 1 not in signs(board, name).values()]
    return f"No row is significantly better than {_listed(found, 'or')}." if found else "Each of these rows has losses."


def wins(board: Board, rows: Sequence[str]) -> TextTable:
    """How many other rows each of these is significantly better than, not significantly different from, or worse."""
    lines = []
    for name in rows:
        found = list(signs(board, name).values())
        lines.append([name, *(str(found.count(sign)) for sign in (-1, 0, 1)), str(len(dominating(board, name)))])
    return TextTable(["row", "wins", "ties", "losses", "dominated by"], lines)


def opponents(board: Board, rows: Sequence[str]) -> TextTable:
    """How each of these rows (a column) stands to every ranked row (a line)."""
    found = {name: signs(board, name) for name in rows}
    lines = [
        [other, *(IN_WORDS[of[other]] if other in of else NONE for of in found.values())] for other in board.ranked
    ]
    return TextTable(["against", *rows], lines, labels=1 + len(rows))


def family_losses(board: Board, rows: Sequence[str]) -> TextTable:
    """How many rows are significantly better than each of these on a family: with both seeds, or else with one."""
    lines = [[name, *(_losses(board, name, family) for family in board.first.cells)] for name in rows]
    return TextTable(["row", *map(report.short, board.first.cells)], lines)


def _losses(board: Board, name: str, family: str) -> str:
    better = {seed: _better(board, name, family, seed) for seed in board.runs}
    both = set.intersection(*better.values())
    once = [f"{len(of)} with seed {seed}" for seed, of in better.items() if of]
    return str(len(both)) if both or not once else ", ".join(once)


def _better(board: Board, name: str, family: str, seed: int) -> set[str]:
    """The rows that are significantly better on a family in the run of a seed, with Holm's correction over the rows."""
    marks = {other: cell.solved for other in board.ranked if (cell := board.runs[seed].cell(family, other))}
    tests = corrected_tests({other: (marks[other], marks[name]) for other in board.ranked if other != name})
    return {other for other, test in tests.items() if _sign(test) > 0}


def lucky(board: Board) -> tuple[str, TextTable] | None:
    """How often the references are right without sound reasoning, and where it is most frequent.

    None if it was not measured with every seed.
    """
    marks = {name: [run.lucky(name) for run in board.runs.values()] for name in board.ranked}
    shares = {name: [float(one.mean()) for one in of if one is not None] for name, of in marks.items()}
    measured = {name: of for name, of in shares.items() if len(of) == len(board.runs)}
    known = [name for name in board.references if name in measured]
    most = sorted(measured, key=lambda name: -mean(measured[name]))[:MOST_LUCKY]
    lines = [[n, *(f"{100 * one:.1f}" for one in measured[n])] for n in dict.fromkeys([*known, *most])]
    families = " and ".join(map(report.short, board.first.families_with_reasoning))
    table = TextTable([f"right, not sound, % of {families}", *(f"seed {seed}" for seed in board.runs)], lines)
    return (f"Right answers without sound reasoning are most frequent with {_listed(most)}.", table) if known else None


def _listed(names: Sequence[str], joined_by: str = "and") -> str:
    shown = [f"`{name}`" for name in names]
    return f" {joined_by} ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
