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
    weight: Tensor
    """[B, 1], what a hidden token counts."""


def hide(batch: Batch, mask_id: int, suffixes: float, random: torch.Generator) -> Hidden:
    """Hide a share of each answer, uniform in (0, 1], at random places, where a token counts one over the share.

    Some of the rows hide all from a place in their text on, any place alike, as a decode from left to right sees
    it; that is no part of Eq. 1. A token counts 1 there on the average, more the longer the text is: a short one
    is cut at any one place more often, and would teach that answers are short.
    The shares of a batch are spread evenly (one uniform number, shifted from row to row), which makes the loss less
    noisy and leaves each row's uniform.
    """
    rows, length = batch.tokens.shape
    device = batch.tokens.device
    first = torch.rand(1, generator=random, device=device)
    order = torch.rand(rows, generator=random, device=device).argsort()
    share = (1 - (first + order / rows) % 1).clamp(min=LEAST)[:, None]
    scattered = torch.rand(rows, length, generator=random, device=device) < share
    places = batch.text.sum(1, keepdim=True) + 1
    cut = (torch.rand(rows, 1, generator=random, device=device) * places).long()
    suffix = batch.answer.cumsum(1) > cut
    whole = torch.rand(rows, 1, generator=random, device=device) < suffixes
    hidden = torch.where(whole, suffix, scattered) & batch.answer
    return Hidden(
        torch.where(hidden, mask_id, batch.tokens),
        hidden,
        torch.where(whole, places / places.float().mean(), 1 / share),
    )


def loss_of(logits: Tensor, tokens: Tensor, answer: Tensor, hidden: Tensor, weight: Tensor) -> Tensor:
    """Cross-entropy of the hidden tokens by their weight, for each token of the answers."""
    each = functional.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten(), reduction="none")
    return (each.view_as(tokens) * hidden * weight).sum() / answer.sum()
