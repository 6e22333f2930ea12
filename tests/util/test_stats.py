"""The statistics against scipy, against what they promise, and against what a user may do wrong."""

from __future__ import annotations

import math
import tracemalloc
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st

from uncode.core.errors import UncodeError
from uncode.util import stats
from uncode.util.stats import (
    Interval,
    mcnemar,
    mean_interval,
    mean_intervals,
    newcombe,
    paired_bootstrap,
    pearson,
    wilson,
)

LEVELS = (0.5, 0.9, 0.95, 0.999)
levels = st.floats(0.01, 0.999)
counts = st.integers(1, 10_000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))
pairs = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)
points = st.lists(st.tuples(*[st.floats(-1e6, 1e6).map(lambda x: round(x, 3))] * 2), min_size=4, max_size=30)


def discordant(only_a: int, only_b: int, both: int = 3) -> tuple[np.ndarray, np.ndarray]:
    a = np.repeat([True, False, True, False], [only_a, only_b, both, both])
    return a, np.repeat([False, True, True, False], [only_a, only_b, both, both])


def test_intervals_print() -> None:
    interval = Interval(0.421, 0.3479, 0.4981)
    assert interval.percent() == "42.1 % [34.8, 49.8]"
    assert interval.percent(0) == "42 % [35, 50]"
    assert Interval(-0.00001, -0.0123, 0.0).percent() == "0.0 % [-1.2, 0.0]"
    assert f"{interval:.2f}" == "0.42 [0.35, 0.50]"
    assert str(interval) == f"{interval}" == "0.421 [0.3479, 0.4981]"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("successes", "total"), [(0, 1), (1, 1), (0, 17), (17, 17), (1, 1000), (63, 150), (999, 1319)])
def test_wilson_is_that_of_scipy(successes: int, total: int, level: float) -> None:
    expected = scipy.stats.binomtest(successes, total).proportion_ci(level, method="wilson")
    assert wilson(successes, total, level) == pytest.approx((successes / total, expected.low, expected.high), rel=1e-9)


@given(counts, levels)
def test_wilson_lies_in_range_and_holds_the_estimate(count: tuple[int, int], level: float) -> None:
    successes, total = count
    share, low, high = wilson(successes, total, level)
    assert 0 <= low <= share == successes / total <= high <= 1
    assert (low == 0) == (successes == 0) and (high == 1) == (successes == total)


@given(counts, levels, st.integers(2, 5))
def test_wilson_shrinks_with_more_examples_and_mirrors(count: tuple[int, int], level: float, times: int) -> None:
    successes, total = count
    few, many = wilson(successes, total, level), wilson(times * successes, times * total, level)
    assert many.high - many.low < few.high - few.low
    failures = wilson(total - successes, total, level)
    assert (1 - failures.high, 1 - failures.low) == pytest.approx((few.low, few.high), abs=1e-12)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_bootstraps_are_those_of_scipy(level: float) -> None:
    draws = np.random.default_rng(1)
    a, b = draws.gamma(2.0, size=80), draws.random(80) < 0.6
    options: Any = {"confidence_level": level, "n_resamples": 20_000, "method": "percentile", "vectorized": True}
    paired = scipy.stats.bootstrap(
        (a, b), lambda x, y, axis=-1: (x - y * 1.0).mean(axis), paired=True, rng=draws, **options
    ).confidence_interval
    alone = scipy.stats.bootstrap((a,), np.mean, rng=draws, **options).confidence_interval
    tolerance = 0.02 * a.std()  # a twentieth of the interval, five times the noise of both
    assert paired_bootstrap(a, b, level) == pytest.approx(((a - b).mean(), *paired), abs=tolerance)
    assert mean_interval(a, level) == pytest.approx((a.mean(), *alone), abs=tolerance)


