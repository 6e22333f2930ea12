"""A session of the transformer: what a plan asks for, computed; keys and values, stored in place.

Everything that depends on a plan but not on the tokens (which columns, which angles, which mask, where
to write) is worked out once, when the plan or the rows change, and used for all steps of that plan.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ..core.cache import Plan, Span
from .capture import Captures, Inputs
from .columns import Pick, columns
from .pointwise import Kept, wide
from .transformer import Block, Transformer, angles


class Store:
    """Rotated keys and values of every layer, `[B, heads, L + 1, d]`; the last column takes what nobody reads.

    They are made when something is first stored, each on its layer's device, and keep their place in memory
    until rows or columns join, so that a captured forward finds them.
    """

    def __init__(self, network: Transformer, rows: int, length: int) -> None:
        self.network, self.rows, self.length = network, rows, length
        self.layers: list[list[Tensor]] = []

    def kept(self, places: Tensor) -> list[Kept]:
        """Of every layer, with fresh ones to be written to `places`."""
        if not self.layers:
            self.layers = [[self._buffer(block) for _ in range(2)] for block in self.network.blocks]
        return [Kept(keys, values, places.to(keys.device)) for keys, values in self.layers]

    def _buffer(self, block: nn.Module) -> Tensor:
        assert isinstance(block, Block)
        shape = self.network.shape
        return block.k.weight.new_zeros(self.rows, shape.key_heads, self.length + 1, shape.head_width)

    def add(self, rows: int, left: int, right: int) -> None:
        """Room for more rows and columns; what is stored moves along."""
        self.length += left + right
        kept = [[t[: self.rows] for t in pair] for pair in self.layers]
        self.layers = [[functional.pad(t, (0, 0, left, right, 0, 0, 0, rows)) for t in pair] for pair in kept]
        self.rows += rows

    def keep(self, rows: Tensor) -> None:
        for pair in self.layers:
            for stored in pair:
                stored[: len(rows)] = stored[rows.to(stored.device)]
        self.rows = len(rows)


class Layout:
    """Where the rows' tokens stand: each row's first valid column, and the angles of all columns."""

    def __init__(self, network: Transformer, valid: Tensor, dtype: torch.dtype) -> None:
        self.valid, self.seen = valid, valid.cpu().numpy()
        self.first = np.argmax(self.seen, 1)
        self.length = self.seen.shape[1]
        starts = self.first if self.first.any() else self.first[:1]
        positions = torch.from_numpy(np.maximum(np.arange(self.length) - starts[:, None], 0)).to(valid.device)
        self.angles = angles(positions, network.shape, wide(dtype))


class Pass:
    """One forward as a plan wants it, ready for any tokens.

    With `shift` 1 the network's output at a column predicts the next one, so one column more is computed to
    the left of the window. Its keys are not written: a plan's window alone is fresh.
    """

    def __init__(self, layout: Layout, plan: Plan, shift: int) -> None:
        device, length, window = layout.valid.device, layout.length, plan.window
        self.plan = plan
        fresh = window.mask(length)
        stores = plan.keep.width > 0 or plan.reuse.width > 0 or not fresh.all()
        computed = Span(np.maximum(window.start - shift, 0), window.stop)
        self.tokens = Pick(columns(computed), length, device)
        cos, sin = (self.tokens(t)[:, None] for t in layout.angles)
        visible = layout.seen & (fresh | plan.reuse.mask(length))
        mask = None if visible.all() else torch.from_numpy(visible).to(device)[:, None, None]
        places = torch.from_numpy(self._places(computed, window, length)).to(device) if stores else None
        source = columns(plan.rows) - shift
        if shift:  # nothing stands before a row's first token, so that one predicts itself
            source = np.maximum(source, layout.first[:, None])
        source = np.clip(source - computed.start[:, None], 0, computed.width - 1)
        rows = torch.from_numpy(source[:1] if (source == source[:1]).all() else source).to(device)
        self.inputs = Inputs(layout.valid.new_zeros(0, dtype=torch.int64), cos, sin, mask, places, rows)

    @staticmethod
    def _places(computed: Span, window: Span, length: int) -> np.ndarray:
        """The column each computed entry is written to; the spare one for those outside the window."""
        at = columns(computed)
        inside = (at >= window.start[:, None]) & (at < window.stop[:, None])
        places = np.where(inside, at, length)
        return places[0] if (places == places[:1]).all() else places


class TransformerSession:
    """Rows in decoding on a :class:`Transformer`."""

    def __init__(self, network: Transformer, barred: Tensor, shift: int, rows: int, length: int) -> None:
        self.network, self.barred, self.shift = network, barred, shift
        self.store = Store(network, rows, length)
        self.layout: Layout | None = None
        self.work: Pass | None = None
        self.captures = Captures() if network.joined and barred.is_cuda else None

    def logits(self, tokens: Tensor, valid: Tensor, plan: Plan) -> Tensor:
        work = self._prepare(valid, plan)
        work.inputs.tokens = work.tokens(tokens)
        return self._forward(work.inputs) if self.captures is None else self.captures(self._forward, work.inputs)

    def _forward(self, inputs: Inputs) -> Tensor:
        kept = None if inputs.places is None else self.store.kept(inputs.places)
        hidden = self.network(inputs.tokens, (inputs.cos, inputs.sin), inputs.mask, kept)
        index = inputs.rows.to(hidden.device)[..., None].expand(len(hidden), -1, hidden.shape[-1])
        logits = self.network.logits(hidden.gather(1, index)).to(inputs.tokens.device)
        return logits.index_fill_(-1, self.barred, float("-inf"))

    def _prepare(self, valid: Tensor, plan: Plan) -> Pass:
        if self.layout is None or self.layout.valid is not valid:  # rows came or went
            self.layout, self.work = Layout(self.network, valid, self.network.embed.weight.dtype), None
        if self.work is None or self.work.plan is not plan:
            self.work = Pass(self.layout, plan, self.shift)
        return self.work

    def add(self, rows: int, left: int, right: int) -> None:
        self.store.add(rows, left, right)
        if self.captures is not None:
            self.captures.forget()

    def keep(self, rows: Tensor) -> None:
        self.store.keep(rows)
