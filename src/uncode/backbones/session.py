"""A session of the transformer: what a plan asks for, computed; keys and values, stored in place.

Everything that depends on a plan but not on the tokens (which columns, which angles, which mask, where
to write) is worked out once, when the plan or the rows change, and used for all steps of that plan.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ..core.cache import Plan, Span
from .columns import Pick, columns
from .transformer import Exchange, Transformer, angles, wide


class Store:
    """Rotated keys and values of every layer, `[B, heads, L + 1, d]`; the last column takes what nobody reads.

    A layer's buffers are made when it first stores, on the device it runs on.
    """

    def __init__(self, layers: int, length: int) -> None:
        self.layers: list[list[Tensor]] = [[] for _ in range(layers)]
        self.length = length

    def exchange(self, layer: int, work: Pass, *fresh: Tensor) -> tuple[Tensor, Tensor]:
        """Write fresh keys and values in place where `work` says; return those of all columns."""
        if not self.layers[layer]:
            self.layers[layer] = [t.new_zeros(*t.shape[:2], self.length + 1, t.shape[-1]) for t in fresh]
        for stored, new in zip(self.layers[layer], fresh, strict=True):
            if work.spread is None:
                stored[:, :, work.begin : work.end] = new[:, :, -(work.end - work.begin) :]
            else:
                stored.scatter_(2, work.spread.to(new.device)[:, None, :, None].expand_as(new), new)
        keys, values = (t.narrow(2, 0, self.length) for t in self.layers[layer])
        return keys, values

    def add(self, rows: int, left: int, right: int) -> None:
        """Room for more rows and columns; what is stored moves along."""
        self.length += left + right
        self.layers = [[functional.pad(t, (0, 0, left, right, 0, 0, 0, rows)) for t in pair] for pair in self.layers]

    def keep(self, rows: Tensor) -> None:
        self.layers = [[t[rows.to(t.device)] for t in pair] for pair in self.layers]


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
        self.stores = plan.keep.width > 0 or plan.reuse.width > 0 or not fresh.all()
        computed = Span(np.maximum(window.start - shift, 0), window.stop)
        self.tokens = Pick(columns(computed), length, device)
        self.rotation = tuple(self.tokens(t)[:, None] for t in layout.angles)
        visible = layout.seen & (fresh | plan.reuse.mask(length))
        self.mask = None if visible.all() else torch.from_numpy(visible).to(device)[:, None, None]
        self.begin, self.end, self.spread = int(window.start[0]), int(window.stop[0]), None
        if not window.uniform:
            self.spread = torch.from_numpy(self._spread(computed, window, length)).to(device)
        source = columns(plan.rows) - shift
        if shift:  # nothing stands before a row's first token, so that one predicts itself
            source = np.maximum(source, layout.first[:, None])
        self.rows = Pick(source - computed.start[:, None], computed.width, device)

    @staticmethod
    def _spread(computed: Span, window: Span, length: int) -> np.ndarray:
        """The column each computed entry is written to; the spare one for those outside the window."""
        at = columns(computed)
        inside = (at >= window.start[:, None]) & (at < window.stop[:, None])
        return np.where(inside, at, length)


class TransformerSession:
    """Rows in decoding on a :class:`Transformer`."""

    def __init__(self, network: Transformer, barred: Tensor, shift: int, length: int) -> None:
        self.network, self.barred, self.shift = network, barred, shift
        self.store = Store(network.shape.layers, length)
        self.layout: Layout | None = None
        self.work: Pass | None = None

    def logits(self, tokens: Tensor, valid: Tensor, plan: Plan) -> Tensor:
        work = self._prepare(valid, plan)
        hidden = self.network(work.tokens(tokens), work.rotation, work.mask, self._exchanges(work))
        logits = self.network.logits(work.rows(hidden)).to(tokens.device)
        return logits.index_fill_(-1, self.barred, float("-inf"))

    def _prepare(self, valid: Tensor, plan: Plan) -> Pass:
        if self.layout is None or self.layout.valid is not valid:  # rows came or went
            self.layout, self.work = Layout(self.network, valid, self.network.embed.weight.dtype), None
        if self.work is None or self.work.plan is not plan:
            self.work = Pass(self.layout, plan, self.shift)
        return self.work

    def _exchanges(self, work: Pass) -> list[Exchange]:
        if not work.stores:
            return [lambda keys, values: (keys, values)] * self.network.shape.layers
        return [partial(self.store.exchange, layer, work) for layer in range(self.network.shape.layers)]

    def add(self, rows: int, left: int, right: int) -> None:
        self.store.add(rows, left, right)

    def keep(self, rows: Tensor) -> None:
        self.store.keep(rows)
