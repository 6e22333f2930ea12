"""Forwards over windows whose place is known on the device: columns, RoPE and where to write follow from it there.

A window that follows the masks moves with every step. Were its place a number of the host, each forward would wait
until the host has learnt where the masks are. So the forward is given the place as a tensor, and its width is fixed:
one captured graph serves all places.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...core.pieces.cache import SlidingColumns
from .cuda_graph import ForwardInputs, WindowInputs
from .pointwise import at_least_float32, rope_of
from .prepared import RowPositions
from .shape import Shape


class DeviceWindows:
    """Forwards of rows that reuse every column outside of their windows."""

    def __init__(self, shape: Shape, shift: int, length: int, device: torch.device, dtype: torch.dtype) -> None:
        positions = torch.arange(length, device=device)[None]
        cos, sin = rope_of(positions, shape.rotary_width, shape.theta, at_least_float32(dtype), shape.yarn)
        self.rope, self.shift, self.length = (cos[0], sin[0]), shift, length
        """RoPE of all positions, `[L, d/2]`. Captured graphs read it where it lies."""
        self._rows: RowPositions | None = None
        self._offsets = positions[0, :0]

    def inputs_of(self, tokens: Tensor, rows: RowPositions, columns: SlidingColumns) -> WindowInputs:
        """The inputs of the forward over a canvas `[B, L]`."""
        if self._rows is not rows:
            self._rows, self._first = rows, rows.first_columns
            self._valid = None if rows.valid_host.all() else rows.valid
        if len(self._offsets) != columns.width + self.shift:
            self._offsets = torch.arange(columns.width + self.shift, device=tokens.device)
        return WindowInputs(tokens, columns.window, columns.wanted, self._offsets, self._first, self._valid)

    def expand(self, inputs: WindowInputs) -> ForwardInputs:
        """What the network reads, as :class:`PreparedPass` prepares it on the host."""
        start, stop = torch.maximum(inputs.window[:, :1], inputs.first), inputs.window[:, 1:]
        at = (start - self.shift).clamp(min=0) + inputs.offsets
        inside = (at >= start) & (at < stop)
        near = at.clamp(max=self.length - 1)
        positions = (near - inputs.first).clamp(min=0)
        cos, sin = (table[positions][:, None] for table in self.rope)
        source = inputs.wanted - self.shift
        if self.shift:  # nothing stands before a row's first token, so that one predicts itself
            source = torch.maximum(source, inputs.first)
        return ForwardInputs(
            inputs.tokens.gather(1, near),
            cos,
            sin,
            None if inputs.valid is None else inputs.valid[:, None, None],
            torch.where(inside, at, self.length),
            (source - at[:, :1]).clamp(min=0, max=at.shape[1] - 1),
        )
