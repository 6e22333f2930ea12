"""A sample of the cases of a test, which `make test` runs; `make verify` runs all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import product
from typing import Any

import pytest


def covering(*axes: Collection[Any]) -> list[Any]:
    """Every combination, as cases of a test. All are slow but a sample in which each value of each axis occurs.

    Of three axes or more, any two values of the two longest occur together.
    """
    shortest = min(map(len, axes))
    return [
        pytest.param(*values, marks=[] if sum(places) % shortest == 0 else pytest.mark.slow)
        for places, values in zip(product(*(range(len(axis)) for axis in axes)), product(*axes), strict=True)
    ]


def one_in(count: int, cases: Iterable[Any]) -> list[Any]:
    """All cases. They are slow but for the first, and every `count`-th after it."""
    marks = [[], *[[pytest.mark.slow]] * (count - 1)]
    return [pytest.param(*_values(case), marks=marks[at % count]) for at, case in enumerate(cases)]


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
