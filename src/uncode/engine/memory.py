"""How many tokens fit: measured from the peak of real forwards, never from a formula.

The memory of a forward (KV cache, activations, logits, belief) grows with the tokens of the batch, rows times columns.
The engine measures the peak above what was allocated before it began, and keeps the largest number of bytes per token.
A batch may grow to twice the tokens that were measured, and further only where memory is ample, so that a guess
is never far from a measurement where it matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from ..core.support.memory import free_bytes

FIRST_TOKENS = 4096
"""Tokens of the first batch, before anything was measured; a single row may have more."""
AMPLE = 8
"""A batch may grow at once where it needs at most this part of the limit."""
SHARE_OF_FREE = 0.8
"""Of the memory that was free when the engine began."""


class MemoryBudget:
    """Bytes that the engine may use, and bytes per token as measured so far."""

    def __init__(self, device: torch.device, limit: int | None = None) -> None:
        self.device = device
        free = free_bytes(device)
        self.limit = limit if limit is not None else None if free is None else int(SHARE_OF_FREE * free)
        self.baseline = _allocated(device)
        self.per_token = 0.0
        self.measured = 0
        """The most tokens of a forward that was measured."""
        self.max_tokens: int | None = None
        """Set by the first forward that did not fit."""

    def allows(self, tokens: int) -> bool:
        """Whether a batch of so many tokens fits."""
        if self.max_tokens is not None and tokens > self.max_tokens:
            return False
        if tokens <= max(FIRST_TOKENS, 2 * self.measured):
            return self.limit is None or tokens * self.per_token <= self.limit
        # far from what was measured only where memory is no question
        return self.limit is not None and 0 < tokens * self.per_token <= self.limit / AMPLE

    @contextmanager
    def measuring(self, tokens: int) -> Iterator[None]:
        """Measure the peak of a forward over so many tokens. Batches that are not larger than a measured one are not
        measured again."""
        if tokens <= self.measured or not tokens:
            yield
            return
        _reset_peak(self.device)
        yield
        peak = _peak(self.device)
        if peak is not None and self.baseline is not None:
            self.per_token = max(self.per_token, (peak - self.baseline) / tokens)
        self.measured = tokens

    def shrink(self, tokens: int) -> None:
        """A forward over so many tokens ran out of memory: halve the limit."""
        self.max_tokens = tokens // 2


def _allocated(device: torch.device) -> int | None:
    """Bytes in use now."""
    if device.type == "cuda":
        return int(torch.cuda.memory_allocated(device))
    return _status("VmRSS") if device.type == "cpu" else None


def _reset_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif device.type == "cpu":
        try:
            Path("/proc/self/clear_refs").write_text("5")  # the kernel's way to reset VmHWM
        except OSError:
            return


def _peak(device: torch.device) -> int | None:
    """The most bytes in use since the peak was reset."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    return _status("VmHWM") if device.type == "cpu" else None


def _status(name: str) -> int | None:
    """A field of this process's status, in bytes; None where the system has no such file."""
    file = Path("/proc/self/status")
    if not file.is_file():
        return None
    fields = dict(line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
    return int(fields[name].split()[0]) * 1024 if name in fields else None
