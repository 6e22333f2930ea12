"""Samplers against a baseline, on the examples that both have answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...util.stats import Interval, McNemar, holm, mcnemar, newcombe
from .scores import Cost, Score


class Comparison(NamedTuple):
    """A sampler minus the baseline on one task."""

    pairs: int
    """The examples that both have answered."""
    difference: Interval
    """Of the accuracies, with Newcombe's 95 % interval."""
    test: McNemar
    """`only_a` counts the examples that only the sampler has right, `only_b` those that only the baseline has right."""
    corrected: float
    """McNemar's p-value after Holm's correction over the samplers that are compared on this task."""


class Speedup(NamedTuple):
    """The baseline's cost divided by the sampler's, over the examples that both have answered."""

    pairs: int
    seconds: float | None
    forwards: float | None


def compare(baseline: Score, others: Mapping[str, Score], metric: str) -> dict[str, Comparison]:
    """Compare samplers with the baseline on one task. Samplers without a common example are left out."""
    base = baseline.right(metric)
    found = {label: _paired(score.right(metric), base) for label, score in others.items()}
    found = {label: pair for label, pair in found.items() if pair[0]}
    tests = {label: mcnemar(*pair) for label, pair in found.items()}
    corrected = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    return {
        label: Comparison(len(pair[0]), newcombe(*pair), tests[label], corrected[label])
        for label, pair in found.items()
    }


def speedup(baseline: Sequence[Score], other: Sequence[Score]) -> Speedup:
    """Compare the costs of two samplers. Both sequences hold the same tasks in the same order."""
    ours, theirs = [], []
    for base, score in zip(baseline, other, strict=True):
        for id in sorted(base.samples.keys() & score.samples.keys()):
            theirs.append(base.samples[id])
            ours.append(score.samples[id])
    base_cost, cost = Cost.of(theirs), Cost.of(ours)
    return Speedup(len(ours), _ratio(base_cost.seconds, cost.seconds), _ratio(base_cost.forwards, cost.forwards))


def _paired(a: Mapping[str, bool], b: Mapping[str, bool]) -> tuple[list[bool], list[bool]]:
    common = a.keys() & b.keys()
    return [a[id] for id in common], [b[id] for id in common]


def _ratio(above: float, below: float) -> float | None:
    return above / below if above and below else None
