"""The open blocks of all rows, seen through one window: the same number of columns for every row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..pieces.cache import Span
from ..support.arrays import Ints
from ..support.transfer import upload
from ..view import Count
from .rows import Rows


@dataclass(frozen=True, eq=False)
class Window:
    """Offsets `[start, start + width)` of each row's span. Rows with a common start are sliced, others gathered."""

    start: Ints
    width: int
    offsets: Tensor
    """`[1, W]` where all rows agree, else `[B, W]`."""
    places: Tensor
    """The same in float64."""
    inside: Tensor | None
    """Which of the columns lie in the row's open block; None where all do."""

    @classmethod
    def over(cls, start: Ints, width: int, block_start: Ints, block_stop: Ints, device: torch.device) -> Window:
        """The window of `width` columns from `start` on, around the open blocks."""
        first = start[:1] if (start == start[0]).all() else start
        offsets = first[:, None] + np.arange(width)
        inside = (offsets >= block_start[:, None]) & (offsets < block_stop[:, None])
        return cls(
            start,
            width,
            upload(offsets, device),
            upload(offsets.astype(np.float64), device),
            None if inside.all() else upload(inside, device),
        )

    def columns(self, origin: int) -> Span:
        """The window in columns of the canvas, whose span starts at `origin`."""
        return Span(self.start + origin, self.start + origin + self.width)

    def restrict(self, flags: Tensor) -> Tensor:
        """`flags` `[B, W]` inside the open blocks only."""
        return flags if self.inside is None else flags & self.inside


class WindowedTensor:
    """The columns of a window `[..., B, W]` in a tensor over the generated span, `[..., B, S]`."""

    def __init__(self, window: Window, span: Tensor) -> None:
        self.whole = span
        self._view: Tensor | None = None
        if window.offsets.shape[0] == 1:
            first = int(window.start[0])
            self._view = span[..., first : first + window.width]
        else:
            self._index = window.offsets.expand(*span.shape[:-1], window.width)

    def read(self) -> Tensor:
        """The columns as they are now; a view where all rows have the same window."""
        return self._view if self._view is not None else self.whole.gather(-1, self._index)

    def write(self, where: Tensor, values: Tensor) -> None:
        """Write `values` at the columns `where`."""
        if self._view is not None:
            torch.where(where, values, self._view, out=self._view)
        else:
            self.whole.scatter_(-1, self._index, torch.where(where, values, self.read()))


class OpenBlocks:
    """The rows' open blocks: their columns, their tokens, and for how many steps they have been open."""

    def __init__(self, rows: Rows, tokens: Tensor, given: Tensor, whole_span: bool) -> None:
        """`tokens` and `given` `[B, S]` are of the generated span. The window covers the blocks, or the whole span."""
        starts, stops, span = rows.starts, rows.stops, tokens.shape[1]
        width = span if whole_span else int((stops - starts).max())
        first = np.zeros_like(starts) if whole_span else np.minimum(starts, span - width)
        self.window = Window.over(first, width, starts, stops, tokens.device)
        self.start, self.length = _count(starts, tokens.device), _count(stops - starts, tokens.device)
        self.span_length = _count(rows.ends[:, -1], tokens.device)
        """Columns of each row's span."""
        self.masked = _count(rows.of_block(rows.masked), tokens.device)
        """Masks in each block when it opened."""
        self.steps = _count(rows.of_block(rows.shares), tokens.device)
        """Each block's share of the steps, for selectors that have a total; else 0."""
        self.age = _count(rows.block_step.copy(), tokens.device)  # a copy: the rows' own is counted up in place
        """Steps since the blocks opened, at the last sync."""
        self.tokens = WindowedTensor(self.window, tokens)
        self.own = self.window.restrict(~WindowedTensor(self.window, given).read())
        """Positions of the blocks that the decoder writes, `[B, W]`."""


def _count(values: Ints, device: torch.device) -> Count:
    """A plain number where all rows agree, else `[B, 1]`."""
    if (values == values[0]).all():
        return int(values[0])
    return upload(values, device)[:, None]
