"""Forwards as CUDA graphs: a forward whose shapes were seen before is replayed, and no launch holds it up."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache
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
    rows: Tensor
    """`[B or 1, W]`: the computed columns whose logits are asked for."""

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

    def __init__(self, forward: Forward, inputs: Inputs) -> None:
        self.inputs, self.last = inputs.clone(), inputs.cos
        self.capture(forward)

    def capture(self, forward: Forward) -> None:
        self.graph = torch.cuda.CUDAGraph()
        stream, pool = _capturing(self.inputs.tokens.device)
        stream.wait_stream(torch.cuda.current_stream(stream.device))
        with torch.cuda.stream(stream), _no_collection():
            self.graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                self.logits = forward(self.inputs)
            finally:
                self.graph.capture_end()
        torch.cuda.current_stream(stream.device).wait_stream(stream)

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

    def serves(self, inputs: Inputs) -> bool:
        """Whether it can run in the place of this forward, at hardly any cost."""
        own, given = self.inputs.tokens, inputs.tokens
        few = len(own) < 2 * len(given) and own.numel() <= LENT
        return (len(own) == len(given) or few) and self.inputs.holds(inputs)


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
def _capturing(device: torch.device) -> tuple[torch.cuda.Stream, Any]:
    """Where a device's graphs are captured, and the memory they share: one is replayed at a time."""
    return torch.cuda.Stream(device), torch.cuda.graph_pool_handle()  # type: ignore[no-untyped-call]


class Captures:
    """The forwards of a session: plain when a shape is new, captured from its second use on.

    As rows leave a batch, the forward captured with more of them serves for a while: what it computes for the rows
    that are gone is written where nobody reads.
    """

    def __init__(self, graph: Callable[[Forward, Inputs], Graph] = Graph) -> None:
        self.graph = graph
        self.graphs: list[Graph] = []
        self.seen: set[tuple[Any, ...]] = set()

    def __call__(self, forward: Forward, inputs: Inputs) -> Tensor:
        if inputs.tokens.numel() > MOST:
            return forward(inputs)
        found = [graph for graph in self.graphs if graph.serves(inputs)]
        if not found and inputs.shapes not in self.seen:
            self.seen.add(inputs.shapes)
            return forward(inputs)  # which also warms up kernels, outside of any graph
        if not found:
            found = [self.graph(forward, inputs)]
            self.graphs += found
        return min(found, key=lambda graph: len(graph.inputs.tokens))(inputs)

    def forget(self) -> None:
        """What was stored has moved: no captured forward finds it."""
        self.graphs.clear()
