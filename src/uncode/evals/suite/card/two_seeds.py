"""How much of one training run another with a different seed reproduces."""

from __future__ import annotations

from collections.abc import Sequence

from ....util.stats import Interval
from ...report.table import Table
from .. import report
from ..folder import TrainedModel
from .agreement import Agreement, Pair

MAX_NAMED_PAIRS = 12
"""Pairs that the text names; the table has all."""


def two_seeds(runs: Sequence[TrainedModel]) -> str:
    """How much of the first run the second reproduces: cells, averages, and the sign of every difference."""
    first, second = (run.results for run in runs)
    agreement = Agreement.of(first, second)
    cells = {
        family: [(cell.accuracy, two.accuracy) for name, cell in of.items() if (two := second.cell(family, name))]
        for family, of in first.cells.items()
    }
    listed = [pair for pairs in cells.values() for pair in pairs]
    apart = {report.short(family): len(pairs) - _overlapping(pairs) for family, pairs in cells.items()}
    without = ", ".join(f"{name} {count}" for name, count in apart.items() if count) or "none"
    changes = Table(
        ["sampler", *(f"average, seed {run.seed}" for run in runs), "change in points"],
        [[one.sampler, f"{100 * one.first:.1f}", f"{100 * one.second:.1f}", f"{one.points:+.1f}"]
         for one in agreement.changes],
    )  # fmt: skip
    return (
        f"Of {len(listed)} cells, {_inside(listed)} of the second run lie inside the interval of the first, and the "
        f"intervals of {_overlapping(listed)} overlap. Cells without overlap: {without}. The intervals cover the "
        f"choice of problems only; two training runs differ by more.\n\n{changes.markdown()}\n\n"
        f"{_signs(agreement)}\n\n{_differing(agreement, runs)}"
    )


def _signs(agreement: Agreement) -> str:
    counts = [(len(agreement.significant(holm)), len(agreement.differing(holm))) for holm in (True, False)]
    contradictions = sum(pair.is_contradiction() for pair in agreement.pairs)
    return (
        f"There are {len(agreement.pairs)} pairs of samplers, where every fixed rate counts as a separate sampler. "
        "Each pair is tested on all problems (exact McNemar test). After Holm's correction over the pairs of a run, "
        f"{counts[0][0]} pairs differ significantly in at least one run (p < 0.05). In {counts[0][1]} of these the "
        f"two runs do not have the same sign{_named(agreement.differing())}; in {contradictions or 'none'} both runs "
        f"are significant with opposite signs. Without the correction, {counts[1][0]} pairs are significant, and the "
        f"signs of {counts[1][1]} differ."
    )


def _named(pairs: Sequence[Pair]) -> str:
    if not pairs:
        return ""
    names = ", ".join(f"{pair.a} / {pair.b}" for pair in pairs[:MAX_NAMED_PAIRS])
    return f" ({names}{', ...' if len(pairs) > MAX_NAMED_PAIRS else ''})"


def _differing(agreement: Agreement, runs: Sequence[TrainedModel]) -> str:
    """The pairs of samplers whose difference is significant in either run and has another sign in the other."""
    pairs = sorted(agreement.differing(is_corrected=False), key=_smallest_p)
    if not pairs:
        return "No pair of samplers that is significant in either run has another sign in the other."
    rows = [
        [f"{pair.a} / {pair.b}", *(_counts(test.counts) for test in (pair.first, pair.second)),
         "yes" if pair.is_significant() else ""]
        for pair in pairs
    ]  # fmt: skip
    titles = ["pair", *(f"seed {run.seed}: only the first, only the second, p" for run in runs), "after Holm"]
    return (
        f"These {len(pairs)} of {len(agreement.pairs)} pairs differ significantly in either run (exact McNemar test, "
        "p < 0.05 without a correction) and do not have the same sign in both. The numbers are the problems that only "
        "the first sampler of the pair solves, and that only the second solves. The last column says whether one of "
        f"the two p-values is below 0.05 after Holm's correction.\n\n{Table(titles, rows).markdown()}"
    )


def _smallest_p(pair: Pair) -> float:
    return min(pair.first.counts.p, pair.second.counts.p)


def _counts(counts: tuple[int, int, float]) -> str:
    only_a, only_b, p = counts
    return f"{only_a}, {only_b}, {'< 0.001' if p < 0.001 else f'{p:.3f}'}"


Estimates = tuple[Interval, Interval]


def _inside(pairs: Sequence[Estimates]) -> int:
    return sum(one.low <= two.estimate <= one.high for one, two in pairs)


def _overlapping(pairs: Sequence[Estimates]) -> int:
    return sum(one.low <= two.high and two.low <= one.high for one, two in pairs)
