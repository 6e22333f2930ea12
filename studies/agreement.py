"""Whether two training runs rank the samplers alike: every pair of samplers by McNemar's test, in both runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import mean
from typing import NamedTuple

import numpy as np

from uncode.evals.report.table import TextTable
from uncode.evals.suite.board import SIGNIFICANCE
from uncode.evals.suite.results import Results
from uncode.util.stats import McNemar, corrected_tests, mcnemar

MAX_CHANGE = 2.0
"""Averages of two runs should not be further apart, in points."""


class PairTest(NamedTuple):
    """One sampler against another on the problems of all families, in one run."""

    counts: McNemar
    corrected: float
    """McNemar's p-value after Holm's correction over all pairs of the run."""

    @property
    def sign(self) -> int:
        """1 if the first sampler is right more often, -1 if the second is, 0 if neither is."""
        return int(np.sign(self.counts.only_a - self.counts.only_b))


class Pair(NamedTuple):
    """Two samplers in both runs."""

    a: str
    b: str
    first: PairTest
    second: PairTest

    def is_significant(self, is_corrected: bool = True) -> bool:
        """Whether the difference is significant in at least one run."""
        tests = (self.first, self.second)
        return any((test.corrected if is_corrected else test.counts.p) < SIGNIFICANCE for test in tests)

    def is_contradiction(self) -> bool:
        """Whether both runs have a significant difference, with opposite signs."""
        return not self.has_same_sign and max(self.first.corrected, self.second.corrected) < SIGNIFICANCE

    @property
    def has_same_sign(self) -> bool:
        return self.first.sign == self.second.sign


class Change(NamedTuple):
    """The average of a sampler in both runs."""

    sampler: str
    first: float
    second: float

    @property
    def points(self) -> float:
        return 100 * (self.second - self.first)


class Agreement(NamedTuple):
    """All pairs of the samplers that both runs have, and the change of each average, the largest first."""

    pairs: list[Pair]
    changes: list[Change]

    @classmethod
    def of(cls, first: Results, second: Results) -> Agreement:
        solved = [
            {name: marks for name in run.samplers() if (marks := run.solved(name)) is not None}
            for run in (first, second)
        ]
        names = [name for name in solved[0] if name in solved[1]]
        tests = [_tests(run, names) for run in solved]
        pairs = [Pair(a, b, tests[0][a, b], tests[1][a, b]) for a, b in combinations(names, 2)]
        changes = [Change(name, *(float(run[name].mean()) for run in solved)) for name in names]
        return cls(pairs, sorted(changes, key=lambda change: -abs(change.points)))

    def claim(self) -> str:
        """For how many pairs the runs agree, in a sentence."""
        significant, differing = len(self.significant()), len(self.differing())
        return (
            f"Two training runs agree on which sampler is better in {significant - differing} of {significant} pairs "
            "that differ significantly in at least one run."
        )

    def table(self) -> TextTable:
        """How many averages are too far apart, and how many pairs have another sign."""
        largest = self.changes[0]
        moved = sum(abs(change.points) > MAX_CHANGE for change in self.changes)
        change = f"`{largest.sampler}`, from {100 * largest.first:.1f} to {100 * largest.second:.1f} %"
        rows = {
            "pairs that differ significantly in at least one run": f"{len(self.significant()):,}",
            "of these, pairs without the same sign in both": f"{len(self.differing()):,}",
            f"averages more than {MAX_CHANGE:g} points apart": f"{moved} of {len(self.changes)}",
            "the largest change of an average": change,
        }
        return TextTable(["two training runs", ""], list(map(list, rows.items())))

    def significant(self, is_corrected: bool = True) -> list[Pair]:
        return [pair for pair in self.pairs if pair.is_significant(is_corrected)]

    def differing(self, is_corrected: bool = True) -> list[Pair]:
        """The pairs that are significant in either run and do not have the same sign in both."""
        return [pair for pair in self.significant(is_corrected) if not pair.has_same_sign]


def _tests(solved: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[tuple[str, str], PairTest]:
    """McNemar's exact test of each pair of samplers, on the problems of all families."""
    pairs = {(a, b): (solved[a], solved[b]) for a, b in combinations(names, 2)}
    corrected = corrected_tests(pairs)
    return {names: PairTest(mcnemar(*pair), corrected[names].p) for names, pair in pairs.items()}


def best_average(averages: Mapping[str, Sequence[float]]) -> str:
    """What the sampler with the best mean has, in words: it need not have the best average with every seed."""
    best = max(averages.values(), key=mean)
    is_best = all(value <= most for other in averages.values() for value, most in zip(other, best, strict=True))
    return "the best average" if is_best else "the best mean of the two averages"
