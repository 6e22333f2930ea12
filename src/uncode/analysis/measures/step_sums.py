"""Sums over the steps of rows that take different numbers of steps, and means over traces."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...util.stats import Interval, mean_interval
from ..read_traces import Numbers

MAX_DRAWS = 10_000_000
"""Traces times resamples of an interval. More take longer than reading the traces, and change the third digit."""


def resamples_for(traces: int) -> int:
    """The resamples of a bootstrap over so many traces: 10,000, and fewer for more than 1,000 traces."""
    return min(10_000, max(1_000, MAX_DRAWS // traces))


def mean_over(values: ArrayLike) -> Interval:
    """The mean of a number per trace, with its bootstrap interval."""
    numbers = np.asarray(values)
    return mean_interval(numbers, resamples=resamples_for(len(numbers)))


def mean_of_known(values: Numbers) -> Interval | None:
    """The mean of the values that are no NaN, with its bootstrap interval; None if there are none."""
    known = values[~np.isnan(values)]
    return mean_over(known) if len(known) else None


class StepSums:
    """A sum per step, which grows with the longest row."""

    def __init__(self) -> None:
        self.sums = np.zeros(0)

    def add(self, values: Any) -> None:
        if len(values) > len(self.sums):
            self.sums = np.concatenate([self.sums, np.zeros(len(values) - len(self.sums))])
        self.sums[: len(values)] += values


def ratios(sums: Any, counts: Any) -> Numbers:
    """Each sum divided by its count; NaN where the count is 0."""
    found = np.full(len(counts), np.nan)
    np.divide(sums, counts, out=found, where=counts > 0)
    return found


def part_means(values: Numbers, parts: int) -> Numbers:
    """The mean of each of `parts` equal parts, without NaN; a part shorter than a step has the value of its step."""
    starts = np.arange(parts) * len(values) // parts
    stops = np.maximum(starts + 1, np.arange(1, parts + 1) * len(values) // parts)
    is_number = ~np.isnan(values)
    sums, counts = (np.concatenate([[0.0], np.cumsum(one)]) for one in (np.where(is_number, values, 0.0), is_number))
    return ratios(sums[stops] - sums[starts], counts[stops] - counts[starts])


def interval_data(interval: Interval | None) -> list[float | None] | None:
    """An interval for JSON; None where there is none."""
    return None if interval is None else interval.data()


def nullable(values: Numbers) -> list[float | None]:
    """Numbers for JSON, which has no NaN."""
    return [None if np.isnan(value) else float(value) for value in values]
