"""Columns of tensors `[B, L, ...]`: sliced where all rows agree, gathered where they do not."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..core.pieces.cache import Plan, Span
from ..core.support.arrays import Ints
from ..core.support.transfer import upload


class Pick:
    """The columns `index` `[B, W]` of a tensor with `length` columns; an index outside takes the nearest inside."""

    def __init__(self, index: Ints, length: int, device: torch.device) -> None:
        self.width = index.shape[1]
        first = int(index[0, 0])
        agree = bool((index == first + np.arange(self.width)).all())
        self.first = first if agree and first >= 0 and first + self.width <= length else None
        if self.first is None:
            self.index = upload(np.clip(index, 0, length - 1), device)

    def __call__(self, tensor: Tensor) -> Tensor:
        """A view where rows agree."""
        if self.first is not None:
            return tensor.narrow(1, self.first, self.width)
        rows = tensor.expand(len(self.index), *tensor.shape[1:])
        index = self.index.reshape(*self.index.shape, *[1] * (tensor.dim() - 2))
        return rows.gather(1, index.expand(*self.index.shape, *tensor.shape[2:]))


def columns(span: Span) -> Ints:
    """The columns of a span `[B, W]`, as many for every row as the widest has."""
    return span.start[:, None] + np.arange(span.width)


def wanted_logits(logits: Tensor, plan: Plan) -> Tensor:
    """The columns of whole-canvas logits `[B, L, V]` that a plan asks for."""
    if plan.wanted.uniform:  # at every step of most decodes, so without the arithmetic of a Pick
        return logits.narrow(1, int(plan.wanted.start[0]), plan.wanted.width)
    return Pick(columns(plan.wanted), logits.shape[1], logits.device)(logits)
