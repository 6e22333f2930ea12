"""A session of the transformer: it computes what a plan asks for, with a KV cache and CUDA graphs.

Everything that depends on a plan but not on the tokens (columns, RoPE, attention mask, where to write) is computed
once, when the plan or the rows change, and used for all steps of that plan.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...core.denoiser import Layout
from ...core.pieces.cache import Plan, Span
from ...core.support.arrays import Ints
from ...core.support.transfer import upload
from ..columns import Pick, columns
from .cuda_graph import ForwardInputs, GraphCache
from .kv_cache import KVCache, LayerCache
from .network import Transformer
from .pointwise import at_least_float32
from .rope import rope_of


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


@dataclass
class WideRows:
    """Rows that are computed in a forward of their own."""

    rows: Tensor
    prepared: PreparedPass
    reuses: bool
    """Whether they attend to stored keys and values."""


class PreparedPlan:
    """The forwards of a plan. Rows that refresh their KV cache have forwards of their own: in a common one every row
    would be computed as widely as the widest.

    The common forward keeps its shape, so that its CUDA graph is replayed; in it the wide rows are idle.
    """

    def __init__(self, rows: RowPositions, plan: Plan, shift: int, may_split: bool) -> None:
        self.plan, self.wide = plan, list[WideRows]()
        self.common: PreparedPass | None = None
        is_cached = plan.store.width > 0 or plan.reuse.width > 0 or not plan.window.mask(rows.length).all()
        clipped = Plan(rows.clip(plan.window), plan.wanted, plan.store, plan.reuse) if is_cached else plan
        widths = clipped.window.stop - clipped.window.start
        groups = _wide_groups(widths) if is_cached and may_split else []
        if not groups:
            self.common = PreparedPass(rows, clipped, shift, is_cached)
            return
        idle = np.concatenate(groups)
        if len(idle) < len(widths):
            self.common = PreparedPass(rows, _without(clipped, idle, rows.length), shift, is_cached, idle)
        for group in groups:
            of, own = rows.take(group), clipped.take(group)
            prepared = PreparedPass(of, own, shift, is_cached, multiple=WIDE_MULTIPLE)
            self.wide.append(WideRows(upload(group, rows.valid.device), prepared, own.reuse.width > 0))


WIDE_MULTIPLE = 64
"""Wide forwards are rounded up to multiples of so many columns."""
MIN_WIDE_COLUMNS = 64
"""Rows with fewer columns stay in the common forward: beside the weights that it reads, they cost hardly anything."""
MAX_SPLIT_SHARE = 0.8
"""A plan is split where its forwards have at most this share of the tokens of a common one."""
MIN_SHARE_OF_WIDEST = 0.75
"""Wide rows share a forward with a wider one if they have at least this share of its columns."""


def _wide_groups(widths: Ints) -> list[Ints]:
    """Rows that have forwards of their own, in groups of similar width; none where a common forward is no slower."""
    order = np.argsort(-widths, kind="stable")
    wide = [row for row in order if widths[row] > max(2 * widths.min(), MIN_WIDE_COLUMNS)]
    if not wide and widths.max() > MIN_WIDE_COLUMNS and widths.min() < MIN_SHARE_OF_WIDEST * widths.max():
        wide = list(order)
    groups: list[list[int]] = []
    for row in wide:
        if not groups or widths[row] < MIN_SHARE_OF_WIDEST * widths[groups[-1][0]]:
            groups.append([])
        groups[-1].append(int(row))
    narrow = [int(widths[row]) for row in order if row not in wide]
    split = sum(len(group) * int(widths[group[0]]) for group in groups) + len(widths) * max(narrow, default=0)
    return [np.array(group) for group in groups] if split <= MAX_SPLIT_SHARE * len(widths) * int(widths.max()) else []


def _without(plan: Plan, idle: Ints, length: int) -> Plan:
    """The plan in which some rows compute as few columns as the others."""
    width = int(np.delete(plan.window.stop - plan.window.start, idle).max())
    start, stop = plan.window.start.copy(), plan.window.stop.copy()
    start[idle] = np.minimum(plan.wanted.start[idle], length - width)
    stop[idle] = start[idle] + width
    return Plan(Span(start, stop), plan.wanted, plan.store, plan.reuse)


class TransformerSession:
    """Rows in decoding on a :class:`Transformer`."""

    def __init__(self, network: Transformer, barred: Tensor, shift: int, rows: int, length: int) -> None:
        self.network, self.barred, self.shift = network, barred, shift
        shape = network.shape
        self.cache = KVCache(shape.layers, shape.key_heads, shape.head_width, rows, length)
        self.version: int | None = None
        """Of the layout that `positions` are of."""
        self.prepared: PreparedPlan | None = None
        network.unfuse_moved_layers()
        on_one_gpu = barred.is_cuda and {parameter.device for parameter in network.parameters()} == {barred.device}
        self.graphs = GraphCache() if on_one_gpu else None
        self.apart = KVCache(shape.layers, shape.key_heads, shape.head_width, 0, length)
        """Of the rows that are computed in a forward of their own."""
        self.apart_graphs = GraphCache() if on_one_gpu else None

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        prepared = self._prepare(layout, plan)
        apart = [self._run_apart(wide, tokens) for wide in prepared.wide]
        if prepared.common is None:
            order = torch.cat([wide.rows for wide in prepared.wide]).argsort()
            return torch.cat(apart).index_select(0, order)
        inputs = prepared.common.inputs_of(tokens)
        logits = self._forward(inputs) if self.graphs is None else self.graphs(self._forward, inputs)
        for wide, own in zip(prepared.wide, apart, strict=True):
            logits.index_copy_(0, wide.rows, own)
        return logits

    def _run_apart(self, wide: WideRows, tokens: Tensor) -> Tensor:
        """The logits of wide rows. Their keys and values are computed in a KV cache of their own, then copied."""
        inputs = wide.prepared.inputs_of(tokens[wide.rows])
        if self.apart.reserve(len(wide.rows)) and self.apart_graphs is not None:
            self.apart_graphs.forget()
        if wide.reuses:
            self.apart.copy_from(self.cache, wide.rows)
        graphs = self.apart_graphs
        logits = self._forward_apart(inputs) if graphs is None else graphs(self._forward_apart, inputs)
        self.apart.copy_to(self.cache, wide.rows)
        return logits.clone()  # the next replay overwrites it

    def _forward_apart(self, inputs: ForwardInputs) -> Tensor:
        assert inputs.cache_columns is not None
        return self._run(inputs, self.apart.layers(inputs.cache_columns))

    def _forward(self, inputs: ForwardInputs) -> Tensor:
        cache = None if inputs.cache_columns is None else self.cache.layers(inputs.cache_columns)
        return self._run(inputs, cache)

    def _run(self, inputs: ForwardInputs, cache: list[LayerCache] | None) -> Tensor:
        stream = self.network(inputs.tokens, (inputs.cos, inputs.sin), inputs.mask, cache, inputs.wanted)
        logits = self.network.logits(*stream).to(inputs.tokens.device)
        return logits.index_fill_(-1, self.barred, float("-inf"))

    def _prepare(self, layout: Layout, plan: Plan) -> PreparedPlan:
        if self.version != layout.version:
            self.positions = RowPositions(self.network, layout.valid, self.network.embed.weight.dtype)
            self.version, self.prepared = layout.version, None
        if self.prepared is None or self.prepared.plan is not plan:
            self.prepared = PreparedPlan(self.positions, plan, self.shift, may_split=self.cache.is_allocated)
        return self.prepared

    def add(self, rows: int, left: int, right: int) -> None:
        if self.cache.add(rows, left, right) and self.graphs is not None:
            self.graphs.forget()
        if (left or right) and self.apart.resize(self.cache.length) and self.apart_graphs is not None:
            self.apart_graphs.forget()

    def keep(self, rows: Tensor) -> None:
        self.cache.keep(rows)
        if self.graphs is not None:
            self.graphs.shrink(len(rows))
