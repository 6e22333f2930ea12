"""A session of the transformer: it computes what a plan asks for, with a KV cache and CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from ...core.denoiser import Layout
from ...core.pieces.cache import Plan, SlidingColumns
from ...core.support.threads import is_small, side_by_side
from ...core.support.triton_support import use_triton
from .cuda_graph import ForwardInputs, GraphCache, WindowInputs
from .kv_cache import KVCache
from .network import Transformer
from .prepared import PreparedPlan, RowPart, RowParts, RowPositions, WideRows, refreshing_rows
from .session_memory import Circumstances, IdleMemory, SessionMemory
from .windows import DeviceWindows

Check = Callable[[Tensor], None]


class TransformerSession:
    """Rows in decoding on a :class:`Transformer`."""

    def __init__(
        self,
        network: Transformer,
        barred: Tensor,
        shift: int,
        rows: int,
        length: int,
        idle: IdleMemory,
        check: Check | None = None,
    ) -> None:
        """`check` sees the logits of the first forward before any are barred."""
        self.network, self.barred, self.shift, self.check = network, barred, shift, check
        shape = network.shape
        self.cache = KVCache(shape.layers, shape.key_heads, shape.head_width, rows, length)
        self.has_keys = False
        """Whether keys and values of its rows are stored."""
        self.version: int | None = None
        """Of the layout that `positions` are of."""
        self.prepared: PreparedPlan | RowParts | None = None
        network.separate_moved_layers()
        on_one_device = {parameter.device for parameter in network.parameters()} == {barred.device}
        trains = torch.is_grad_enabled() and any(weight.requires_grad for weight in network.parameters())
        asks_host = shape.mixture is not None and not use_triton(network.embed.weight)
        on_one_gpu = on_one_device and _has_graphs(barred.device) and not (asks_host or trains)
        self.in_parts = on_one_device and not trains and barred.device.type == "cpu"
        """Whether rows of different width are computed in parts. Where gradients are wanted they are not: threads would
        write into one tensor, and a graph has no gradients."""
        self.threads = torch.get_num_threads()
        self.graphs = GraphCache(is_on=on_one_gpu)
        self.apart = KVCache(shape.layers, shape.key_heads, shape.head_width, 0, length)
        """Of the rows that are computed in their own forward."""
        self.apart_graphs = GraphCache(is_on=on_one_gpu)
        self.windows: DeviceWindows | None = None
        """For rows whose windows are known on the device."""
        self._idle, self._circumstances = idle, Circumstances(network) if on_one_gpu else None
        if self._circumstances is not None:
            self._take_over(idle.take(self._circumstances, rows, length))

    def _take_over(self, left: SessionMemory | None) -> None:
        """Go on with the memory of a session that has ended."""
        if left is not None:
            self.cache, self.graphs = left.cache, left.graphs
            self.apart, self.apart_graphs, self.windows = left.apart, left.apart_graphs, left.windows

    def __del__(self) -> None:
        circumstances = getattr(self, "_circumstances", None)  # None where it was never ready
        if circumstances is not None:
            memory = (self.cache, self.graphs, self.apart, self.apart_graphs, self.windows)
            self._idle.leave(SessionMemory(circumstances, *memory))

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        if plan.columns is not None and self.has_keys:
            return self._run_windows(tokens, layout, plan, plan.columns)
        prepared = self._prepare(layout, plan)
        if isinstance(prepared, RowParts):
            return self._run_parts(prepared, tokens)
        self.has_keys |= prepared.is_cached
        apart = [self._run_apart(wide, tokens) for wide in prepared.wide]
        if prepared.common is None:
            order = torch.cat([wide.rows for wide in prepared.wide]).argsort()
            return torch.cat(apart).index_select(0, order)
        forward = partial(_forward, self.network, self.barred, self.cache, check=self._take_check())
        logits = self.graphs(forward, prepared.common.inputs_of(tokens))
        for wide, own in zip(prepared.wide, apart, strict=True):
            logits.index_copy_(0, wide.rows, own)
        return logits

    def _run_windows(self, tokens: Tensor, layout: Layout, plan: Plan, columns: SlidingColumns) -> Tensor:
        """The logits of rows whose windows are known on the device. Rows that refresh are computed here for nothing and
        then in their own forward, which computes all of it again."""
        rows = self._rows_of(layout)
        if self.windows is None or self.windows.length != rows.length:
            weight = self.network.embed.weight
            self.windows = DeviceWindows(self.network.shape, self.shift, rows.length, weight.device, weight.dtype)
        logits = self.graphs(
            partial(_forward_windows, self.network, self.barred, self.windows, self.cache),
            self.windows.inputs_of(tokens, rows, columns),
        )
        if plan.slides is not None and not plan.slides.all():
            for wide in refreshing_rows(rows, plan, self.shift):
                logits.index_copy_(0, wide.rows, self._run_apart(wide, tokens))
        return logits

    def _run_apart(self, wide: WideRows, tokens: Tensor) -> Tensor:
        """The logits of wide rows. Their keys and values are computed in their own KV cache, then copied."""
        inputs = wide.prepared.inputs_of(tokens[wide.rows])
        if self.apart.reserve(len(wide.rows), len(tokens)):
            self.apart_graphs.forget()
        if wide.reuses:
            self.apart.copy_from(self.cache, wide.rows)
        logits = self.apart_graphs(partial(_forward, self.network, self.barred, self.apart), inputs)
        self.apart.copy_to(self.cache, wide.rows)
        return logits.clone()  # the next replay overwrites it

    def _run_parts(self, prepared: RowParts, tokens: Tensor) -> Tensor:
        """The logits of all parts: side by side where rows are small, else one after the other."""
        if prepared.is_cached:
            self.cache.allocate(self.network.embed.weight)
            self.has_keys = True
        first, check = prepared.parts[0], self._take_check()
        if first.rows is None and first.columns is None:
            return _forward(self.network, self.barred, self.cache, first.prepared.inputs_of(tokens), check=check)
        shape = (len(tokens), prepared.plan.wanted.width, self.network.shape.vocab)
        logits = self.network.embed.weight.new_zeros(shape)
        tasks = [partial(self._run_part, part, tokens, logits) for part in prepared.parts]
        tasks[0] = partial(tasks[0], check=check)
        if is_small(self.network.shape.parameters, tokens.shape[1]):
            side_by_side(tasks, self.threads)
        else:
            for task in tasks:
                task()
        return logits

    def _run_part(self, part: RowPart, tokens: Tensor, logits: Tensor, check: Check | None = None) -> None:
        """Write the logits of a part."""
        rows, inputs = part.rows, part.prepared.inputs_of(tokens if part.rows is None else tokens[part.rows])
        found = _forward(self.network, self.barred, self.cache, inputs, rows, check)
        if rows is None:
            rows = torch.arange(len(found))
        if part.columns is None:
            logits.index_copy_(0, rows, found)
        else:
            logits[rows[:, None], part.columns] = found

    def _take_check(self) -> Check | None:
        """The check, for one forward."""
        check, self.check = self.check, None
        return check

    def _rows_of(self, layout: Layout) -> RowPositions:
        if self.version != layout.version:
            self.positions = RowPositions(self.network, layout, self.network.embed.weight.dtype)
            self.version, self.prepared = layout.version, None
            self.graphs.shrink(len(layout.valid))  # not as rows leave: others often join before the next forward
        return self.positions

    def _prepare(self, layout: Layout, plan: Plan) -> PreparedPlan | RowParts:
        self._rows_of(layout)
        if self.prepared is None or self.prepared.plan is not plan:
            self.prepared = (
                RowParts(self.positions, plan, self.shift, self.threads)
                if self.in_parts
                else PreparedPlan(self.positions, plan, self.shift, may_split=self.has_keys)
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
        if session.has_keys:  # nothing is stored for a row of one block
            self.cache.copy_from(session.cache, rows)
            self.has_keys = True

    def keep(self, rows: Tensor) -> None:
        self.cache.keep(rows)


def _has_graphs(device: torch.device) -> bool:
    return device.type == "cuda"


def _forward(
    network: Transformer,
    barred: Tensor,
    cache: KVCache,
    inputs: ForwardInputs,
    rows: Tensor | None = None,
    check: Check | None = None,
) -> Tensor:
    """The logits of a forward. No method: a captured one outlives its session."""
    layers = None if inputs.cache_columns is None else cache.layers(inputs.cache_columns, rows)
    stream = network(inputs.tokens, (inputs.cos, inputs.sin), inputs.mask, layers, inputs.wanted)
    logits = network.logits(*stream).to(inputs.tokens.device)
    if check is not None:
        check(logits)
    return logits.index_fill_(-1, barred, float("-inf"))


def _forward_windows(
    network: Transformer, barred: Tensor, windows: DeviceWindows, cache: KVCache, inputs: WindowInputs
) -> Tensor:
    return _forward(network, barred, cache, windows.expand(inputs))
