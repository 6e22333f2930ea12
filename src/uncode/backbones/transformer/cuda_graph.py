"""Forwards as CUDA graphs: a forward whose shapes were seen before is replayed, and no launch holds it up."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import cache
from threading import Lock
from typing import Any

import torch
from torch import Tensor

MOST = 4096
"""Tokens of a forward that is captured: the GPU is busy with a larger one long after its last launch."""
LENT = 512
"""Tokens of a captured forward that may run with fewer rows than it has: so few cost hardly more than one."""


@dataclass
class Inputs:
    """All that a forward reads besides the weights and what is stored."""

    tokens: Tensor
    cos: Tensor
    sin: Tensor
    mask: Tensor | None
    places: Tensor | None
    """Where fresh keys and values are stored: `[T]`, or `[B, T]` where rows differ; None where none are."""
    rows: Tensor | None
    """`[B or 1, W]`: the computed columns whose logits are asked for; None where all are."""

    @property
    def shapes(self) -> tuple[Any, ...]:
        return tuple(None if tensor is None else tuple(tensor.shape) for tensor in self._tensors())

    def clone(self) -> Inputs:
        made = {field.name: value.clone() for field in fields(self) if (value := getattr(self, field.name)) is not None}
        return replace(self, **made)

    def holds(self, other: Inputs) -> bool:
        """Whether the other's tensors are these, or fewer rows of these."""
        mine, theirs = len(self.tokens), len(other.tokens)

        def fits(own: Tensor | None, given: Tensor | None) -> bool:
            if own is None or given is None:
                return own is given
            by_row = own.dim() > 1 and len(own) == mine and len(given) == theirs
            return own.shape == given.shape or (by_row and own.shape[1:] == given.shape[1:])

        return mine >= theirs and all(map(fits, self._tensors(), other._tensors()))

    def take(self, other: Inputs) -> None:
        """Hold what the other holds, in its first rows."""
        for mine, theirs in zip(self._tensors(), other._tensors(), strict=True):
            if mine is not None and theirs is not None:
                mine[: len(theirs)].copy_(theirs)

    def _tensors(self) -> list[Tensor | None]:
        return [getattr(self, field.name) for field in fields(self)]


Forward = Callable[[Inputs], Tensor]


class Graph:
    """One captured forward. Its logits are valid until it is replayed."""

    def __init__(self, forward: Forward, inputs: Inputs, pool: Any) -> None:
        self.inputs, self.last = inputs.clone(), inputs.cos
        self.capture(forward, pool)

    def capture(self, forward: Forward, pool: Any) -> None:
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
                    with suppress(RuntimeError):  # of a capture that is broken off; what broke it is told
                        self.graph.capture_end()
                    raise
                self.graph.capture_end()
            here.wait_stream(stream)

    def replay(self) -> None:
        self.graph.replay()

    def __call__(self, inputs: Inputs) -> Tensor:
        if self.last is inputs.cos:  # the pass of the step before: only the tokens have changed
            self.inputs.tokens[: len(inputs.tokens)].copy_(inputs.tokens)
        else:
            self.inputs.take(inputs)
            self.last = inputs.cos
        self.replay()
        return self.logits[: len(inputs.tokens)]

    def suits(self, rows: int) -> bool:
        """Whether it can run with so many rows, at hardly any cost."""
        own = self.inputs.tokens
        return rows == len(own) or (rows < len(own) < 2 * rows and own.numel() <= LENT)

    def serves(self, inputs: Inputs) -> bool:
        """Whether it can run in the place of this forward."""
        return self.suits(len(inputs.tokens)) and self.inputs.holds(inputs)


_CAPTURING = Lock()
"""One capture at a time: garbage collection is the whole process's."""


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage is collected meanwhile: an old graph that is freed during a capture breaks it off."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    """The stream of a device's captures; each new one would keep memory for its products."""
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        one = torch.ones(8, 8, device=device)
        one @ one  # takes that memory now, so that it is no part of a graph's
    return stream


class Captures:
    """The forwards of a session: plain when a shape is new, captured from its second use on.

    As rows leave a batch, the forward captured with more of them serves for a while: what it computes for the rows
    that are gone is written where nobody reads. Where there is no memory for a capture, forwards stay plain.
    """

    def __init__(self, graph: Callable[[Forward, Inputs, Any], Graph] = Graph) -> None:
        self.graph, self.full = graph, False
        self.forget()

    def forget(self) -> None:
        """What was stored has moved: no captured forward finds it."""
        self.graphs: list[Graph] = []
        self.seen: set[tuple[Any, ...]] = set()
        self.pool: Any = None

    def shrink(self, rows: int) -> None:
        """Rows have left: forwards that have too many of them will not be asked for again."""
        self.graphs = [graph for graph in self.graphs if graph.suits(rows)]
        if not self.graphs:
            self.pool = None  # one without graphs is not taken up again

    def __call__(self, forward: Forward, inputs: Inputs) -> Tensor:
        if self.full or inputs.tokens.numel() > MOST:
            return forward(inputs)
        found = [graph for graph in self.graphs if graph.serves(inputs)]
        if not found and inputs.shapes not in self.seen:
            self.seen.add(inputs.shapes)
            return forward(inputs)  # which also warms up kernels, outside of any graph
        if not found:
            try:
                found = [self._captured(forward, inputs)]
            except torch.OutOfMemoryError:
                self.full = True
                self.forget()
                return forward(inputs)
        return min(found, key=lambda graph: len(graph.inputs.tokens))(inputs)

    def _captured(self, forward: Forward, inputs: Inputs) -> Graph:
        if self.pool is None and inputs.tokens.is_cuda:  # which all of them share: one is replayed at a time
            self.pool = torch.cuda.graph_pool_handle()
        graph = self.graph(forward, inputs, self.pool)
        self.graphs.append(graph)
        return graph
