"""The open window: the same number of columns for every row, wherever its block lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..pieces.cache import Span
from ..support.arrays import Ints
from ..support.transfer import upload


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