def test_the_bootstrap_covers_the_mean_as_often_as_it_says() -> None:
    draws = np.random.default_rng(2)
    trials = 400
    hits = 0
    for seed in range(trials):
        easy = draws.normal(size=50)  # common to both, so it must cancel
        interval = paired_bootstrap(easy + draws.normal(0.3, 0.2, size=50), easy, 0.9, 400, seed)
        hits += interval.low <= 0.3 <= interval.high
        assert interval.high - interval.low < 0.2  # unpaired it would be about 0.65
    covered = wilson(hits, trials, 0.999)
    assert covered.low <= 0.9 and covered.high >= 0.88  # the percentile interval is a little narrow at 50 examples


@given(pairs, st.integers(0, 1000))
def test_paired_bootstrap_is_antisymmetric(rows: list[tuple[bool, bool]], seed: int) -> None:
    a, b = zip(*rows, strict=True)
    forth, back = paired_bootstrap(a, b, 0.9, 200, seed), paired_bootstrap(b, a, 0.9, 200, seed)
    assert (-back.estimate, -back.high, -back.low) == pytest.approx(forth, abs=1e-12)
    assert len(rows) == 1 or -1 <= forth.low <= forth.high <= 1


def test_the_seed_decides_and_the_chunks_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).normal(size=37)
    expected = mean_interval(values, resamples=500, seed=4)
    assert (
        mean_interval(values, resamples=500, seed=4) == expected == paired_bootstrap(values, values * 0, 0.95, 500, 4)
    )
    assert mean_interval(values, resamples=500, seed=5) != expected
    for chunk in (1, 100, 37 * 499):
        monkeypatch.setattr(stats, "DRAWS_PER_CHUNK", chunk)
        assert mean_interval(values, resamples=500, seed=4) == expected


def test_no_interval_without_a_width_is_shown() -> None:
    constant = mean_interval([0.1] * 33, resamples=50)
    assert constant == pytest.approx((0.1, 0.1, 0.1), abs=1e-15) and f"{constant:.1f}" == "0.1 (no spread)"
    for found in (mean_interval([3]), mean_intervals([[3.0], [4.0]])[0], paired_bootstrap([5], [2])):
        assert found == (3, -math.inf, math.inf)
        assert (
            f"{found:.0f}" == "3 (one value has no interval)"
            and found.percent(0) == "300 % (one value has no interval)"
        )
        assert found.data() == [3, None, None] and Interval.read(found.data()) == found
        assert stats.mean_of_intervals([found, Interval(1, 0, 2)]) == (2, -math.inf, math.inf)
        assert stats.difference_of_intervals(found, Interval(1, 0, 2)) == (2, -math.inf, math.inf)


def test_the_bootstrap_needs_little_memory() -> None:
    right = np.arange(100_000) % 3 == 0
    tracemalloc.start()
    try:
        paired_bootstrap(right, ~right, resamples=100)
        assert tracemalloc.get_traced_memory()[1] < 40e6  # all at once would be 160 MB, and 16 GB for 10,000
    finally:
        tracemalloc.stop()


SPLITS = [(0, 1), (3, 3), (3, 4), (1, 9), (0, 40), (30, 12), (480, 520), (2000, 1900), (2600, 2400), (4000, 3000)]


@pytest.mark.parametrize(("only_a", "only_b"), [*SPLITS, (0, 900), (50_000, 50_700)])
def test_mcnemar_is_the_binomial_test_of_scipy(only_a: int, only_b: int) -> None:
    expected = scipy.stats.binomtest(only_a, only_a + only_b).pvalue
    found = mcnemar(*discordant(only_a, only_b))
    assert found[:2] == (only_a, only_b)
    assert found.p == pytest.approx(expected, rel=1e-9, abs=0)


def test_mcnemar_is_exact_on_small_counts() -> None:
    assert mcnemar([1, 0, 1], [1, 0, 1]) == (0, 0, 1.0)
    assert mcnemar(*discordant(1, 9)).p == pytest.approx(22 / 1024, rel=1e-14)
    assert mcnemar(*discordant(0, 5000)).p == 0  # 2 ** -4999 is no float


