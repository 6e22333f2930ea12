"""The batch's tensors on the device: the canvas of all rows, their seeds, and which rows are unfinished."""

from __future__ import annotations

import torch
from torch import Tensor

from ..canvas import Canvas
from ..denoiser import Layout


class Batch:
    """Rows on one canvas `[B, L]`; the generated span starts at the same column for all."""

    def __init__(self, canvas: Canvas, seeds: Tensor) -> None:
        self.tokens, self.valid, self.given = canvas.tokens.clone(), canvas.valid.clone(), canvas.given
        self.seeds, self.unfinished, self.start = seeds, _ones(seeds), canvas.start
        """`unfinished` `[B, 1]` is 1 for rows that are still decoded and 0 for rows that have finished."""
        self.layout = Layout(self.valid, self.given)

    @property
    def span(self) -> int:
        """Columns of the generated span."""
        return int(self.tokens.shape[1]) - self.start

    @property
    def generated(self) -> Tensor:
        """The generated span, `[B, S]`; a view."""
        return self.tokens[:, self.start :]

    def add(self, canvas: Canvas, seeds: Tensor) -> tuple[int, int]:
        """Rows join; all grow to the wider prompt and the longer span. Returns by how many columns the old rows grow,
        left and right."""
        left, right = canvas.start - self.start, canvas.span - self.span
        filler = int(canvas.mask_id == 0)  # any token but the mask
        pairs = (
            (self.tokens, canvas.tokens, filler),
            (self.valid, canvas.valid, False),
            (self.given, canvas.given, True),
        )
        self.tokens, self.valid, self.given = (
            torch.cat([_widen(old, left, right, fill), _widen(new, -left, -right, fill)]) for old, new, fill in pairs
        )
        self.seeds, self.unfinished = torch.cat([self.seeds, seeds]), torch.cat([self.unfinished, _ones(seeds)])
        self.start = max(self.start, canvas.start)
        self.layout = Layout(self.valid, self.given, self.layout.version + 1)
        return max(left, 0), max(right, 0)

    def crop(self, left: int, right: int) -> None:
        """Drop columns that are padding in every row."""
        kept = slice(left, self.tokens.shape[1] - right)
        self.tokens, self.valid, self.given = (t[:, kept].clone() for t in (self.tokens, self.valid, self.given))
        self.start -= left
        self.layout = Layout(self.valid, self.given, self.layout.version + 1)

    def keep(self, rows: Tensor) -> None:
        """Only these rows stay, in this order."""
        self.tokens, self.valid, self.given = self.tokens[rows], self.valid[rows], self.given[rows]
        self.seeds, self.unfinished = self.seeds[rows], self.unfinished[rows]
        self.layout = Layout(self.valid, self.given, self.layout.version + 1)


def _ones(seeds: Tensor) -> Tensor:
    return torch.ones(len(seeds), 1, dtype=torch.int64, device=seeds.device)


def _widen(tensor: Tensor, left: int, right: int, fill: float) -> Tensor:
    return torch.nn.functional.pad(tensor, (max(left, 0), max(right, 0)), value=fill)
