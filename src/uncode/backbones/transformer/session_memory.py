"""What the session of a single row leaves to the next one of its size: KV caches, and the CUDA graphs over them.

A forward is captured when its shapes are used for the second time, so a short answer spends a part of its time on
captures. A graph knows its KV cache by address, so both are handed over together. The next answer of the same size then
captures nothing. Several rows hand nothing over: which graph serves how many of them would depend on the batch before,
and so would the rounding in half precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...core.support.triton_support import use_triton
from .cuda_graph import GraphCache
from .kv_cache import KVCache
from .network import Transformer
from .windows import DeviceWindows

MAX_IDLE_BYTES = 1 << 29
"""Of the KV caches that are left; larger ones are freed."""


class Circumstances:
    """All that captured forwards depend on besides their inputs and the KV cache. Two are equal if nothing changed."""

    def __init__(self, network: Transformer) -> None:
        first = network.embed.weight
        stream = torch.cuda.current_stream(first.device) if first.is_cuda else None
        weights = [(weight.data_ptr(), weight.dtype) for weight in network.parameters()]
        modes = torch.is_inference_mode_enabled(), use_triton(first), stream
        self._known = weights, [layer.matrices for layer in network.layers], modes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Circumstances) and self._known == other._known

    __hash__ = None  # type: ignore[assignment]


@dataclass
class SessionMemory:
    """The memory of one session."""

    circumstances: Circumstances
    cache: KVCache
    graphs: GraphCache
    apart: KVCache
    apart_graphs: GraphCache
    windows: DeviceWindows | None

    @property
    def is_worth_it(self) -> bool:
        """Whether it has graphs of one row, and not too many bytes."""
        size = self.cache.bytes + self.apart.bytes
        return bool(self.graphs.graphs) and self.cache.capacity == 1 and size <= MAX_IDLE_BYTES


class IdleMemory:
    """The memory that the last session of a model has left; at most one. Threads may share it."""

    def __init__(self) -> None:
        self._left: list[SessionMemory] = []

    def leave(self, memory: SessionMemory) -> None:
        """A session has ended."""
        if memory.is_worth_it:
            self._left[:] = [memory]

    def take(self, circumstances: Circumstances, rows: int, length: int) -> SessionMemory | None:
        """The memory for a new session. What does not serve it is freed."""
        try:
            memory = self._left.pop()
        except IndexError:
            return None
        if rows > 1 or memory.cache.length != length or memory.circumstances != circumstances:
            return None
        memory.cache.rows = 1
        memory.cache.clear()
        memory.apart.clear()
        return memory
