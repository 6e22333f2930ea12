"""A session of the transformer: what a plan asks for, computed; keys and values, stored in place.

Everything that depends on a plan but not on the tokens (which columns, which angles, which mask, where
to write) is worked out once, when the plan or the rows change, and used for all steps of that plan.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ...core.pieces.cache import Plan, Span
from ...core.support.transfer import upload
from ..columns import Pick, columns
from .cuda_graph import Captures, Inputs
from .network import Shape, Transformer, angles
from .pointwise import Kept, wide


class Store:
    """Rotated keys and values of every layer, `[B, heads, L + 1, d]`; the last column takes what nobody reads.

    They are made when a layer first stores, and keep their place in memory as rows leave and others take their
    room, so that a captured forward finds them.
    """

    def __init__(self, shape: Shape, rows: int, length: int) -> None:
        self.shape, self.rows, self.length, self.room = shape, rows, length, rows
        self.layers: list[list[Tensor]] = [[] for _ in range(shape.layers)]

    def kept(self, places: Tensor) -> list[Kept]:
        """Of every layer, with fresh ones to be written to `places`."""
        shape = (self.room, self.shape.key_heads, self.length + 1, self.shape.head_width)
        return [Kept(stored, shape, places) for stored in self.layers]

    def add(self, rows: int, left: int, right: int) -> bool:
        """Room for more rows and columns; whether what is stored had to move for it."""
        moves = left > 0 or right > 0 or self.rows + rows > self.room
        if moves:
            self.length += left + right
            kept = [[t[: self.rows] for t in pair] for pair in self.layers]
            self.layers = [[functional.pad(t, (0, 0, left, right, 0, 0, 0, rows)) for t in pair] for pair in kept]
            self.room = self.rows + rows
        self.rows += rows
        return moves

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
        positions = upload(np.maximum(np.arange(self.length) - starts[:, None], 0), valid.device)
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
        cos, sin = (self.tokens(t)[:, None].contiguous() for t in layout.angles)
        visible = layout.seen & (fresh | plan.reuse.mask(length))
        mask = None if visible.all() else upload(visible, device)[:, None, None]
        places = upload(self._places(computed, window, length), device) if stores else None
        source = columns(plan.rows) - shift
        if shift:  # nothing stands before a row's first token, so that one predicts itself
            source = np.maximum(source, layout.first[:, None])
        source = np.clip(source - computed.start[:, None], 0, computed.width - 1)
        rows = None
        if source.shape[1] != computed.width or (source != np.arange(computed.width)).any():
            rows = upload(source[:1] if (source == source[:1]).all() else source, device)
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
        self.store = Store(network.shape, rows, length)
        self.layout: Layout | None = None
        self.work: Pass | None = None
        network.part_what_moved()
        alone = barred.is_cuda and {parameter.device for parameter in network.parameters()} == {barred.device}
        self.captures = Captures() if alone else None

    def logits(self, tokens: Tensor, valid: Tensor, plan: Plan) -> Tensor:
        work = self._prepare(valid, plan)
        work.inputs.tokens = work.tokens(tokens)
        return self._forward(work.inputs) if self.captures is None else self.captures(self._forward, work.inputs)

    def _forward(self, inputs: Inputs) -> Tensor:
        kept = None if inputs.places is None else self.store.kept(inputs.places)
        stream = self.network(inputs.tokens, (inputs.cos, inputs.sin), inputs.mask, kept, inputs.rows)
        logits = self.network.logits(*stream).to(inputs.tokens.device)
        return logits.index_fill_(-1, self.barred, float("-inf"))

    def _prepare(self, valid: Tensor, plan: Plan) -> Pass:
        if self.layout is None or self.layout.valid is not valid:  # rows came or went
            self.layout, self.work = Layout(self.network, valid, self.network.embed.weight.dtype), None
        if self.work is None or self.work.plan is not plan:
            self.work = Pass(self.layout, plan, self.shift)
        return self.work

    def add(self, rows: int, left: int, right: int) -> None:
        if self.store.add(rows, left, right) and self.captures is not None:
            self.captures.forget()

    def keep(self, rows: Tensor) -> None:
        self.store.keep(rows)
        if self.captures is not None:
            self.captures.shrink(len(rows))
