"""What the host knows of each row: its blocks, which one is open, and for how many steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..pieces.policy import Sampler
from ..support.arrays import Ints


@dataclass
class Rows:
    """One entry per row, `[B]`; or `[B, blocks]` for what is known of each block."""

    ids: Ints
    lane: Ints
    ends: Ints
    """Offsets at which the blocks end."""
    masked: Ints
    """Masks in each block."""
    shares: Ints
    """Each block's share of the steps; 0 where there is no schedule."""
    block: Ints
    """The open block; -1 before the first."""
    block_step: Ints
    """Steps since it opened; -1 when it has been filled."""
    joined_at_step: Ints
    """The batch's forwards before the row joined."""
    limit: Ints
    grows: NDArray[np.bool_]
    """Whether the open block starts at the first offset; see :class:`BlockSchedule`."""
    widest: Ints
    """The most columns of a block that ends where beliefs say; 0 where all blocks are known from the start.

    Such a row has four blocks: what is done, the open block, given tokens behind it, and the rest. When the next block
    opens, it is cut from the rest.
    """
    finished: NDArray[np.bool_]

    @classmethod
    def plan(cls, sampler: Sampler, masked: NDArray[np.bool_], lengths: Ints, clock: int) -> Rows:
        """The rows of one sampler as they join: blocks, masks and steps follow from where the masks are, `[B, S]`."""
        before, blocks = np.pad(masked.cumsum(1), ((0, 0), (1, 0))), sampler.policy.blocks
        zeros = np.zeros_like(lengths)
        first = np.argmax(masked, 1)
        ends = np.stack([zeros, zeros, first, lengths], 1) if blocks.sees_beliefs else blocks(lengths)
        counts = np.diff(np.take_along_axis(before, ends, 1), prepend=0)
        return cls(
            ids=zeros,
            lane=zeros,
            ends=ends,
            masked=counts,
            shares=sampler.policy.select.shares(counts),
            block=zeros - 1,
            block_step=zeros,
            joined_at_step=zeros + clock,
            limit=8 * counts.sum(1) + 64 if sampler.limit is None else zeros + sampler.limit,
            grows=(zeros == 0) & blocks.grows,
            widest=blocks.widest(lengths) if blocks.sees_beliefs else zeros,
            finished=zeros > 0,
        )

    @classmethod
    def none(cls) -> Rows:
        """No rows yet."""
        line, square = np.zeros(0, dtype=np.int64), np.zeros((0, 1), dtype=np.int64)
        return cls(line, line, square, square, square, line, line, line, line, line > 0, line, line > 0)

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Ints) -> Rows:
        """Some of the rows, in this order."""
        return Rows(**{name: array[rows] for name, array in vars(self).items()})

    def join(self, other: Rows) -> Rows:
        """These rows and then the others."""
        blocks = max(self.ends.shape[1], other.ends.shape[1])

        def widened(rows: Rows) -> dict[str, NDArray[Any]]:
            more = blocks - rows.ends.shape[1]
            fills: dict[str, Literal["edge", "constant"]] = {"ends": "edge", "masked": "constant", "shares": "constant"}
            wide = {name: np.pad(vars(rows)[name], ((0, 0), (0, more)), mode=mode) for name, mode in fills.items()}
            return vars(rows) | wide

        ours, theirs = widened(self), widened(other)
        return Rows(**{name: np.concatenate([ours[name], theirs[name]]) for name in ours})

    @property
    def index(self) -> Ints:
        return np.arange(len(self.ids))

    @property
    def starts(self) -> Ints:
        """Offsets at which the open blocks start."""
        before = self.ends[self.index, np.maximum(self.block - 1, 0)]
        return np.where((self.block > 0) & ~self.grows, before, 0)

    @property
    def stops(self) -> Ints:
        """Offsets at which the open blocks end."""
        return self.of_block(self.ends)

    @property
    def remaining_blocks(self) -> NDArray[np.bool_]:
        """Which blocks come after the open one and have masks, `[B, blocks]`."""
        return (self.masked > 0) & (np.arange(self.masked.shape[1]) > self.block[:, None])

    def of_block(self, values: Ints) -> Ints:
        """What `values` `[B, blocks]` say of each row's open block."""
        return values[self.index, self.block]

    def open_next(self) -> None:
        """Rows whose block has been filled, or that have none yet, open the next one that has masks."""
        waiting = ~self.finished & ((self.block_step < 0) | (self.block < 0))
        self.block = np.where(waiting, np.argmax(self.remaining_blocks, 1), self.block)
        self.block_step = np.where(waiting, 0, self.block_step)
        for row in np.flatnonzero(waiting & (self.widest > 0)):
            start, end, masks = self.ends[row, 2], self.ends[row, -1], self.masked[row, 3]
            stop = min(start + self.widest[row], end)
            self.ends[row, :4], self.masked[row, :4], self.block[row] = (start, stop, stop, end), (0, masks, 0, 0), 1

    def end_blocks(self, stop: Ints, behind: Ints, following: Ints) -> NDArray[np.bool_]:
        """Set the end of each belief-delimited block after its first step, to the offset `stop`.

        `behind` counts the masks after it, `following` is the offset of the first of them. All are `[B]`. Returns
        which rows have such a block.
        """
        here: NDArray[np.bool_] = (self.widest > 0) & (self.block_step == 1) & ~self.finished
        for row in np.flatnonzero(here):
            masks, rest = self.masked[row, 1], int(behind[row])
            self.ends[row, 1:3] = stop[row], following[row] if rest else self.ends[row, -1]
            self.masked[row, 1:4] = masks - rest, 0, rest
        return here
