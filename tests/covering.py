"""A sample of a grid: `make test` runs enough of it to try each value, `make verify` all of it."""

from __future__ import annotations

from collections.abc import Collection
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
