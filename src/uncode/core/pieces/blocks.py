"""Block schedules: *where it is open*. Ordered spans of the generated region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import require
from ..support.arrays import Ints
from .piece import Piece


@dataclass(frozen=True)
class BlockSchedule(Piece):
    """From the rows' lengths to the offsets at which their blocks end."""

    kind: ClassVar[bool] = True

    grows: ClassVar[bool] = False
    """Whether the open block starts at the first offset, so that tokens of earlier blocks can be taken back."""

    def __call__(self, lengths: Ints) -> Ints:
        """Ends of the blocks, `[B, blocks]`, ascending up to the row's length; shorter rows repeat theirs."""
        raise NotImplementedError


@dataclass(frozen=True)
class Blocks(BlockSchedule):
    """Blocks of equal length from left to right; the last may be shorter.

    Either `count` of them (the length is rounded up), or each `length` long; one block where neither is given.
    """

    count: int | None = None
    length: int | None = None

    def check(self) -> None:
        require(self.count is None or self.length is None, "blocks take either a count or a length, not both.")
        require(self.count is None or self.count >= 1, f"the number of blocks must be at least 1, not {self.count}.")
        require(self.length is None or self.length >= 1, f"the block length must be at least 1, not {self.length}.")

    def __call__(self, lengths: Ints) -> Ints:
        width = -(-lengths // (self.count or 1)) if self.length is None else np.full_like(lengths, self.length)
        number = np.arange(1, int((-(-lengths // width)).max()) + 1)
        ends: Ints = np.minimum(width[:, None] * number, lengths[:, None])
        return ends


@dataclass(frozen=True)
class GrowingBlocks(Blocks):
    """Blocks that stay open: each has the columns of those before it, so that a remasker may reopen them."""

    grows: ClassVar[bool] = True
