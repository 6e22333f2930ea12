"""The objective of masked diffusion (the paper's Eq. 1): mask a share of each answer and predict it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from .examples.batches import TrainBatch

MIN_SHARE = 1e-3
"""The smallest share of an answer that is masked. It bounds the loss weight, which is one over the share."""


@dataclass(frozen=True)
class MaskedBatch:
    """A batch with masked positions."""

    tokens: Tensor
    """[B, T], the mask id at masked positions."""
    masked: Tensor
    """[B, T], boolean."""
    weight: Tensor
    """[B, 1], the loss weight of a row's masked tokens."""


def mask_answers(batch: TrainBatch, mask_id: int, suffixes: float, random: torch.Generator) -> MaskedBatch:
    """Mask a share of each answer at random positions. The share is uniform in (0, 1], the loss weight is one over it.

    A share `suffixes` of the rows is masked from one position of the text to the end of the row, as a left-to-right
    decode sees them. Eq. 1 has no such rows. Every position is equally likely, so a short text is cut at a given
    position more often than a long one and would teach that answers are short. The weight of such a row therefore
    grows with the length of its text; its mean is 1.
    The shares of a batch are stratified: one uniform number, shifted from row to row. The loss is less noisy, and each
    row's share is still uniform.
    """
    rows, length = batch.tokens.shape
    device = batch.tokens.device
    first = torch.rand(1, generator=random, device=device)
    order = torch.rand(rows, generator=random, device=device).argsort()
    share = (1 - (first + order / rows) % 1).clamp(min=MIN_SHARE)[:, None]
    scattered = torch.rand(rows, length, generator=random, device=device) < share
    cuts = batch.text.sum(1, keepdim=True) + 1
    cut = (torch.rand(rows, 1, generator=random, device=device) * cuts).long()
    suffix = batch.answer.cumsum(1) > cut
    is_suffix = torch.rand(rows, 1, generator=random, device=device) < suffixes
    masked = torch.where(is_suffix, suffix, scattered) & batch.answer
    return MaskedBatch(
        torch.where(masked, mask_id, batch.tokens),
        masked,
        torch.where(is_suffix, cuts / cuts.float().mean(), 1 / share),
    )


def loss_of(logits: Tensor, tokens: Tensor, answer: Tensor, masked: Tensor, weight: Tensor) -> Tensor:
    """The weighted cross-entropy of the masked tokens, divided by the number of answer tokens."""
    losses = functional.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten(), reduction="none")
    return (losses.view_as(tokens) * masked * weight).sum() / answer.sum()
