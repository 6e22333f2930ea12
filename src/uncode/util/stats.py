"""Statistics of the reports: confidence intervals, and tests whether two samplers differ on the same examples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import require

K = TypeVar("K")
Numbers = NDArray[np.float64]

DRAWS_PER_CHUNK = 1 << 20
"""Indices that are drawn at a time. It bounds the memory of a bootstrap to about 16 MB."""
MIN_RELATIVE_SPREAD = 1e-13
"""Values that differ by a smaller part of their mean differ by rounding alone; their correlation is noise."""


class Interval(NamedTuple):
    """An estimate and its confidence interval; `f"{interval:.2f}"` formats all three numbers.

    The bounds are infinite where one value is all there is, because it says nothing about its spread.
    """

    estimate: float
    low: float
    high: float

    @classmethod
    def read(cls, data: Sequence[float | None]) -> Interval:
        """The interval of :meth:`data`."""
        estimate, low, high = data
        assert estimate is not None, "an interval has an estimate"
        return cls(estimate, -math.inf if low is None else low, math.inf if high is None else high)

    def data(self) -> list[float | None]:
        """Plain data, for JSON: infinite bounds are None."""
        return [value if math.isfinite(value) else None for value in self]

    def __format__(self, spec: str) -> str:
        return f"{self.estimate:{spec or '.4g'}} {self.bounds(spec or '.4g')}"

    def __str__(self) -> str:
        return format(self)

    def percent(self, digits: int = 1) -> str:
        """The interval as `42.1 % [34.8, 49.8]`. Zero is never shown as -0.0."""
        return f"{100 * self.estimate:z.{digits}f} % {self.bounds(f'z.{digits}f', 100)}"

    def bounds(self, spec: str, scale: float = 1) -> str:
        """The bounds as `[34.8, 49.8]`, or why there are none."""
        if math.isinf(self.high):
            return "(one value has no interval)"
        if math.isclose(self.low, self.high, abs_tol=1e-12):
            return "(no spread)"
        return f"[{scale * self.low:{spec}}, {scale * self.high:{spec}}]"


class McNemar(NamedTuple):
    """The number of examples that only `a` has right, the number that only `b` has right, and the p-value."""

    only_a: int
    only_b: int
    p: float


def wilson(successes: int, total: int, level: float = 0.95) -> Interval:
    """A proportion with Wilson's score interval, which is valid near 0 and 1 too. No continuity correction."""
    require(total > 0, f"a proportion needs at least one example, not {total}.")
    is_valid = 0 <= successes <= total and successes == int(successes)
    require(is_valid, f"successes must be a whole number from 0 to {total}, not {successes}.")
    share, z = successes / total, -NormalDist().inv_cdf(_tail(level))
    centre = (successes + z * z / 2) / (total + z * z)
    half = z / (total + z * z) * math.sqrt(share * (total - successes) + z * z / 4)
    low = 0.0 if successes == 0 else max(0.0, min(share, centre - half))
    high = 1.0 if successes == total else min(1.0, max(share, centre + half))
    return Interval(share, low, high)


def mean_interval(values: ArrayLike, level: float = 0.95, resamples: int = 10_000, seed: int = 0) -> Interval:
    """A mean with its bootstrap percentile interval. The same seed gives the same interval. One value has none: its
    bounds are infinite."""
    return _bootstraps(_numbers(values)[None], level, resamples, seed)[0]


def mean_intervals(rows: Sequence[ArrayLike], resamples: int = 10_000) -> list[Interval]:
    """:func:`mean_interval` of each row, all over the same examples. They share their draws, which saves most of the
    time; each interval is the same as alone, apart from rounding."""
    return _bootstraps(np.stack([_numbers(row) for row in rows]), 0.95, resamples, 0)


