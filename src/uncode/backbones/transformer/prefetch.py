"""What a kernel that reads little memory asks the L2 cache for: the weights that the next product reads."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

SPLIT_K = 4
"""Partial sums of a product that is split along K."""


class Ahead(NamedTuple):
    """A matrix that the next product reads."""

    weight: Tensor
    splits: int
    """Parts of K that are read side by side."""
