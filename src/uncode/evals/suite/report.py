"""The mini-suite's tables as rows of text, for the terminal and for Markdown: of one run, and of a leaderboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...util.stats import Interval, newcombe
from ..report.table import NONE, TextTable
from .board import LEFT_TO_RIGHT, SIGNIFICANCE, Board
from .names import RATES, UNCODE, UNSEEN, with_rate
from .results import Results

SOUND = (
    "An answer is sound if every equation is true and follows from the problem or from the equations before it, and "
    "the last one gives the final answer"
)
"""What `reasoning` measures, as a sentence without its end."""


def short(family: str) -> str:
    return family.removeprefix("mini_")


def accuracy(results: Results, intervals: bool = False) -> TextTable:
    """The accuracy of every sampler on every family, the average, and Uncode's lead over the sampler."""
    families = list(results.cells)
    rows = []
    for name in _ordered(results):
        cells = [results.cell(family, name) for family in families]
        cells_text = ["" if c is None else percent(c.accuracy, whole=intervals) for c in cells]
        average = results.average(name)
        mean = "" if average is None else percent(average, whole=True)
        gap = None if name == UNCODE else results.difference(UNCODE, name)
        lead = "" if gap is None else points(gap)
        forwards = [cell.forwards for cell in cells if cell is not None]
        rows.append([label(results, name), *cells_text, mean, lead, f"{np.mean(forwards):.0f}"])
    titles = ["sampler", *(short(f) for f in families), "average", f"{UNCODE} minus it", "forwards"]
    return TextTable(titles, rows)


def reasoning(results: Results) -> TextTable | None:
    """Right and sound answers of every sampler; None if soundness was not measured."""
    return _reasoning(results, {name: label(results, name) for name in _ordered(results)}, "sampler")


def _reasoning(results: Results, labels: Mapping[str, str], title: str) -> TextTable | None:
    """`labels` are the samplers with their names in the table. The last two columns pool the families."""
    families, rows = results.families_with_reasoning, []
    reference = results.reasoned(LEFT_TO_RIGHT, families)
    for name, text in labels.items():
        by_family = [of(name, [family]) for family in families for of in (results.solved, results.reasoned)]
        shares = [NONE if marks is None else f"{100 * marks.mean():.1f}" for marks in (*by_family, results.lucky(name))]
        lead, sound = NONE, results.reasoned(name, families)
        if sound is not None and reference is not None and name != LEFT_TO_RIGHT:
            lead = points(newcombe(sound, reference))
        rows.append([text, *shares, lead])
    titles = [f"{short(family)} {what}" for family in families for what in ("right", "sound")]
    table = TextTable([title, *titles, "right, not sound", f"sound minus {LEFT_TO_RIGHT}"], rows)
    return table if families else None


def rates(results: Results) -> TextTable:
    """The mean predictive entropy and the accuracy at every candidate rate."""
    rows = []
    for family, found in results.entropies.items():
        for what in ("entropy", "right, %"):
            cells = [results.cell(family, with_rate(float(rate))) for rate in found]
            values = list(found.values()) if what == "entropy" else [c and 100 * c.accuracy.estimate for c in cells]
            shown = ["" if v is None else f"{v:.3f}" if what == "entropy" else f"{v:.1f}" for v in values]
            chosen = f"{results.rate(family):g}" if what == "entropy" else ""
            rows.append([short(family) if what == "entropy" else "", what, *shown, chosen])
    return TextTable(["family", "", *(f"{rate:g}" for rate in RATES), "chosen"], rows)


def biases(results: Results) -> TextTable:
    """When the confidence sampler writes boundary tokens and trivial tokens."""
    boundary = ("first_before_middle", "last_before_middle", "ends_before_middle")
    trivial = ("trivial_early", "trivial_early_left_to_right", "trivial_excess")
    rows = [
        [short(name), *(_interval(of[key]) for key in (*boundary, *trivial))] for name, of in results.biases.items()
    ]
    titles = ["family", "first tenth before the middle", "last tenth before it", "mean of the two"]
    return TextTable([*titles, "trivial, first quarter", "the same, left to right", "difference"], rows)


def times(results: Results) -> TextTable:
    """When the confidence sampler writes each tenth of the answer's span."""
    rows = [[short(name), *(_interval(part) for part in of["when"])] for name, of in results.biases.items()]
    parts = len(next(iter(results.biases.values()))["when"])
    return TextTable(["family", *(f"tenth {n}" for n in range(1, parts + 1))], rows)


