"""What a plan asks of the network, ready for any tokens: columns, RoPE, attention mask, where to write.

All of it depends on the plan and the rows, not on the tokens. So it is computed once, when the plan or the rows change,
and used for all steps of that plan.
"""

from __future__ import annotations

from copy import copy

import numpy as np
import torch
from torch import Tensor

from ....core.pieces.cache import Plan, Span
from ....core.support.arrays import Ints
from ....core.support.transfer import upload
from ...columns import Pick, columns
from ..cuda_graph import ForwardInputs
from ..network import Transformer
from ..pointwise import at_least_float32
from ..rope import rope_of


class RowPositions:
    """Each row's first valid column, and RoPE at all columns."""

    def __init__(self, network: Transformer, valid: Tensor, dtype: torch.dtype) -> None:
        self.valid, self.valid_host = valid, valid.cpu().numpy()
        self.first = np.argmax(self.valid_host, 1)
        self.length = self.valid_host.shape[1]
        starts = self.first if self.first.any() else self.first[:1]
        positions = upload(np.maximum(np.arange(self.length) - starts[:, None], 0), valid.device)
        shape = network.shape
        self.rope = rope_of(positions, shape.head_width, shape.theta, at_least_float32(dtype))

    def take(self, rows: Ints) -> RowPositions:
        """The positions of some of the rows."""
        taken = copy(self)
        index = upload(rows, self.valid.device)
        taken.valid, taken.valid_host, taken.first = self.valid[index], self.valid_host[rows], self.first[rows]
        taken.rope = tuple(t if len(t) == 1 else t[index] for t in self.rope)  # type: ignore[assignment]
        return taken

    def clip(self, span: Span) -> Span:
        """The span without a row's padding."""
        last = self.length - np.argmax(self.valid_host[:, ::-1], 1)
        return Span(np.maximum(span.start, self.first), np.minimum(span.stop, last))


class PreparedPass:
    """One forward as a plan asks for it, ready for any tokens.

    With `shift` 1 the network's output at a column predicts the next one, so one more column is computed to the left of
    the window. Its keys go to the KV cache's spare column: a plan refreshes its window alone.
    """

    def __init__(
        self, rows: RowPositions, plan: Plan, shift: int, is_cached: bool, idle: Ints | None = None, multiple: int = 1
    ) -> None:
        """Rows that are `idle` are computed for nothing: another pass computes them, and this one must not write. The
        number of computed columns is rounded up to a `multiple`, so that fewer shapes are captured as graphs."""
        device, length, window = rows.valid.device, rows.length, plan.window
        computed = Span(np.maximum(window.start - shift, 0), window.stop)
        at = computed.start[:, None] + np.arange(-(-computed.width // multiple) * multiple)
        self.tokens = Pick(at, length, device)
        cos, sin = (self.tokens(t)[:, None].contiguous() for t in rows.rope)
        visible = rows.valid_host & (window.mask(length) | plan.reuse.mask(length))
        if not is_cached:  # the keys are those of the computed columns
            visible = np.take_along_axis(visible, np.minimum(at, length - 1), 1) & (at < length)
        if idle is not None:
            visible[idle] |= rows.valid_host[idle]  # a row that sees nothing is NaN
        mask = None if visible.all() else upload(visible, device)[:, None, None]
        cache_columns = upload(self._cache_columns(at, window, length, idle), device) if is_cached else None
        source = columns(plan.wanted) - shift
        if shift:  # nothing stands before a row's first token, so that one predicts itself
            source = np.maximum(source, rows.first[:, None])
        source = np.clip(source - computed.start[:, None], 0, at.shape[1] - 1)
        wanted = None
        if source.shape[1] != at.shape[1] or (source != np.arange(at.shape[1])).any():
            wanted = upload(source[:1] if (source == source[:1]).all() else source, device)
        self.inputs = ForwardInputs(rows.valid.new_zeros(0, dtype=torch.int64), cos, sin, mask, cache_columns, wanted)

    def inputs_of(self, tokens: Tensor) -> ForwardInputs:
        """The inputs of the forward over a canvas `[B, L]`."""
        self.inputs.tokens = self.tokens(tokens)
        return self.inputs

    @staticmethod
    def _cache_columns(at: Ints, window: Span, length: int, idle: Ints | None) -> Ints:
        """The KV cache's column of each computed entry; the spare one for those outside the window."""
        inside = (at >= window.start[:, None]) & (at < window.stop[:, None])
        if idle is not None:
            inside[idle] = False
        found = np.where(inside, at, length)
        return found[0] if (found == found[:1]).all() else found
