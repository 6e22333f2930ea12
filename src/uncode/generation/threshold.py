"""The threshold of `certain_first` from the model itself: from which probability on are its proposals right?

A threshold that suits one model is too low for a model that is too sure of itself, and needlessly high for one that is
seldom sure. Masked answers show which: the model predicts tokens that are known, and no label is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ..core.belief import log_probabilities
from ..core.denoiser import Denoiser, Facts
from ..core.errors import require
from ..core.support.arguments import checks_arguments
from .likelihood import checked_ids, masked_logits, random_masks


@dataclass(frozen=True)
class ThresholdChoice:
    """What :func:`choose_threshold` found."""

    threshold: float
    """The lowest probability with wrong proposals at or above it in at most `max_error` of the masked answers."""
    error: float
    """The share of the masked answers with a wrong proposal at or above the threshold."""
    share: float
    """The share of all proposals that are at or above it."""
    proposals: int
    """All proposals, one for each masked token."""
    answers: int
    """The masked answers: each example, as often as it was masked."""


@checks_arguments()
def choose_threshold(
    denoiser: Denoiser,
    examples: Sequence[tuple[Sequence[int], Sequence[int]]],
    *,
    max_error: float = 0.005,
    masks: int = 4,
    seed: int = 0,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> ThresholdChoice:
    """Choose the lowest confidence threshold that wrong proposals seldom reach, by masking parts of answers.

    `examples` are pairs of token ids: a prompt, which may be empty, and all tokens of the canvas after it. Each answer
    is masked `masks` times, with numbers of masks spread evenly, as a decode passes through them. An answer is spoilt
    if a wrong proposal reaches the threshold: the sampler would commit it. One wrong token is enough to fail, so the
    errors are counted by answer, not by token.

    The best examples are answers that the model itself wrote, one token at a time: then a wrong proposal is one that
    the model takes back once it sees more. Other text will do if it is of the kind that the model will write. Fill it
    up with EOS tokens to the length of your canvases; else a model takes the end of the text for the end of the
    canvas, and is sure of words that do not fit there. Give at least `1 / max_error` masked answers, better ten times
    as many. `on_progress` is called with the number of examples that are done, and of all.
    """
    Facts.of(denoiser)
    require(0 < max_error < 1, f"max_error must be between 0 and 1, not {max_error}.")
    require(masks >= 1, f"masks must be at least 1, not {masks}.")
    require(len(examples) > 0, "there are no examples: give pairs of token ids, a prompt and the answer to it.")
    answers = list[_Masked]()
    for number, (prompt, text) in enumerate(examples):
        answers += _proposals(denoiser, prompt, text, masks, seed + number)
        on_progress(number + 1, len(examples))
    return _choose(answers, max_error)


class _Masked(NamedTuple):
    """One masked answer: the probability of the proposal at each mask, and whether it is wrong."""

    probability: NDArray[np.floating]
    is_wrong: NDArray[np.bool_]


def _proposals(denoiser: Denoiser, prompt: Sequence[int], text: Sequence[int], masks: int, seed: int) -> list[_Masked]:
    prompt, text = (checked_ids(ids, denoiser.vocab_size) for ids in (prompt, text))
    require(len(text) > 0, "the answer of an example is empty: give at least one token id.")
    truth = torch.tensor([*prompt, *text], device=denoiser.device)
    masked = random_masks(len(text), masks, masks, seed)[0].to(denoiser.device)
    best = log_probabilities(masked_logits(denoiser, truth, len(prompt), masked)).max(-1)
    is_wrong = best.indices != truth[len(prompt) :]
    rows = zip(best.values.exp(), is_wrong, masked, strict=True)
    return [_Masked(sure[at].cpu().numpy(), wrong[at].cpu().numpy()) for sure, wrong, at in rows]


def _choose(answers: Sequence[_Masked], max_error: float) -> ThresholdChoice:
    """The least probability above all that wrong proposals reach, but for the few answers that may be spoilt."""
    surest_error = np.array([one.probability[one.is_wrong].max(initial=0.0) for one in answers])
    may_be_spoilt = int(max_error * len(answers))
    bound = np.sort(surest_error)[::-1][may_be_spoilt]
    probability = np.concatenate([one.probability for one in answers])
    reaching = probability[probability > bound]
    require(
        len(reaching) > 0,
        f"more than {max_error:g} of the answers have a wrong proposal at every threshold: "
        "give other examples, or raise max_error.",
    )
    threshold = float(reaching.min())
    error = float((surest_error >= threshold).mean())
    return ThresholdChoice(threshold, error, len(reaching) / len(probability), len(probability), len(answers))
