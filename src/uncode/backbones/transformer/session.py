"""A session of the transformer: it computes what a plan asks for, with a KV cache and CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from ...core.denoiser import Layout
from ...core.pieces.cache import Plan
from ...core.support.threads import is_small, side_by_side
from .cuda_graph import ForwardInputs, GraphCache
from .kv_cache import KVCache
from .network import Transformer
from .prepared import PreparedPlan, RowPart, RowParts, RowPositions, WideRows


class TransformerSession:
    """Rows in decoding on a :class:`Transformer`."""

    def __init__(
        self,
        network: Transformer,
        barred: Tensor,
        shift: int,
        rows: int,
        length: int,
        check: Callable[[Tensor], None] | None = None,
    ) -> None:
        """`check` sees the logits of the first forward before the mask's are barred."""
        self.network, self.barred, self.shift, self.check = network, barred, shift, check
        shape = network.shape
        self.cache = KVCache(shape.layers, shape.key_heads, shape.head_width, rows, length)
        self.version: int | None = None
        """Of the layout that `positions` are of."""
        self.prepared: PreparedPlan | RowParts | None = None
        network.separate_moved_layers()
        on_one_device = {parameter.device for parameter in network.parameters()} == {barred.device}
        on_one_gpu = barred.is_cuda and on_one_device
        self.in_parts = on_one_device and barred.device.type == "cpu"
        """Whether rows of different width are computed in parts."""
        self.threads = torch.get_num_threads()
        self.graphs = GraphCache(is_on=on_one_gpu)
        self.apart = KVCache(shape.layers, shape.key_heads, shape.head_width, 0, length)
        """Of the rows that are computed in their own forward."""
        self.apart_graphs = GraphCache(is_on=on_one_gpu)

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        prepared = self._prepare(layout, plan)
        if isinstance(prepared, RowParts):
            return self._run_parts(prepared, tokens)
        apart = [self._run_apart(wide, tokens) for wide in prepared.wide]
        if prepared.common is None:
            order = torch.cat([wide.rows for wide in prepared.wide]).argsort()
            return torch.cat(apart).index_select(0, order)
        logits = self.graphs(partial(self._forward, self.cache), prepared.common.inputs_of(tokens))
        for wide, own in zip(prepared.wide, apart, strict=True):
            logits.index_copy_(0, wide.rows, own)
        return logits

    def _run_apart(self, wide: WideRows, tokens: Tensor) -> Tensor:
        """The logits of wide rows. Their keys and values are computed in their own KV cache, then copied."""
        inputs = wide.prepared.inputs_of(tokens[wide.rows])
        if self.apart.reserve(len(wide.rows)):
            self.apart_graphs.forget()
        if wide.reuses:
            self.apart.copy_from(self.cache, wide.rows)
        logits = self.apart_graphs(partial(self._forward, self.apart), inputs)
        self.apart.copy_to(self.cache, wide.rows)
        return logits.clone()  # the next replay overwrites it

    def _run_parts(self, prepared: RowParts, tokens: Tensor) -> Tensor:
        """The logits of all parts: side by side where rows are small, else one after the other."""
        if prepared.is_cached:
            self.cache.allocate(self.network.embed.weight)
        first = prepared.parts[0]
        if first.rows is None and first.columns is None:
            return self._forward(self.cache, first.prepared.inputs_of(tokens))
        shape = (len(tokens), prepared.plan.wanted.width, self.network.shape.vocab)
        logits = self.network.embed.weight.new_zeros(shape)
        tasks = [partial(self._run_part, part, tokens, logits) for part in prepared.parts]
        if is_small(self.network.shape.parameters, tokens.shape[1]):
            side_by_side(tasks, self.threads)
        else:
            for task in tasks:
                task()
        return logits

    def _run_part(self, part: RowPart, tokens: Tensor, logits: Tensor) -> None:
        """Write the logits of a part."""
        rows, inputs = part.rows, part.prepared.inputs_of(tokens if part.rows is None else tokens[part.rows])
        found = self._forward(self.cache, inputs, rows)
        if rows is None:
            rows = torch.arange(len(found))
        if part.columns is None:
            logits.index_copy_(0, rows, found)
        else:
            logits[rows[:, None], part.columns] = found

    def _forward(self, cache: KVCache, inputs: ForwardInputs, rows: Tensor | None = None) -> Tensor:
        layers = None if inputs.cache_columns is None else cache.layers(inputs.cache_columns, rows)
        stream = self.network(inputs.tokens, (inputs.cos, inputs.sin), inputs.mask, layers, inputs.wanted)
        logits = self.network.logits(*stream).to(inputs.tokens.device)
        if self.check is not None:
            check, self.check = self.check, None
            check(logits)
        return logits.index_fill_(-1, self.barred, float("-inf"))

    def _prepare(self, layout: Layout, plan: Plan) -> PreparedPlan | RowParts:
        if self.version != layout.version:
            self.positions = RowPositions(self.network, layout, self.network.embed.weight.dtype)
            self.version, self.prepared = layout.version, None
        if self.prepared is None or self.prepared.plan is not plan:
            self.prepared = (
                RowParts(self.positions, plan, self.shift, self.threads)
                if self.in_parts
                else PreparedPlan(self.positions, plan, self.shift, may_split=self.cache.is_allocated)
            )
        return self.prepared

    def add(self, rows: int, left: int, right: int) -> None:
        if self.cache.add(rows, left, right):
            self.graphs.forget()
        if left or right:
            self.apart.resize(self.cache.length)
            self.apart_graphs.forget()

    def copy_rows(self, session: TransformerSession, rows: Tensor) -> None:
        """The first rows take over the stored keys and values of these rows of another session."""
        if session.cache.is_allocated:  # nothing is stored for a row of one block
            self.cache.copy_from(session.cache, rows)

    def keep(self, rows: Tensor) -> None:
        self.cache.keep(rows)
        self.graphs.shrink(len(rows))
