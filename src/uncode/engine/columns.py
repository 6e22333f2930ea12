"""How many columns a batch has beyond those that its rows need.

A new width costs new CUDA graphs, so columns are rounded up where forwards are replayed as graphs. A large forward is
not replayed: every spare column only costs time there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..core.denoiser import Denoiser
from .request import K, Request

COLUMN_MULTIPLE = 64
"""What columns are rounded up to: coarse enough that few widths occur."""
TRIM_SHARE = 0.25
"""Columns that no row uses any more are dropped when they are this share of the canvas."""
LARGE_TRIM_SHARE = 0.03
"""The same for large forwards, which pay for every column."""


@dataclass(frozen=True)
class Extent:
    """The columns that the rows of a batch need."""

    rows: int = 0
    start: int = 0
    """Columns before the generated span."""
    span: int = 0
    """Columns of the generated span."""
    has_cache: bool = False
    """Whether a row stores keys and values."""

    @classmethod
    def of(cls, requests: Sequence[Request[K]]) -> Extent:
        start = max((request.canvas.start for request in requests), default=0)
        span = max((request.canvas.span for request in requests), default=0)
        return cls(len(requests), start, span, any(request.has_cache for request in requests))

    def joined_by(self, request: Request[K]) -> Extent:
        canvas = request.canvas
        start, span = max(self.start, canvas.start), max(self.span, canvas.span)
        return Extent(self.rows + 1, start, span, self.has_cache or request.has_cache)

    @property
    def rounded(self) -> tuple[int, int]:
        """Columns before the span and in it, rounded up."""
        return -(-self.start // COLUMN_MULTIPLE) * COLUMN_MULTIPLE, -(-self.span // COLUMN_MULTIPLE) * COLUMN_MULTIPLE


@dataclass(frozen=True)
class ColumnRule:
    """How the columns of a model's batches are rounded up and dropped."""

    graph_tokens: int | None
    """Tokens of a forward up to which it is replayed as a CUDA graph; None on a CPU."""
    may_pad: bool = True
    """Whether the model can tell padding from tokens. If not, columns are never rounded up."""

    @classmethod
    def of(cls, denoiser: Denoiser) -> ColumnRule:
        on_gpu = torch.device(denoiser.device).type == "cuda"
        return cls(denoiser.graph_tokens if on_gpu else None, denoiser.sees_padding)

    def is_large(self, batch: Extent) -> bool:
        """Whether forwards are too large for graphs. With a KV cache most are small, however large the batch is."""
        return (
            self.graph_tokens is not None
            and not batch.has_cache
            and batch.rows * sum(batch.rounded) > self.graph_tokens
        )

    def columns(self, batch: Extent) -> tuple[int, int]:
        """Columns before the span and in it."""
        exact = self.graph_tokens is None or not self.may_pad or self.is_large(batch)
        return (batch.start, batch.span) if exact else batch.rounded

    def trim_share(self, batch: Extent) -> float:
        """Columns are dropped when no row uses them and they are at least this share of the canvas."""
        return LARGE_TRIM_SHARE if self.is_large(batch) else TRIM_SHARE