def paired_bootstrap(
    a: ArrayLike, b: ArrayLike, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """The mean of `a` - `b` over the same examples, with a bootstrap percentile interval.

    Both values of an example are resampled together, so the difficulty of the examples cancels. It is for numbers such
    as seconds or entropies. For right or wrong use :func:`newcombe`: where few examples differ, the bootstrap is
    too narrow (with 2 gains and 1 loss expected in 164 examples it holds the difference in 85 % of the samples,
    Newcombe's interval in 98 %).
    """
    first, second = _pair(a, b)
    return mean_interval(first - second, level, resamples, seed)


def newcombe(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> Interval:
    """The share that `a` has right minus the share that `b` has right, of the same examples, with Newcombe's score
    interval (Statistics in Medicine 17, 1998, method 10).

    It combines two Wilson intervals, so it is valid for few examples, and for samples of which few or none differ.
    """
    first, second = _pair(a, b)
    require(bool(np.isin([first, second], (0, 1)).all()), "Newcombe's interval takes right or wrong, as 1 or 0.")
    count = len(first)
    one, two = (wilson(int(side.sum()), count, level) for side in (first, second))
    both, neither = int((first * second).sum()), int(((1 - first) * (1 - second)).sum())
    only_a, only_b = int((first > second).sum()), int((first < second).sum())
    margins = (both + only_a) * (only_b + neither) * (both + only_b) * (only_a + neither)
    product = both * neither - only_a * only_b
    corrected = max(product - count / 2, 0.0) if product > 0 else float(product)
    phi = corrected / math.sqrt(margins) if margins else 0.0
    difference = one.estimate - two.estimate
    below, above = one.estimate - one.low, two.high - two.estimate
    low = difference - math.sqrt(max(0.0, below**2 - 2 * phi * below * above + above**2))
    below, above = two.estimate - two.low, one.high - one.estimate
    high = difference + math.sqrt(max(0.0, above**2 - 2 * phi * above * below + below**2))
    return Interval(difference, max(-1.0, low), min(1.0, high))


def mcnemar(a: ArrayLike, b: ArrayLike) -> McNemar:
    """McNemar's test whether `a` and `b`, right or wrong on the same examples, differ: exact, two-sided, binomial."""
    first, second = _pair(a, b)
    binary = bool(np.isin([first, second], (0, 1)).all())
    require(binary, "McNemar's test takes right or wrong, as 1 or 0: use paired_bootstrap for other values.")
    only_a, only_b = int((first > second).sum()), int((first < second).sum())
    return McNemar(only_a, only_b, _binomial_p_value(min(only_a, only_b), only_a + only_b))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction of several p-values, in their order. A corrected value below 0.05 is significant, and
    the probability of any false one among them stays below 0.05."""
    require(all(0 <= p <= 1 for p in p_values), "p-values must lie between 0 and 1.")
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda n: p_values[n])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected


def corrected_tests(pairs: Mapping[K, tuple[ArrayLike, ArrayLike]]) -> dict[K, McNemar]:
    """McNemar's test of each pair, with its p-value after Holm's correction over all of them."""
    tests = {key: mcnemar(a, b) for key, (a, b) in pairs.items()}
    corrected = holm([test.p for test in tests.values()])
    return {key: test._replace(p=p) for (key, test), p in zip(tests.items(), corrected, strict=True)}


def mean_of_intervals(intervals: Sequence[Interval]) -> Interval:
    """The unweighted mean of independent estimates, with the interval that follows from theirs.

    The distances from each estimate to its bounds are added in squares, as variances are (MOVER; Zou and Donner,
    Statistics in Medicine 27, 2008). So it inherits what Wilson's and Newcombe's intervals do near 0 and 1.
    """
    require(len(intervals) > 0, "there are no estimates: give at least one interval.")
    count = len(intervals)
    mean = math.fsum(one.estimate for one in intervals) / count
    below = math.sqrt(math.fsum((one.estimate - one.low) ** 2 for one in intervals)) / count
    above = math.sqrt(math.fsum((one.high - one.estimate) ** 2 for one in intervals)) / count
    return Interval(mean, mean - below, mean + above)


def difference_of_intervals(a: Interval, b: Interval) -> Interval:
    """`a` - `b` of two independent estimates, with the interval that follows from theirs (MOVER, as above)."""
    low = math.hypot(a.estimate - a.low, b.high - b.estimate)
    high = math.hypot(a.high - a.estimate, b.estimate - b.low)
    gap = a.estimate - b.estimate
    return Interval(gap, gap - low, gap + high)


def pearson(x: ArrayLike, y: ArrayLike, level: float = 0.95) -> Interval:
    """Pearson's r with the interval of Fisher's z, which is [-1, 1] for fewer than four points."""
    first, second = _pair(x, y)
    width = -NormalDist().inv_cdf(_tail(level))
    require(len(first) > 1, "a correlation needs at least two points, not one.")
    r = min(1.0, max(-1.0, float(_unit_vector(first) @ _unit_vector(second))))
    if len(first) < 4:
        return Interval(r, -1.0, 1.0)
    if abs(r) == 1:
        return Interval(r, r, r)
    z, half = math.atanh(r), width / math.sqrt(len(first) - 3)
    return Interval(r, math.tanh(z - half), math.tanh(z + half))


def _numbers(values: ArrayLike) -> Numbers:
    numbers = np.asarray(values, dtype=np.float64)
    require(numbers.ndim == 1, f"values must be one list of numbers, not an array of {numbers.ndim} dimensions.")
    require(numbers.size > 0, "there are no values: give at least one number.")
    require(bool(np.isfinite(numbers).all()), "values must be finite: leave out those that are NaN or infinite.")
    return numbers


def _pair(a: ArrayLike, b: ArrayLike) -> tuple[Numbers, Numbers]:
    first, second = _numbers(a), _numbers(b)
    require(len(first) == len(second), f"both must hold the same examples, not {len(first)} and {len(second)} values.")
    return first, second


def _tail(level: float) -> float:
    """The probability mass that an interval leaves out on either side."""
    require(0 < level < 1, f"the level must lie between 0 and 1, such as 0.95, not {level}.")
    return (1 - level) / 2


def _bootstraps(values: Numbers, level: float, resamples: int, seed: int) -> list[Interval]:
    """The interval of each row of `values` [rows, examples], all with the same draws.

    Chunks bound the memory; they do not change the draws.
    """
    count, tail = values.shape[1], _tail(level)
    require(resamples >= 1, f"the bootstrap needs at least one resample, not {resamples}.")
    if count == 1:
        return [Interval(float(value), -math.inf, math.inf) for value in values[:, 0]]
    draws, sums = np.random.default_rng(seed), np.zeros((len(values), resamples))
    step = max(1, DRAWS_PER_CHUNK // count)
    for start in range(0, resamples, step):
        drawn = draws.integers(count, size=(min(step, resamples - start), count))
        sums[:, start : start + step] = _drawn_sums(values, drawn)
    bounds = np.quantile(sums / count, [tail, 1 - tail], axis=1)
    found = zip(values.mean(axis=1), *bounds, strict=True)
    return [Interval(float(mean), float(low), float(high)) for mean, low, high in found]


def _drawn_sums(values: Numbers, drawn: NDArray[np.int64]) -> Numbers:
    """The sum of each row's values at each of the draws. Sums of whole numbers are exact, so 0 stays 0.

    For several rows it is cheaper to count how often each value was drawn, then to multiply.
    """
    if len(values) == 1:
        return np.asarray(values[:, drawn].sum(axis=2))
    size = values.shape[1]
    bins = drawn + size * np.arange(len(drawn))[:, None]
    counts = np.bincount(bins.ravel(), minlength=drawn.size).reshape(drawn.shape)
    return np.asarray(values @ counts.T.astype(np.float64))


def _binomial_p_value(fewer: int, total: int) -> float:
    """The two-sided p-value of `fewer` heads in `total` tosses of a fair coin."""
    middle = total // 2  # relative to the middle coefficient no other overflows; by symmetry half of them suffice
    below = np.arange(middle, 0, -1)
    parts = np.concatenate([[1.0], np.cumprod(below / (total - below + 1))])
    whole = 2 * parts.sum() - (1 if total % 2 == 0 else 0)
    return min(1.0, float(2 * parts[middle - fewer :].sum() / whole))


def _unit_vector(values: Numbers) -> Numbers:
    """The centred values, scaled to length 1. They are divided by the largest value first, so no square overflows."""
    scaled = values / (np.abs(values).max() or 1.0)
    centred = scaled - (mean := float(scaled.mean()))
    length = float(np.linalg.norm(centred))
    require(length > MIN_RELATIVE_SPREAD * abs(mean), "one side is constant: a correlation needs values that vary.")
    return centred / length
