"""How many tokens fit: measured from the peak of real forwards, never from a formula.

The memory of a forward (KV cache, activations, logits, belief) grows with the tokens of the batch, rows times columns.
The engine measures the peak of its own tensors, and keeps the largest number of bytes per token: of the batch that runs
and of the one before it, so that a peak is forgotten. On a GPU torch counts the bytes. On a CPU the engine counts
those of the tensors that its thread makes: the memory of the process has that of all other threads in it.
A batch may grow to twice the tokens that were measured, and further only where memory is ample, so that a guess
is never far from a measurement where it matters.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ..core.support.memory import free_bytes

FIRST_TOKENS = 4096
"""Tokens of the first batch, before anything was measured; a single row may have more."""
AMPLE = 8
"""A batch may grow at once where it needs at most this part of the limit."""
SHARE_OF_FREE = 0.8
"""Of the memory that was free when the engine began."""


class MemoryBudget:
    """Bytes that the engine may use, and bytes per token as measured lately."""

    def __init__(self, device: torch.device, limit: int | None = None) -> None:
        self.device = device
        free = free_bytes(device)
        self.limit = limit if limit is not None else None if free is None else int(SHARE_OF_FREE * free)
        self._baseline = torch.cuda.memory_allocated(device) if device.type == "cuda" else 0
        self._before, self._now = (0, 0.0), (0, 0.0)
        """Of the batch before, and of the one that runs: the most tokens of a measured forward, and bytes per token."""
        self._tensors = TensorBytes()
        self.max_tokens: int | None = None
        """Set by the first forward that did not fit."""

    @property
    def measured(self) -> int:
        """The most tokens of a forward that was measured."""
        return max(self._before[0], self._now[0])

    @property
    def per_token(self) -> float:
        """The most bytes per token that were measured."""
        return max(self._before[1], self._now[1])

    def allows(self, tokens: int) -> bool:
        """Whether a batch of so many tokens fits."""
        if self.max_tokens is not None and tokens > self.max_tokens:
            return False
        if tokens <= max(FIRST_TOKENS, 2 * self.measured):
            return self.limit is None or tokens * self.per_token <= self.limit
        # far from what was measured only where memory is no question
        return self.limit is not None and 0 < tokens * self.per_token <= self.limit / AMPLE

    def begin(self) -> None:
        """A batch begins without rows: what was measured before the last batch is forgotten."""
        if self._now[0]:
            self._before, self._now = self._now, (0, 0.0)
        self._tensors = TensorBytes()

    def watching(self, tokens: int) -> AbstractContextManager[object]:
        """Count what is made while rows join a batch that will have so many tokens, if its forward will be measured."""
        return self._tensors if self.device.type == "cpu" and tokens > self._now[0] else nullcontext()

    @contextmanager
    def measuring(self, tokens: int) -> Iterator[None]:
        """Measure the peak of a forward over so many tokens. Batches that are not larger than a measured one are not
        measured again."""
        if tokens <= self._now[0] or not tokens:
            yield
            return
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        self._tensors.peak = self._tensors.now
        with self.watching(tokens):
            yield
        peak = torch.cuda.max_memory_allocated(self.device) if self.device.type == "cuda" else self._tensors.peak
        self._now = tokens, max(self._now[1], (peak - self._baseline) / tokens)

    def shrink(self, tokens: int) -> None:
        """A forward over so many tokens ran out of memory: halve the limit."""
        self.max_tokens = tokens // 2


class TensorBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside it, the bytes of the tensors that this thread makes are counted until they are freed.

    It takes some microseconds for each operation, so it is not for every forward. It does not see what an operation
    allocates for itself, nor memory of a model that does not compute with torch.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = 0
        self._known: dict[int, weakref.ref[torch.UntypedStorage]] = {}
        """Storages that are counted, by their address."""

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        given = {storage._cdata for storage in _storages([*args, *(kwargs or {}).values()])}
        found = func(*args, **(kwargs or {}))
        for storage in _storages([found]):
            if storage._cdata not in given:  # a view, or a tensor that was written in place, takes no memory
                self._count(storage)
        return found

    def _count(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return

        def freed(_: object) -> None:
            del self._known[key]
            self.now -= size

        self._known[key] = weakref.ref(storage, freed)
        self.now += size
        self.peak = max(self.peak, self.now)


def _storages(values: Iterable[object]) -> Iterator[torch.UntypedStorage]:
    """Of the tensors among some values, and in lists of them. Sparse and MKLDNN tensors have none."""
    for value in values:
        if isinstance(value, Tensor) and value.layout is torch.strided:
            yield value.untyped_storage()
        elif isinstance(value, list | tuple):
            yield from _storages(value)
