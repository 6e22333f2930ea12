"""The open blocks of all rows, seen through one window, until one of them is filled."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..support.arrays import Ints
from ..support.transfer import upload
from ..view import Count
from .rows import Rows
from .window import Window, WindowedTensor


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
