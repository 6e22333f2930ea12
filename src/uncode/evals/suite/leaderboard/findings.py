"""What the leaderboard shows, in sentences. The tests decide the wording, for our own samplers as for all others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import mean

from ....util.stats import holm, mcnemar
from .. import report
from ..card.agreement import SIGNIFICANCE, Agreement
from .board import Board

MAX_NAMED = 8


def findings(board: Board) -> list[str]:
    """The best row, the Pareto front, and where others are better than Uncode and this library's own samplers."""
    return [_best(board), _front(board), *own_findings(board, board.own), *_two_seeds(board)]


def own_findings(board: Board, names: Iterable[str]) -> list[str]:
    """For each of these rows which others are significantly better, not significantly different, or worse."""
    return [_own(board, name) for name in names]


def _two_seeds(board: Board) -> list[str]:
    if len(board.runs) != 2:
        return []
    return [f"**Two seeds.** {Agreement.of(*board.runs.values()).summary()}."]


def _best(board: Board) -> str:
    signs = board.signs(board.best)
    level = [name for name, sign in signs.items() if sign == 0 and name != board.hindsight]
    below = sum(sign < 0 for name, sign in signs.items() if name != board.hindsight)
    others = f"No significant difference from {_listed(level)}. " if level else ""
    averages = {name: [point.average.estimate for point in board.points[name].values()] for name in board.ranked}
    return (
        f"**`{board.best}` has {report.best_average(averages)}** of the ranked rows: "
        f"{_averages(board, board.best)}. {others}"
        f"It is significantly better than {below} of {len(board.ranked) - 1} other rows{_with_seeds(board)}."
    )


def _front(board: Board) -> str:
    whole = [name for name in board.ranked if all(name in front for front in board.fronts.values())]
    some = [name for name in board.ranked if name not in whole and any(name in f for f in board.fronts.values())]
    by_forwards = sorted(whole, key=lambda name: _mean_forwards(board, name))
    front = ", ".join(f"`{name}` ({_mean_forwards(board, name):.1f} forwards)" for name in by_forwards) or "no row"
    only = f" With one seed only: {_listed(some)}." if some else ""
    return f"**On the Pareto front{_with_seeds(board)}**, from the fewest forwards to the most: {front}.{only}"


def _own(board: Board, name: str) -> str:
    signs = {other: sign for other, sign in board.signs(name).items() if other != board.hindsight}
    better, worse = ([other for other, sign in signs.items() if sign == wanted] for wanted in (1, -1))
    level = [other for other, sign in signs.items() if sign == 0]
    dominating = board.dominating(name)
    texts = [
        f"{_listed(better) or 'no row'} {'are' if len(better) > 1 else 'is'} significantly better",
        f"rows at least as accurate in no more forwards: {_listed(dominating)}" if dominating else "",
        f"no significant difference from {_listed(level)}" if level else "",
        f"{len(worse)} of {len(signs)} rows are significantly worse",
        _behind_on_families(board, name),
    ]
    return f"**`{name}`** ({_averages(board, name)}): {'; '.join(text for text in texts if text)}."


def _behind_on_families(board: Board, name: str) -> str:
    """The families on which another row is significantly better with every seed, or with one, and the best of them."""
    better = {family: _better(board, name, family) for family in next(iter(board.runs.values())).cells}
    found = {family: rows for family, of in better.items() if (rows := _with_every_seed(board, family, of))}
    some = [
        f"{report.short(family)} ({_first_of(_sorted(board, family, rows))}, seed {seed})"
        for family, of in better.items()
        if family not in found
        for seed, rows in of.items()
        if rows
    ]
    only = f"; with one seed only: {', '.join(some)}" if some else ""
    if not found:
        return f"no row is significantly better on one family{only}"
    named = ", ".join(f"{report.short(family)} ({_first_of(rows)})" for family, rows in found.items())
    return f"rows significantly better on one family: {named}{only}"


def _first_of(rows: Sequence[str]) -> str:
    return f"`{rows[0]}`{f' and {len(rows) - 1} more' if len(rows) > 1 else ''}"


def _better(board: Board, name: str, family: str) -> dict[int, set[str]]:
    """The rows that are significantly better on a family, by seed, with Holm's correction over the rows."""
    others, shown = [other for other in board.ranked if other != name], dict[int, set[str]]()
    for seed, run in board.runs.items():
        marks = {other: cell.solved for other in board.ranked if (cell := run.cell(family, other))}
        tests = [mcnemar(marks[other], marks[name]) for other in others]
        corrected = holm([test.p for test in tests])
        pairs = zip(others, tests, corrected, strict=True)
        shown[seed] = {other for other, test, p in pairs if p < SIGNIFICANCE and test.only_a > test.only_b}
    return shown


def _with_every_seed(board: Board, family: str, better: Mapping[int, set[str]]) -> list[str]:
    return _sorted(board, family, set.intersection(*better.values()))


def _sorted(board: Board, family: str, names: Collection[str]) -> list[str]:
    """The best on the family first; equals in the order of the standings."""
    ranked = [name for name in board.ranked if name in names]
    return sorted(ranked, key=lambda name: -_mean_on_family(board, name, family))


def _mean_on_family(board: Board, name: str, family: str) -> float:
    return mean(cell.accuracy.estimate for run in board.runs.values() if (cell := run.cell(family, name)))


def _averages(board: Board, name: str) -> str:
    points = board.points[name].values()
    accuracies = " and ".join(f"{report.percent(one.average)}" for one in points)
    return f"{accuracies} % in {' and '.join(f'{one.forwards:.1f}' for one in points)} forwards"


def _mean_forwards(board: Board, name: str) -> float:
    return mean(point.forwards for point in board.points[name].values())


def _listed(names: Sequence[str]) -> str:
    """The names, the best first; of many the first ones and how many more."""
    shown = ", ".join(f"`{name}`" for name in names[:MAX_NAMED])
    return f"{shown} and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else shown


def _with_seeds(board: Board) -> str:
    return " with both seeds" if len(board.runs) > 1 else ""