def best_fixed(results: Results) -> float:
    """The rate with the best average accuracy, found with the labels."""

    def mean(rate: float) -> float:
        solved = results.solved(with_rate(rate))
        return -1.0 if solved is None else float(solved.mean())

    return max(RATES, key=mean)


def _ordered(results: Results) -> list[str]:
    """The rows in order: baselines, Uncode with chosen rates, with the best fixed rate, other presets, other rates."""
    names = results.samplers()
    if not results.entropies:
        return names
    best = with_rate(best_fixed(results))
    fixed = [with_rate(rate) for rate in RATES if with_rate(rate) != best and with_rate(rate) in names]
    return (
        [name for name in names if name not in (best, UNCODE, *fixed) and not name.startswith(UNCODE)]
        + [name for name in (UNCODE, best) if name in names]
        + [name for name in names if name == UNSEEN or name.startswith(f"{UNCODE}_")]
        + fixed
    )


def label(results: Results, name: str) -> str:
    """The name of a sampler in the tables."""
    if name == UNCODE and results.entropies:
        return f"{UNCODE}, label-free rates"
    if results.entropies and name == with_rate(best_fixed(results)):
        return f"{name}, best fixed rate"
    return name


def percent(interval: Sequence[float], whole: bool = False) -> str:
    """An accuracy in per cent, with its interval if `whole`."""
    estimate, low, high = (100 * value for value in interval)
    return f"{estimate:z.1f} [{low:z.1f}, {high:z.1f}]" if whole else f"{estimate:z.1f}"


def points(shares: Sequence[float]) -> str:
    """A difference of shares in points, with its interval."""
    return f"{Interval(*(100 * value for value in shares)):+z.1f}"


def _interval(values: Sequence[float | None]) -> str:
    return f"{Interval.read(values):z.2f}"


def standings(board: Board) -> TextTable:
    """Rank, averages with intervals, forwards, and whether a row is on the Pareto front."""
    rows = []
    for name, of in board.standings.items():
        rank = "" if name == board.hindsight else str(board.ranked.index(name) + 1)
        averages = [percent(one.average, whole=True) for one in of.values()]
        forwards = [f"{one.forwards:.1f}" for one in of.values()]
        rows.append([rank, board.label(name), *averages, *forwards, _front_mark(board, name)])
    seeds = [f"seed {seed}" for seed in board.runs]
    titles = ["", "preset", *(f"average, {seed}" for seed in seeds), *(f"forwards, {seed}" for seed in seeds)]
    return TextTable([*titles, "Pareto"], rows, labels=2)


def _front_mark(board: Board, name: str) -> str:
    """`front` if a row is on the Pareto front with every seed; the seeds if with some."""
    seeds = [seed for seed, front in board.fronts.items() if name in front]
    if len(seeds) == len(board.runs):
        return "front"
    return f"front, seed {' and '.join(map(str, seeds))}" if seeds else ""


def differences(board: Board, reference: str) -> TextTable:
    """Every other row minus the reference, with its interval and its corrected p-value, for each seed."""
    found = [board.differences(reference, seed) for seed in board.runs]
    rows = [
        [board.label(name), *(text for of in found for text in (points(of[name].difference), p_value(of[name].p)))]
        for name in board.names
        if name != reference
    ]
    titles = [title for seed in board.runs for title in (f"seed {seed}", "p")]
    return TextTable([f"minus {board.label(reference)}", *titles], rows)


def p_value(p: float) -> str:
    """A p-value with a star if it is significant."""
    shown = "< 0.001" if p < 0.001 else f"{p:.3f}"
    return f"{shown}{'*' if p < SIGNIFICANCE else ''}"


def reasoning_on(board: Board, seed: int) -> TextTable | None:
    """Right and sound answers of every row in the run of a seed; None if soundness was not measured."""
    return _reasoning(board.runs[seed], {name: board.label(name) for name in board.names}, f"seed {seed}")


def by_family(board: Board, seed: int) -> TextTable:
    """The accuracy of every row on every family, in the run of a seed. The best of each column are marked."""
    run = board.runs[seed]
    columns = [
        [cell.accuracy for name in board.names if (cell := run.cell(family, name)) is not None] for family in run.cells
    ]
    rows = [[board.label(name), *(percent(column[at]) for column in columns)] for at, name in enumerate(board.names)]
    best = {
        (row, number)
        for number, column in enumerate(columns, 1)
        for row, one in enumerate(column)
        if one.estimate == max(other.estimate for other in column)
    }
    return TextTable([f"seed {seed}", *map(short, run.cells)], rows, best=frozenset(best))
