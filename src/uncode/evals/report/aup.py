"""Accuracy under parallelism (AUP): one figure for the accuracies of a sampler at several budgets.

The definition is that of d3LLM (Qian et al., 2026): the area under accuracy against tokens per forward, in which
accuracies below the best one of the task count less.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MAX_LOSS = 5.0
"""Points below the accuracy at the lowest parallelism. A point that loses more is left out."""
PENALTY = 3.0
"""d3LLM's alpha. A point at 90 % of the best accuracy has the weight exp(-0.3)."""
MIN_POINTS = 2

_BUDGETS = re.compile(r"(?P<family>.+?)(?P<budgets>(?:[ ,]+[A-Za-z_]+=[^ ,=]+)+)$")


class BudgetPoint(NamedTuple):
    """A sampler at one budget."""

    tokens_per_forward: float
    accuracy: float
    """In per cent."""


def aup(points: Sequence[BudgetPoint], best: float) -> float | None:
    """The AUP of a sampler's points; `best` is the best accuracy of any sampler on the task, in per cent.

    None for fewer than two points: one point is no curve.
    """
    if len(points) < MIN_POINTS:
        return None
    ordered = sorted(points, key=lambda point: (point.tokens_per_forward, -point.accuracy))
    first = ordered[0]
    kept = [point for point in ordered if point.accuracy >= first.accuracy - MAX_LOSS]
    weights = [min(1.0, math.exp(-PENALTY * (1 - point.accuracy / best))) if best > 0 else 1.0 for point in kept]
    heights = [point.accuracy * weight for point, weight in zip(kept, weights, strict=True)]
    area = first.tokens_per_forward * first.accuracy
    for number in range(1, len(kept)):
        width = kept[number].tokens_per_forward - kept[number - 1].tokens_per_forward
        area += width * (heights[number] + heights[number - 1]) / 2
    return area


def families(labels: Iterable[str]) -> dict[str, list[str]]:
    """Samplers that were run at several budgets: labels of the form `NAME SETTING=VALUE`, and the label `NAME`."""
    names, found = list(labels), dict[str, list[str]]()
    for label in names:
        match = _BUDGETS.match(label)
        found.setdefault(match["family"] if match else label, []).append(label)
    return {family: members for family, members in found.items() if len(members) >= MIN_POINTS}
