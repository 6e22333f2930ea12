"""What the leaderboard shows, in sentences. The tests decide the wording, for our own samplers as for all others."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from uncode.evals.suite import report
from uncode.evals.suite.board import SIGNIFICANCE, Board
from uncode.evals.suite.every_preset import entries_by_label
from uncode.evals.suite.names import UNCODE
from uncode.samplers.catalog import catalog
from uncode.util.stats import McNemar, corrected_tests

from ..agreement import Agreement, best_average

MAX_NAMED = 8
MOST_LUCKY = 3
"""Rows that are named for being right without sound reasoning."""


def findings(board: Board) -> list[str]:
    """The best row, the Pareto front, and where others are better than Uncode and this library's own samplers."""
    own = [own_finding(board, name) for name in own_rows(board)]
    return [
        _best(board),
        _front(board),
        *own,
        *_lucky(board),
        f"**Two seeds.** {Agreement.of(*board.runs.values()).summary()}.",
    ]


def _lucky(board: Board) -> list[str]:
    """How often the references are right without sound reasoning, and where it is most frequent; nothing if it was not
    measured with every seed."""
    marks = {name: [run.lucky(name) for run in board.runs.values()] for name in board.ranked}
    shares = {name: [float(one.mean()) for one in of if one is not None] for name, of in marks.items()}
    measured = {name: of for name, of in shares.items() if len(of) == len(board.runs)}
    texts = {name: f"`{name}` {' and '.join(f'{100 * one:.1f}' for one in of)} %" for name, of in measured.items()}
    known = [texts[name] for name in board.references if name in texts]
    most = sorted(measured, key=lambda name: -mean(measured[name]))[:MOST_LUCKY]
    families = " and ".join(map(report.short, board.first.families_with_reasoning))
    found = f"**Right, but not sound**: {', '.join(known)} of the answers to {families}. It is most frequent with "
    return [f"{found}{', '.join(texts[name] for name in most)}."] if known else []


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


def _best(board: Board) -> str:
    found = signs(board, board.best)
    level, below = [name for name, sign in found.items() if sign == 0], list(found.values()).count(-1)
    others = f"No significant difference from {_listed(level)}. " if level else ""
    averages = {name: [one.average.estimate for one in board.standings[name].values()] for name in board.ranked}
    return (
        f"**`{board.best}` has {best_average(averages)}** of the ranked rows: "
        f"{_averages(board, board.best)}. {others}"
        f"It is significantly better than {below} of {len(found)} other rows with both seeds."
    )


def _front(board: Board) -> str:
    whole = [name for name in board.ranked if all(name in front for front in board.fronts.values())]
    some = [name for name in board.ranked if name not in whole and any(name in f for f in board.fronts.values())]
    forwards = {name: mean(one.forwards for one in board.standings[name].values()) for name in whole}
    by_forwards = sorted(whole, key=lambda name: forwards[name])
    front = ", ".join(f"`{name}` ({forwards[name]:.1f} forwards)" for name in by_forwards) or "no row"
    only = f" With one seed only: {_listed(some)}." if some else ""
    return f"**On the Pareto front with both seeds**, from the fewest forwards to the most: {front}.{only}"


def own_finding(board: Board, name: str) -> str:
    """Which other rows are significantly better, not significantly different, or worse than this one."""
    found = signs(board, name)
    better, level, worse = ([other for other, sign in found.items() if sign == wanted] for wanted in (1, 0, -1))
    above = dominating(board, name)
    texts = [
        f"{_listed(better) or 'no row'} {'are' if len(better) > 1 else 'is'} significantly better",
        f"rows at least as accurate in no more forwards: {_listed(above)}" if above else "",
        f"no significant difference from {_listed(level)}" if level else "",
        f"{len(worse)} of {len(found)} rows are significantly worse",
        _behind_on_families(board, name),
    ]
    return f"**`{name}`** ({_averages(board, name)}): {'; '.join(text for text in texts if text)}."


def _behind_on_families(board: Board, name: str) -> str:
    """The families on which another row is significantly better with every seed, or with one, and the best of them."""
    whole, some = list[str](), list[str]()
    for family in board.first.cells:
        better = {seed: _better(board, name, family, seed) for seed in board.runs}
        rows = [other for other in next(iter(better.values())) if all(other in of for of in better.values())]
        if rows:
            whole.append(f"{report.short(family)} ({_first_of(rows)})")
        else:
            some += [f"{report.short(family)} ({_first_of(of)}, seed {seed})" for seed, of in better.items() if of]
    only = f"; with one seed only: {', '.join(some)}" if some else ""
    if not whole:
        return f"no row is significantly better on one family{only}"
    return f"rows significantly better on one family: {', '.join(whole)}{only}"


def _better(board: Board, name: str, family: str, seed: int) -> list[str]:
    """The rows that are significantly better on a family in the run of a seed, with Holm's correction over the rows.

    The best on the family, of both seeds, comes first; equals in the order of the standings.
    """
    marks = {other: cell.solved for other in board.ranked if (cell := board.runs[seed].cell(family, other))}
    tests = corrected_tests({other: (marks[other], marks[name]) for other in board.ranked if other != name})
    return sorted((n for n, test in tests.items() if _sign(test) > 0), key=lambda n: -_mean_on_family(board, n, family))


def _first_of(rows: Sequence[str]) -> str:
    return f"`{rows[0]}`{f' and {len(rows) - 1} more' if len(rows) > 1 else ''}"


def _mean_on_family(board: Board, name: str, family: str) -> float:
    return mean(cell.accuracy.estimate for run in board.runs.values() if (cell := run.cell(family, name)))


def _averages(board: Board, name: str) -> str:
    found = board.standings[name].values()
    accuracies = " and ".join(report.percent(one.average) for one in found)
    return f"{accuracies} % in {' and '.join(f'{one.forwards:.1f}' for one in found)} forwards"


def _listed(names: Sequence[str]) -> str:
    """The names, the best first; of many the first ones and how many more."""
    shown = ", ".join(f"`{name}`" for name in names[:MAX_NAMED])
    return f"{shown} and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else shown
