"""Forwards as CUDA graphs: a forward whose shapes were seen before is replayed by one launch.

Without graphs a small forward is limited by the host, which launches several hundred kernels for each.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

import torch
from torch import Tensor

MAX_TOKENS = 4096
"""Tokens of a forward that is captured. A larger one keeps the GPU busy long after its last launch."""
MAX_PADDED_TOKENS = 512
"""Tokens of a captured forward that may be replayed with fewer rows than it has. So few cost hardly more than one."""


class ForwardInputs(NamedTuple):
    """All that a forward reads besides the weights and the KV cache."""

    tokens: Tensor
    cos: Tensor
    sin: Tensor
    mask: Tensor | None
    cache_columns: Tensor | None
    """The KV cache's columns that are written: `[T]`, or `[B, T]` where rows differ; None without a cache."""
    wanted: Tensor | None
    """`[B or 1, W]`: the computed columns whose logits are asked for; None where all are."""

    @property
    def computed(self) -> int:
        """Tokens that are computed."""
        return self.tokens.numel()


class WindowInputs(NamedTuple):
    """All that a forward over windows reads whose place is known on the device (see :mod:`.windows`)."""

    tokens: Tensor
    """The whole canvas, `[B, L]`."""
    window: Tensor
    """`[B, 2]`: the column at which each row's window starts, and the one at which it stops."""
    wanted: Tensor
    """`[B, W]`: the columns whose logits are asked for."""
    offsets: Tensor
    """`[T]`: 0, 1, ..., one for each column that is computed of a row."""
    first: Tensor
    """`[B, 1]`: each row's first valid column."""
    valid: Tensor | None
    """`[B, L]`; None where all columns are."""

    @property
    def computed(self) -> int:
        """Tokens that are computed."""
        return len(self.tokens) * len(self.offsets)


Inputs = ForwardInputs | WindowInputs


def shapes_of(inputs: Inputs) -> tuple[tuple[int, ...] | None, ...]:
    return tuple(None if tensor is None else tuple(tensor.shape) for tensor in inputs)


def fits(inputs: Inputs, other: Inputs) -> bool:
    """Whether the other's tensors have the shapes of these, or fewer rows."""
    mine, theirs = len(inputs.tokens), len(other.tokens)

    def fits_in(own: Tensor | None, given: Tensor | None) -> bool:
        if own is None or given is None:
            return own is given
        by_row = own.dim() > 1 and len(own) == mine and len(given) == theirs
        return own.shape == given.shape or (by_row and own.shape[1:] == given.shape[1:])

    return type(inputs) is type(other) and mine >= theirs and all(map(fits_in, inputs, other))


Forward = Callable[[Any], Tensor]
Pool = Any
"""The memory that captures share: torch.cuda.graph_pool_handle(), or None."""


class CapturedForward:
    """One captured forward. Its logits are valid until the next replay."""

    def __init__(self, forward: Forward, inputs: Inputs, pool: Pool) -> None:
        self.inputs, self.last = type(inputs)._make(None if t is None else t.clone() for t in inputs), inputs
        self.capture(forward, pool)

    def capture(self, forward: Forward, pool: Pool) -> None:
        self.graph = torch.cuda.CUDAGraph()
        here = torch.cuda.current_stream(self.inputs.tokens.device)
        stream = _stream(here.device)
        with _CAPTURING, _no_collection():
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                self.graph.capture_begin(pool=pool, capture_error_mode="thread_local")
                try:
                    self.logits = forward(self.inputs)
                except BaseException:
                    with suppress(RuntimeError):  # the broken capture's; the error that broke it is raised
                        self.graph.capture_end()
                    raise
                self.graph.capture_end()
            here.wait_stream(stream)

    def replay(self) -> None:
        self.graph.replay()

    def __call__(self, inputs: Inputs) -> Tensor:
        for mine, now, last in zip(self.inputs, inputs, self.last, strict=True):
            if mine is not None and now is not None and (now is not last or now is inputs.tokens):
                mine[: len(now)].copy_(now)  # the tokens are written in place; another tensor as before is as it was
        self.last = inputs
        self.replay()
        return self.logits[: len(inputs.tokens)]

    def can_run(self, rows: int) -> bool:
        """Whether it can be replayed with so many rows at hardly any cost."""
        own = len(self.inputs.tokens)
        return rows == own or (rows < own < 2 * rows and self.inputs.computed <= MAX_PADDED_TOKENS)

    def can_serve(self, inputs: Inputs) -> bool:
        """Whether its replay computes the forward of `inputs`."""
        return self.can_run(len(inputs.tokens)) and fits(self.inputs, inputs)


_CAPTURING = Lock()
"""One capture at a time: garbage collection is switched off for the whole process."""


@contextmanager
def _no_collection() -> Iterator[None]:
    """Switch garbage collection off: an old graph that is freed during a capture breaks the capture."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    """The stream of a device's captures. Each new stream would keep its own cuBLAS workspace."""
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        one = torch.ones(8, 8, device=device)
        one @ one  # allocates the workspace now, outside of any graph
    return stream


class GraphCache:
    """The captured forwards of a session. A forward runs plainly when its shapes are new, and is captured at their
    second use.

    As rows leave a batch, a forward captured with more rows is replayed for a while. The missing rows write into their
    own rows of the KV cache, which no row uses any more.
    """

    def __init__(
        self, graph: Callable[[Forward, Inputs, Pool], CapturedForward] = CapturedForward, is_on: bool = True
    ) -> None:
        self.graph, self.is_on = graph, is_on
        """Forwards stay plain where it is off: without a CUDA device, or without memory for a capture."""
        self.forget()

    def forget(self) -> None:
        """The KV cache has moved: captured forwards would read its old address."""
        self.graphs: list[CapturedForward] = []
        self.seen: set[tuple[tuple[int, ...] | None, ...]] = set()
        self.pool: Pool = None

    def shrink(self, rows: int) -> None:
        """Rows have left: drop the graphs that have too many of them."""
        self.graphs = [graph for graph in self.graphs if graph.can_run(rows)]
        if not self.graphs:
            self.pool = None  # a pool without graphs cannot be used again

    def __call__(self, forward: Forward, inputs: Inputs) -> Tensor:
        if not self.is_on or inputs.computed > MAX_TOKENS:
            return forward(inputs)
        found = [graph for graph in self.graphs if graph.can_serve(inputs)]
        shapes = shapes_of(inputs)
        if not found and shapes not in self.seen:
            self.seen.add(shapes)
            return forward(inputs)  # which also warms up kernels, outside of any graph
        if not found:
            try:
                found = [self._captured(forward, inputs)]
            except torch.OutOfMemoryError:
                self.is_on = False
                self.forget()
                return forward(inputs)
        return min(found, key=lambda graph: len(graph.inputs.tokens))(inputs)

    def _captured(self, forward: Forward, inputs: Inputs) -> CapturedForward:
        if self.pool is None and inputs.tokens.is_cuda:  # which all of them share: one is replayed at a time
            self.pool = torch.cuda.graph_pool_handle()
        graph = self.graph(forward, inputs, self.pool)
        self.graphs.append(graph)
        return graph
