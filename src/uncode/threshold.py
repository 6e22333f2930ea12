"""The threshold of `certain_first` from the model itself: from which probability on are its proposals right?

A threshold that suits one model is too low for a model that is too sure of itself, and needlessly high for one that is
seldom sure. Masked text shows which: the model predicts tokens that are known, and no task and no label is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .core.denoiser import Denoiser, Facts
from .core.errors import require
from .core.support.arguments import checks_arguments
from .likelihood import checked_ids, masked_logits, random_masks


@dataclass(frozen=True)
class ThresholdChoice:
    """What :func:`choose_threshold` found."""

    threshold: float
    """The least probability with at most `max_error` wrong proposals at or above it."""
    error: float
    """The share of wrong proposals at or above the threshold."""
    share: float
    """The share of all proposals that are at or above it."""
    proposals: int
    """All proposals, one for each masked token."""


@checks_arguments()
def choose_threshold(
    denoiser: Denoiser,
    examples: Sequence[tuple[Sequence[int], Sequence[int]]],
    *,
    max_error: float = 0.001,
    masks: int = 4,
    seed: int = 0,
) -> ThresholdChoice:
    """Mask parts of known answers, and choose the least threshold that few wrong proposals reach.

    `examples` are pairs of token ids: a prompt, which may be empty, and the text after it. Each is masked `masks`
    times, with numbers of masks spread evenly, as a decode passes through them. Use text of the kind that the model
    will write, for instance of the corpus that its frequency table was counted on.
    """
    Facts.of(denoiser)
    require(0 < max_error < 1, f"max_error must be between 0 and 1, not {max_error}.")
    require(masks >= 1, f"masks must be at least 1, not {masks}.")
    require(len(examples) > 0, "there are no examples: give pairs of token ids, a prompt and the text after it.")
    found = [_proposals(denoiser, prompt, text, masks, seed + number) for number, (prompt, text) in enumerate(examples)]
    probability, is_wrong = (np.concatenate(each) for each in zip(*found, strict=True))
    return _choose(probability, is_wrong, max_error)


def _proposals(
    denoiser: Denoiser, prompt: Sequence[int], text: Sequence[int], masks: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The probability of the proposal at each masked token, and whether it is wrong."""
    prompt, text = (checked_ids(ids, denoiser.vocab_size) for ids in (prompt, text))
    require(len(text) > 0, "the text of an example is empty: give at least one token id.")
    truth = torch.tensor([*prompt, *text], device=denoiser.device)
    masked = random_masks(len(text), masks, masks, seed)[0].to(denoiser.device)
    logits = masked_logits(denoiser, truth, len(prompt), masked)
    probability, proposal = _best(logits)
    is_wrong = proposal != truth[len(prompt) :]
    return probability[masked].cpu().numpy(), is_wrong[masked].cpu().numpy()


def _best(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The largest probability, and its token."""
    logp = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    best = logp.max(-1)
    return best.values.exp(), best.indices


def _choose(probability: np.ndarray, is_wrong: np.ndarray, max_error: float) -> ThresholdChoice:
    order = np.argsort(-probability, kind="stable")
    sorted_probability = probability[order]
    error = np.cumsum(is_wrong[order]) / np.arange(1, len(order) + 1)
    is_last = np.append(sorted_probability[1:] < sorted_probability[:-1], True)  # equal ones pass together
    (good,) = np.nonzero((error <= max_error) & is_last)
    require(
        len(good) > 0,
        f"more than {max_error:g} of the proposals are wrong at every threshold: give other text, or raise max_error.",
    )
    last = int(good[-1])
    return ThresholdChoice(float(sorted_probability[last]), float(error[last]), (last + 1) / len(order), len(order))
