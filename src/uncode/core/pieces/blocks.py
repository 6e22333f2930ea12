"""Block schedules: *where it is open*. Ordered spans of the generated region."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from ..denoiser import Facts
from ..errors import require
from ..support.arrays import Ints
from ..view import Ranking, View, part_of
from .piece import Piece


@dataclass(frozen=True)
class BlockSchedule(Piece):
    """From the rows' lengths to the offsets at which their blocks end."""

    kind: ClassVar[bool] = True

    grows: ClassVar[bool] = False
    """Whether the open block starts at the first offset, so that tokens of earlier blocks can be taken back."""

    sees_beliefs: ClassVar[bool] = False
    """Whether a block ends where beliefs say. Then :meth:`stops` is asked instead of `__call__`."""

    slides: ClassVar[bool] = False
    """Whether there is one block, of which a window is open that moves after every step. Then :meth:`window` is asked
    too."""

    def __call__(self, lengths: Ints) -> Ints:
        """Ends of the blocks, `[B, blocks]`, ascending up to the row's length; shorter rows repeat theirs."""
        raise NotImplementedError

    def divides(self, length: int) -> bool:
        """Whether each block lies within one of a block-causal model's, which are `length` tokens long."""
        return False

    def widest(self, lengths: Ints) -> Ints:
        """The most columns that a block of each row can have, `[B]`."""
        widest: Ints = np.diff(self(lengths), prepend=0).max(1)
        return widest

    def stops(self, view: View) -> Tensor:
        """The offsets at which blocks end that have just opened, `[B, 1]`; asked where `sees_beliefs`.

        In the first step of a block the view shows as many columns as the block can have, from its first mask on. Each
        block must have a mask.
        """
        raise NotImplementedError

    def window(self, masked: Tensor) -> tuple[Tensor, Tensor]:
        """The offsets at which the window starts and stops, `[B, 1]` each, from the masks `[B, S]` of the span; asked
        where it `slides`. It starts at the first mask."""
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

    def divides(self, length: int) -> bool:
        return self.length is not None and length % self.length == 0 and not self.grows


@dataclass(frozen=True)
class SeededBlocks(BlockSchedule):
    """Blocks of equal length, where the first of every `every` tokens is a block of its own.

    It is written before the others are predicted: Fast-dLLM v2 and Nemotron-Labs-Diffusion take it from what their
    autoregressive head says of the block before. `every` is the length of the model's blocks.
    """

    length: int = 8
    every: int = 32

    def check(self) -> None:
        require(self.length >= 1, f"the block length must be at least 1, not {self.length}.")
        fits = self.every >= 1 and self.every % self.length == 0
        require(fits, f"`every` must be a multiple of the block length {self.length}, not {self.every}.")

    def __call__(self, lengths: Ints) -> Ints:
        most = int(lengths.max())
        number = np.arange(1, most + self.length)
        ends = number[(number % self.length == 0) | (number % self.every == 1 % self.every)]
        found: Ints = np.minimum(ends, lengths[:, None])
        return found

    def divides(self, length: int) -> bool:
        return length == self.every


@dataclass(frozen=True)
class GrowingBlocks(Blocks):
    """Blocks that stay open: each has the columns of those before it, so that a remasker may reopen them."""

    grows: ClassVar[bool] = True

    def widest(self, lengths: Ints) -> Ints:
        return lengths


@dataclass(frozen=True)
class SlidingWindow(BlockSchedule):
    """One block, of which the first few masks are open: as tokens are committed, the window slides to the right.

    The window has at most `masks` masks and at most `columns` columns. Where nothing is given it reaches to the offset
    `masks` + tokens committed so far (DSB, DCD).
    """

    slides: ClassVar[bool] = True

    masks: int = 32
    columns: int | None = None

    def check(self) -> None:
        require(self.masks >= 1, f"a window must have at least 1 mask, not {self.masks}.")
        require(self.columns is None or self.columns >= 1, f"a window has at least 1 column, not {self.columns}.")

    def __call__(self, lengths: Ints) -> Ints:
        return lengths[:, None]

    def widest(self, lengths: Ints) -> Ints:
        return lengths if self.columns is None else np.minimum(lengths, self.columns)

    def window(self, masked: Tensor) -> tuple[Tensor, Tensor]:
        masks = masked.cumsum(-1)
        start, stop = ((masks <= most).sum(-1, keepdim=True) for most in (0, self.masks))
        return start, stop if self.columns is None else torch.minimum(stop, start + self.columns)


@dataclass(frozen=True)
class OverlappingBlocks(BlockSchedule):
    """Blocks of equal length, several of which are open: a block opens once the `share` of the one before is written.

    With a share of 1 they open one after the other (d3LLM, which calls it multi-block decoding).
    """

    slides: ClassVar[bool] = True

    length: int = 32
    share: float = 0.1

    def check(self) -> None:
        require(self.length >= 1, f"the block length must be at least 1, not {self.length}.")
        require(0 < self.share <= 1, f"the share must be above 0 and at most 1, not {self.share}.")

    def __call__(self, lengths: Ints) -> Ints:
        return lengths[:, None]

    def widest(self, lengths: Ints) -> Ints:
        return lengths

    def window(self, masked: Tensor) -> tuple[Tensor, Tensor]:
        span = masked.shape[-1]
        length = min(self.length, max(span, 1))
        left = torch.nn.functional.pad(masked, (0, -span % length)).reshape(len(masked), -1, length).sum(-1)
        sizes = (span - torch.arange(0, span, length, device=masked.device)).clamp(max=length)
        opens_next = (sizes - left >= self.share * sizes).long().cumprod(-1)
        start = (masked.cumsum(-1) == 0).sum(-1, keepdim=True)
        return start, ((opens_next.sum(-1, keepdim=True) + 1) * length).clamp(max=span)


@dataclass(frozen=True)
class DelimitedBlocks(BlockSchedule):
    """Blocks that end with a delimiter: a newline, say.

    In a block's first step, the positions near its start that propose one of `tokens` are compared. The block ends with
    the most probable of them, if its probability reaches the threshold; otherwise after `length` tokens. Near are the
    first columns of the block, as many as the `share` of the row's span.
    """

    sees_beliefs: ClassVar[bool] = True
    _ids: ClassVar[Tensor]

    tokens: tuple[int | str, ...]
    threshold: float = 0.3
    length: int = 32
    share: float = 0.25

    def check(self) -> None:
        require(len(self.tokens) > 0, "delimited blocks need at least one delimiter.")
        require(0 < self.threshold <= 1, f"the threshold must be a probability above 0, not {self.threshold}.")
        require(self.length >= 1, f"the block length must be at least 1, not {self.length}.")
        require(0 < self.share <= 1, f"the share must be above 0 and at most 1, not {self.share}.")

    def bind(self, facts: Facts) -> Self:
        return self.holding(_ids=torch.tensor(facts.resolve(self.tokens), device=facts.device))

    def widest(self, lengths: Ints) -> Ints:
        return np.maximum((self.share * lengths).astype(np.int64), self.length)

    def stops(self, view: View) -> Tensor:
        near = view.offsets < view.block_start + part_of(view.span_length, self.share)
        delimiters = Ranking(view.belief.logp, view.eligible & near & torch.isin(view.belief.token, self._ids))
        logp, column = delimiters.score.max(-1, keepdim=True)
        delimited = view.offsets.expand_as(view.tokens).gather(-1, column) + 1
        others = torch.as_tensor(view.block_start + self.length, device=column.device).expand_as(column)
        return torch.where(logp >= math.log(self.threshold), delimited, others)
