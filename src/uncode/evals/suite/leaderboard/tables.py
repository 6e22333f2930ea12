"""The leaderboard's tables as rows of text, for the terminal and for the page."""

from __future__ import annotations

from ....samplers.catalog import catalog
from ....util.stats import Interval
from ...report.table import Table
from ...run.config import SamplerEntry
from .. import report
from ..card.agreement import SIGNIFICANCE
from ..every_preset import entries_by_label
from ..names import UNCODE
from .board import Board, Comparison

ON_FRONT = "front"
MIN_P = 0.001


def standings(board: Board) -> Table:
    """Rank, averages with intervals, forwards, and whether a row is on the Pareto front."""
    rows = []
    for name in board.names:
        points = board.points[name]
        rank = "" if name == board.hindsight else str(board.ranked.index(name) + 1)
        averages = [report.percent(points[seed].average, whole=True) for seed in board.runs]
        forwards = [f"{points[seed].forwards:.1f}" for seed in board.runs]
        rows.append([rank, label(board, name), *averages, *forwards, front_mark(board, name)])
    seeds = [f"seed {seed}" for seed in board.runs]
    titles = ["", "preset", *(f"average, {seed}" for seed in seeds), *(f"forwards, {seed}" for seed in seeds)]
    return Table([*titles, "Pareto"], rows, labels=2)


def front_mark(board: Board, name: str) -> str:
    """`front` if a row is on the Pareto front with every seed; the seeds if with some."""
    seeds = [seed for seed, front in board.fronts.items() if name in front]
    if len(seeds) == len(board.runs):
        return ON_FRONT
    return f"{ON_FRONT}, seed {' and '.join(map(str, seeds))}" if seeds else ""


def differences(board: Board, reference: str) -> Table:
    """Every other row minus the reference, with its interval and its corrected p-value, for each seed."""
    found = {seed: board.compared(reference, seed) for seed in board.runs}
    rows = [
        [label(board, name), *(text for seed in board.runs for text in _compared(found[seed][name]))]
        for name in board.names
        if name != reference
    ]
    titles = [title for seed in board.runs for title in (f"seed {seed}", "p")]
    return Table([f"minus {label(board, reference)}", *titles], rows)


def _compared(one: Comparison) -> tuple[str, str]:
    return report.points([100 * value for value in one.difference]), p_value(one.p)


def p_value(p: float) -> str:
    """A p-value with a star if it is significant."""
    shown = f"< {MIN_P}" if p < MIN_P else f"{p:.3f}"
    return f"{shown}{'*' if p < SIGNIFICANCE else ''}"


def by_family(board: Board, seed: int) -> Table:
    """The accuracy of every row on every family, in the run of a seed. The best of each column are marked."""
    run = board.runs[seed]
    columns = [[_accuracy(board, seed, family, name) for name in board.names] for family in run.cells]
    rows = [
        [label(board, name), *(report.percent(column[at]) for column in columns)] for at, name in enumerate(board.names)
    ]
    best = {
        (row, number)
        for number, column in enumerate(columns, 1)
        for row, one in enumerate(column)
        if one.estimate == max(other.estimate for other in column)
    }
    return Table([f"seed {seed}", *map(report.short, run.cells)], rows, best=frozenset(best))


def _accuracy(board: Board, seed: int, family: str, name: str) -> Interval:
    cell = board.runs[seed].cell(family, name)
    assert cell is not None, "rows are complete"
    return cell.accuracy


def costs(board: Board) -> Table:
    """What each row costs, as its preset says, and the options that are not its defaults."""
    entries, known = entries_by_label(), catalog()
    rows = []
    for name in board.names:
        entry = entries.get(name)
        cost = known[entry.preset].cost if entry is not None else ""
        rows.append([label(board, name), "" if entry is None else _options(entry), cost])
    return Table(["row", "options", "cost"], rows, labels=3)


def _options(entry: SamplerEntry) -> str:
    return ", ".join(f"{name}={value}" for name, value in entry.options.items())


def label(board: Board, name: str) -> str:
    """The name of a row."""
    if name == UNCODE and any(run.entropies for run in board.runs.values()):
        return f"{UNCODE}, label-free rates"
    name = f"{name}, best fixed rate" if name == board.hindsight else name
    return f"{name} (new)" if name in board.new else name
