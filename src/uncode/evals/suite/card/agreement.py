"""Whether two training runs rank the samplers alike: every pair of samplers by McNemar's test, in both runs."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from ....util.stats import McNemar, holm, mcnemar
from ..results import Results

SIGNIFICANCE = 0.05
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

    def p_value(self, is_corrected: bool) -> float:
        return self.corrected if is_corrected else self.counts.p


class Pair(NamedTuple):
    """Two samplers in both runs."""

    a: str
    b: str
    first: PairTest
    second: PairTest

    def is_significant(self, is_corrected: bool = True) -> bool:
        """Whether the difference is significant in at least one run."""
        return min(test.p_value(is_corrected) for test in (self.first, self.second)) < SIGNIFICANCE

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
        names = [name for name in first.samplers() if _has(first, name) and _has(second, name)]
        tests = [tests_of(results, names) for results in (first, second)]
        pairs = [Pair(a, b, tests[0][a, b], tests[1][a, b]) for a, b in combinations(names, 2)]
        averages = [[results.average(name) for results in (first, second)] for name in names]
        changes = [Change(n, a.estimate, b.estimate) for n, (a, b) in zip(names, averages, strict=True) if a and b]
        return cls(pairs, sorted(changes, key=lambda change: -abs(change.points)))

    def summary(self) -> str:
        """How many averages are too far apart, and how many pairs have another sign, in three sentences."""
        largest = self.changes[0]
        moved = sum(abs(change.points) > MAX_CHANGE for change in self.changes)
        return (
            f"The averages of two trainings should lie within {MAX_CHANGE:g} points. {moved} of {len(self.changes)} do "
            f"not (each fixed rate counts); `{largest.sampler}` changes most, from {100 * largest.first:.1f} to "
            f"{100 * largest.second:.1f} %. "
            f"{len(self.significant())} pairs of samplers differ significantly in at least one run, and in "
            f"{len(self.differing())} of these the two runs do not have the same sign"
        )

    def significant(self, is_corrected: bool = True) -> list[Pair]:
        return [pair for pair in self.pairs if pair.is_significant(is_corrected)]

    def differing(self, is_corrected: bool = True) -> list[Pair]:
        """The pairs that are significant in either run and do not have the same sign in both."""
        return [pair for pair in self.significant(is_corrected) if not pair.has_same_sign]


def tests_of(results: Results, names: list[str]) -> dict[tuple[str, str], PairTest]:
    """McNemar's exact test of each pair of samplers, on the problems of all families."""
    marks = {name: solved for name in names if (solved := results.solved(name)) is not None}
    counts = {(a, b): mcnemar(marks[a], marks[b]) for a, b in combinations(names, 2)}
    corrected = holm([one.p for one in counts.values()])
    return {pair: PairTest(one, p) for (pair, one), p in zip(counts.items(), corrected, strict=True)}


def _has(results: Results, name: str) -> bool:
    return results.solved(name) is not None