@given(pairs)
def test_mcnemar_is_symmetric(rows: list[tuple[bool, bool]]) -> None:
    a, b = zip(*rows, strict=True)
    forth, back = mcnemar(a, b), mcnemar(b, a)
    assert forth == (back.only_b, back.only_a, back.p)
    assert 0 < forth.p <= 1


@given(points, levels)
def test_pearson_is_that_of_scipy(rows: list[tuple[float, float]], level: float) -> None:
    x, y = np.array(rows).T
    assume(min(x.std(), y.std()) > 1e-3)
    expected = scipy.stats.pearsonr(x, y)
    assume(abs(expected.statistic) < 1 - 1e-9)  # z has no digits left there
    ends = expected.confidence_interval(level)
    assert pearson(x, y, level) == pytest.approx((expected.statistic, *ends), rel=1e-6, abs=1e-9)


def test_pearson_at_its_ends() -> None:
    line = np.arange(8.0)
    assert pearson(line, 3 - 2 * line) == pytest.approx((-1, -1, -1), abs=1e-12)
    assert pearson(line, line) == pytest.approx((1, 1, 1), abs=1e-12)
    assert pearson([0, 0, 1, 1], [0, 0, 1, 1]) == (1, 1, 1)
    assert pearson(line * 1e300, line * 1e-300) == pytest.approx((1, 1, 1), abs=1e-12)
    few = scipy.stats.pearsonr([1, 2, 4], [2, 1, 5])
    assert pearson([1, 2, 4], [2, 1, 5]) == pytest.approx((few.statistic, *few.confidence_interval()))
    assert pearson([1, 2], [5, 3]) == pytest.approx((-1, -1, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wilson(0, 0), "at least one example"),
        (lambda: wilson(5, 4), "from 0 to 4, not 5"),
        (lambda: wilson(-1, 4), "not -1"),
        (lambda: wilson(0.5, 4), "whole number"),  # type: ignore[arg-type]
        (lambda: wilson(1, 4, 95), "between 0 and 1, such as 0.95, not 95"),
        (lambda: mean_interval([]), "no values"),
        (lambda: mean_interval([[1, 2]]), "not an array of 2 dimensions"),
        (lambda: mean_interval([1.0, float("nan")]), "finite"),
        (lambda: mean_interval([1], resamples=0), "at least one resample"),
        (lambda: mean_interval([1], level=1), "level"),
        (lambda: paired_bootstrap([1, 2], [1]), "not 2 and 1 values"),
        (lambda: mcnemar([1, 0], [1]), "same examples"),
        (lambda: mcnemar([], []), "no values"),
        (lambda: mcnemar([1, 0.5], [1, 0]), "1 or 0"),
        (lambda: pearson([1], [1]), "at least two points"),
        (lambda: pearson([1, 2, 3, 4], [0.0] * 4), "one side is constant"),
        (lambda: pearson([0.1] * 7, range(7)), "one side is constant"),
        (lambda: pearson([1, 2, float("inf")], [1, 2, 3]), "finite"),
        (lambda: pearson([1, 2, 3, 5], [1, 2, 3, 9], 0), "level"),
    ],
)
def test_errors_are_one_sentence(call: Any, message: str) -> None:
    with pytest.raises(UncodeError, match=message) as error:
        call()
    assert str(error.value).endswith(".") and "\n" not in str(error.value)


def test_newcombe_is_that_of_the_literature() -> None:
    """The 21 children of Bentur et al. 2009, as Fagerland, Lydersen and Laake print them (2014, "square-and-add")."""
    assert newcombe(*paired(1, 1, 7, 12)) == pytest.approx((-6 / 21, -0.507, -0.026), abs=5e-4)


def paired(both: int, only_a: int, only_b: int, neither: int) -> np.ndarray:
    """The marks of two sides that agree and differ so often, `[2, examples]`."""
    return np.repeat([[1, 1, 0, 0], [1, 0, 1, 0]], [both, only_a, only_b, neither], axis=1)


