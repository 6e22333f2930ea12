"""A session of the transformer: it computes what a plan asks for, with a KV cache and CUDA graphs.

Everything that depends on a plan but not on the tokens (columns, RoPE, attention mask, where to write) is computed
once, when the plan or the rows change, and used for all steps of that plan.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ...core.denoiser import Layout
from ...core.pieces.cache import Plan, Span
from ...core.support.transfer import upload
from ..columns import Pick, columns
from .cuda_graph import ForwardInputs, GraphCache
from .kv_cache import KVCache
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


class PreparedPass:
    """One forward as a plan asks for it, ready for any tokens.

    With `shift` 1 the network's output at a column predicts the next one, so one more column is computed to the left of
    the window. Its keys go to the KV cache's spare column: a plan refreshes its window alone.
    """

    def __init__(self, rows: RowPositions, plan: Plan, shift: int) -> None:
        device, length, window = rows.valid.device, rows.length, plan.window
        self.plan = plan
        fresh = window.mask(length)
        is_cached = plan.store.width > 0 or plan.reuse.width > 0 or not fresh.all()
        computed = Span(np.maximum(window.start - shift, 0), window.stop)
        self.tokens = Pick(columns(computed), length, device)
        cos, sin = (self.tokens(t)[:, None].contiguous() for t in rows.rope)
        visible = rows.valid_host & (fresh | plan.reuse.mask(length))
        mask = None if visible.all() else upload(visible, device)[:, None, None]
        cache_columns = upload(self._cache_columns(computed, window, length), device) if is_cached else None
        source = columns(plan.wanted) - shift
        if shift:  # nothing stands before a row's first token, so that one predicts itself
            source = np.maximum(source, rows.first[:, None])
        source = np.clip(source - computed.start[:, None], 0, computed.width - 1)
        wanted = None
        if source.shape[1] != computed.width or (source != np.arange(computed.width)).any():
            wanted = upload(source[:1] if (source == source[:1]).all() else source, device)
        self.inputs = ForwardInputs(rows.valid.new_zeros(0, dtype=torch.int64), cos, sin, mask, cache_columns, wanted)

    @staticmethod
    def _cache_columns(computed: Span, window: Span, length: int) -> np.ndarray:
        """The KV cache's column of each computed entry; the spare one for those outside the window."""
        at = columns(computed)
        inside = (at >= window.start[:, None]) & (at < window.stop[:, None])
        found = np.where(inside, at, length)
        return found[0] if (found == found[:1]).all() else found


class TransformerSession:
    """Rows in decoding on a :class:`Transformer`."""

    def __init__(self, network: Transformer, barred: Tensor, shift: int, rows: int, length: int) -> None:
        self.network, self.barred, self.shift = network, barred, shift
        shape = network.shape
        self.cache = KVCache(shape.layers, shape.key_heads, shape.head_width, rows, length)
        self.version: int | None = None
        """Of the layout that `positions` are of."""
        self.prepared: PreparedPass | None = None
        network.unfuse_moved_layers()
        on_one_gpu = barred.is_cuda and {parameter.device for parameter in network.parameters()} == {barred.device}
        self.graphs = GraphCache() if on_one_gpu else None

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        prepared = self._prepare(layout, plan)
        inputs = prepared.inputs
        inputs.tokens = prepared.tokens(tokens)
        return self._forward(inputs) if self.graphs is None else self.graphs(self._forward, inputs)

    def _forward(self, inputs: ForwardInputs) -> Tensor:
        cache = None if inputs.cache_columns is None else self.cache.layers(inputs.cache_columns)
        stream = self.network(inputs.tokens, (inputs.cos, inputs.sin), inputs.mask, cache, inputs.wanted)
        logits = self.network.logits(*stream).to(inputs.tokens.device)
        return logits.index_fill_(-1, self.barred, float("-inf"))

    def _prepare(self, layout: Layout, plan: Plan) -> PreparedPass:
        if self.version != layout.version:
            self.positions = RowPositions(self.network, layout.valid, self.network.embed.weight.dtype)
            self.version, self.prepared = layout.version, None
        if self.prepared is None or self.prepared.plan is not plan:
            self.prepared = PreparedPass(self.positions, plan, self.shift)
        return self.prepared

    def add(self, rows: int, left: int, right: int) -> None:
        if self.cache.add(rows, left, right) and self.graphs is not None:
            self.graphs.forget()

    def keep(self, rows: Tensor) -> None:
        self.cache.keep(rows)
        if self.graphs is not None:
            self.graphs.shrink(len(rows))
