"""What the pieces of a lane remember from step to step, laid out like the open window of its rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...belief import Belief, divergence, log_probabilities
from ...denoiser import Facts
from ...pieces.cache import Span
from ...pieces.piece import Buffer
from ...pieces.policy import Sampler
from ...support.arrays import Ints
from ...support.transfer import upload
from ...view import View

LAST = Buffer("last log-probabilities", "token", float("nan"))
"""Kept where a piece needs the drift of the distribution. No piece can declare a buffer of this name."""


def buffers_of(sampler: Sampler) -> list[Buffer]:
    """All that the pieces of a sampler remember."""
    found = [buffer for piece in sampler.pieces() for buffer in piece.buffers()]
    return [*found, LAST] if any(piece.needs_drift for piece in sampler.pieces()) else found


def blank(buffer: Buffer, rows: int, width: int, facts: Facts) -> Tensor:
    """A buffer as it is before the first step of a block. Numbers per token are float32, others float64."""
    shapes = {"row": (rows, 1), "position": (rows, width), "token": (rows, width, facts.vocab_size)}
    dtype = torch.float32 if buffer.per == "token" else torch.float64
    return torch.full(shapes[buffer.per], buffer.fill, dtype=dtype, device=facts.device)


class Memory:
    """The buffers of a lane. Between two layouts, row r of a buffer is the lane's row r."""

    def __init__(self, buffers: list[Buffer], facts: Facts) -> None:
        self._buffers, self._facts = buffers, facts
        self.values = {buffer.name: blank(buffer, 0, 0, facts) for buffer in buffers}
        self._ids = self._window = np.zeros(0, dtype=np.int64)
        self._blocks = Span(self._ids, self._ids)

    def lay_out(self, ids: Ints, blocks: Span, window: Ints, width: int, opens: NDArray[np.bool_]) -> None:
        """Follow the rows: those with these ids stay or are new, with these open blocks, in windows of `width` columns
        from the offsets `window` `[B]` on.

        Rows whose block `opens` forget what does not outlive a block. Columns outside a row's block are never kept:
        whether a window has them depends on the other rows.
        """
        where = {row: at for at, row in enumerate(self._ids.tolist())}
        before = np.array([where.get(row, -1) for row in ids.tolist()], dtype=np.int64)
        for buffer in self._buffers:
            stays = np.flatnonzero((before >= 0) & (~opens | buffer.outlives_block))
            self.values[buffer.name] = self._moved(buffer, before, stays, window, width)
        self._ids, self._blocks, self._window = ids, blocks, window

    def _moved(self, buffer: Buffer, before: Ints, stays: Ints, window: Ints, width: int) -> Tensor:
        """A buffer in the new layout: rows that stay keep the columns of the block they had."""
        old, device = self.values[buffer.name], self._facts.device
        new = blank(buffer, len(before), width, self._facts).to(old.dtype)
        if not len(stays):
            return new
        rows, source = upload(stays, device), upload(before[stays], device)
        if buffer.per == "row":
            new[rows] = old[source]
            return new
        offsets, had = window[stays, None] + np.arange(width), self._blocks.take(before[stays])
        inside = upload((offsets >= had.start[:, None]) & (offsets < had.stop[:, None]), device)
        columns = np.clip(offsets - self._window[before[stays], None], 0, old.shape[1] - 1)
        found = old[source[:, None], upload(columns, device)]
        new[rows] = torch.where(inside if found.ndim == 2 else inside[..., None], found, buffer.fill)
        return new

    def with_drift(self, belief: Belief, logits: Tensor) -> Belief:
        """The belief with the divergence of `logits` from those of the step before, where a piece needs it."""
        if LAST.name not in self.values:
            return belief
        now = log_probabilities(logits)
        belief = replace(belief, moved=divergence(now, self.values[LAST.name]))
        self.values[LAST.name] = now
        return belief

    def update(self, sampler: Sampler, view: View, logits: Tensor) -> None:
        """Let every piece remember the step."""
        for piece in sampler.pieces():
            self.values.update(piece.remember(view, logits))