def test_interval_and_test_agree_on_four_gains_and_no_loss() -> None:
    marks = paired(80, 4, 0, 80)
    assert mcnemar(*marks).p == 0.125
    assert newcombe(*marks).low < 0 < paired_bootstrap(*marks).low  # which is why the bootstrap is for other numbers


@pytest.mark.parametrize(("gains", "losses", "level"), [(2, 1, 0.97), (3, 1, 0.93), (2, 2, 0.97), (5, 5, 0.94)])
def test_newcombe_covers_the_difference_where_few_examples_differ(gains: int, losses: int, level: float) -> None:
    """Of 164 examples so many are gained and lost on average; 95 % of the intervals should hold the difference."""
    examples, trials = 164, 2000
    chances = [0.5, gains / examples, losses / examples, 0.5 - (gains + losses) / examples]
    tables = np.random.default_rng(0).multinomial(examples, chances, size=trials)
    truth = (gains - losses) / examples
    assert sum(low <= truth <= high for _, low, high in map(_newcombe, *tables.T)) / trials >= level
    if (gains, losses) == (2, 1):
        assert sum(low <= truth <= high for _, low, high in map(_bootstrap, *tables.T[1:3])) / trials < 0.88


@cache
def _newcombe(*rows: int) -> Interval:
    return newcombe(*paired(*rows))


@cache
def _bootstrap(only_a: int, only_b: int) -> Interval:
    return paired_bootstrap(*paired(80, only_a, only_b, 84 - only_a - only_b), resamples=1000)


def test_holm_by_hand() -> None:
    """Sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1, and never below the one before."""
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([0.02]) == [0.02] and stats.holm([]) == []
    assert stats.holm([0.9, 0.6]) == [1.0, 1.0]
    with pytest.raises(UncodeError, match="between 0 and 1"):
        stats.holm([0.2, 1.1])


@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_keeps_the_order_and_lies_between_the_value_and_bonferroni(values: list[float]) -> None:
    found = stats.holm(values)
    ordered = sorted(zip(values, found, strict=True))
    assert [after for _, after in ordered] == sorted(found)
    assert all(p <= after <= min(1.0, p * len(values)) + 1e-12 for p, after in ordered)
    if values:
        assert min(found) == min(1.0, min(values) * len(values))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.5))
def test_holm_rejects_what_the_step_down_procedure_rejects(values: list[float], level: float) -> None:
    rejected = 0
    for rank, p in enumerate(sorted(values)):
        if p * (len(values) - rank) > level:
            break
        rejected += 1
    assert sum(p <= level for p in stats.holm(values)) == rejected


def test_the_mean_of_intervals_adds_squares() -> None:
    found = stats.mean_of_intervals([Interval(0.5, 0.2, 0.9), Interval(0.1, 0.1 - 0.4, 0.4)])
    assert found == pytest.approx((0.3, 0.3 - 0.25, 0.3 + 0.25))
    one = wilson(3, 17)
    assert stats.mean_of_intervals([one]) == pytest.approx(one)
    with pytest.raises(UncodeError, match="at least one interval"):
        stats.mean_of_intervals([])


def test_the_mean_of_wilson_intervals_covers_the_mean() -> None:
    """Two tasks of 40 and 200 examples, one of them hard: 95 % of the intervals hold the true mean."""
    draws, shares, sizes = np.random.default_rng(0), (0.05, 0.6), (40, 200)
    covered = 0
    for _ in range(2000):
        parts = [wilson(int(draws.binomial(n, p)), n) for n, p in zip(sizes, shares, strict=True)]
        found = stats.mean_of_intervals(parts)
        covered += found.low <= sum(shares) / 2 <= found.high
    assert 0.93 <= covered / 2000 <= 0.98


def test_intervals_of_several_means_are_those_of_each_alone() -> None:
    rows = np.random.default_rng(0).random((3, 40))
    together = mean_intervals(list(rows))
    for row, interval in zip(rows, together, strict=True):
        assert interval == pytest.approx(mean_interval(row), abs=1e-12)
