"""The objective of masked diffusion (the paper's Eq. 1): hide a share of an answer and predict it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from .batches import Batch

LEAST = 1e-3
"""The smallest share; the weight is its inverse."""


@dataclass(frozen=True)
class Hidden:
    """A batch with places hidden."""

    tokens: Tensor
    """[B, T], masks where hidden."""
    hidden: Tensor
    """[B, T], boolean."""
    share: Tensor
    """[B, 1], how much of the answer was to be hidden."""


def hide(batch: Batch, mask_id: int, suffixes: float, random: torch.Generator) -> Hidden:
    """Hide a share of each answer, uniform in (0, 1]: at random places, or in some of the rows as a suffix.

    The shares of a batch are spread evenly (one uniform number, shifted from row to row), which makes the
    loss less noisy and leaves each row's share uniform.
    """
    rows, length = batch.tokens.shape
    device = batch.tokens.device
    first = torch.rand(1, generator=random, device=device)
    order = torch.rand(rows, generator=random, device=device).argsort()
    share = (1 - (first + order / rows) % 1).clamp(min=LEAST)[:, None]
    scattered = torch.rand(rows, length, generator=random, device=device) < share
    size = batch.answer.sum(1, keepdim=True)
    suffix = torch.arange(length, device=device) >= length - (share * size).ceil()
    whole = torch.rand(rows, 1, generator=random, device=device) < suffixes
    hidden = torch.where(whole, suffix, scattered) & batch.answer
    return Hidden(torch.where(hidden, mask_id, batch.tokens), hidden, share)


def loss_of(logits: Tensor, tokens: Tensor, answer: Tensor, hidden: Tensor, share: Tensor) -> Tensor:
    """Cross-entropy of the hidden tokens over the share that was hidden, for each token of the answers."""
    each = functional.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten(), reduction="none")
    return (each.view_as(tokens) * hidden / share).sum() / answer.sum()
