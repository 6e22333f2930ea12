"""Optimizer steps as CUDA graphs: one graph per row length holds forward, backward, clipping and both optimizers.

A step of a small network is about 700 short kernels. Launching them one by one takes the host longer than the GPU needs
to run them. A replayed graph is one launch. The inputs of a graph lie in fixed tensors, and so does the learning rate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

EAGER_STEPS = 3
"""Steps of a length that run without a graph: they compile the layers and make the optimizers' state."""


class GraphedStep:
    """Runs `step(*inputs)`, which returns the loss, and replays it as a graph once it is warm."""

    def __init__(self, step: Callable[..., Tensor]) -> None:
        self._step = step
        self._eager = Counter[int]()
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, Sequence[Tensor], Tensor]] = {}
        self._pool, self._stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def __call__(self, *inputs: Tensor) -> Tensor:
        """One step. Inputs of the same row length must have the same shapes."""
        length = inputs[0].shape[1]
        if self._eager[length] < EAGER_STEPS:
            self._eager[length] += 1
            return self._run_eagerly(inputs)
        if length not in self._graphs:
            self._graphs[length] = self._capture(inputs)
        graph, fixed, loss = self._graphs[length]
        torch._foreach_copy_(list(fixed), list(inputs))
        graph.replay()
        return loss.clone()

    def _run_eagerly(self, inputs: Sequence[Tensor]) -> Tensor:
        """Run a step on the stream of the captures, because autograd remembers the stream of its first backward."""
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            loss = self._step(*inputs).clone()
        current.wait_stream(self._stream)
        return loss

    def _capture(self, inputs: Sequence[Tensor]) -> tuple[torch.cuda.CUDAGraph, Sequence[Tensor], Tensor]:
        """Record a step. Capturing runs nothing, so no weight changes."""
        fixed = [one.clone() for one in inputs]
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            loss = self._step(*fixed)
        return graph, fixed, loss
