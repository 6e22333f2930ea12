"""The log-likelihood of an answer: LLaDA's Monte Carlo estimate, and the exact average over all decoding orders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ..core.belief import log_probabilities
from ..core.denoiser import Denoiser, Facts, Layout
from ..core.errors import require, shown
from ..core.logits_check import bad_logits, find_bad_logits
from ..core.noise import PhiloxNoise, Purpose
from ..core.pieces.cache import Plan, Span
from ..core.support.arguments import whole_number

MAX_EXACT_TOKENS = 12
"""The exact average takes 2^n - 1 rows for n tokens."""


def log_likelihood(
    denoiser: Denoiser,
    prompt: Sequence[int],
    answer: Sequence[int],
    *,
    method: Literal["monte carlo", "exact"] = "monte carlo",
    samples: int = 128,
    batch_size: int = 16,
    seed: int = 0,
) -> float:
    """The lower bound of log p(answer | prompt), in nats, that masked diffusion models are trained on.

    `"monte carlo"` is LLaDA's estimate. It draws `samples` masks; the numbers of masked tokens are spread evenly over
    each batch. The log-probabilities of the masked tokens are weighted by one over the masked share. `"exact"` is the
    value that the estimate converges to: the average over all orders in which the answer could be written. It needs
    one row for each of the 2^n - 1 ways to mask the answer, so it is for short answers. The ids are used as given: if
    a masked LM needs special tokens around a text ([CLS]), put them into the prompt.

    A block-causal model learns each block from the finished ones before it. So its bound is the sum of those of its
    blocks, each with so many `samples`.
    """
    Facts.of(denoiser)
    prompt, answer = (checked_ids(ids, denoiser.vocab_size) for ids in (prompt, answer))
    require(len(answer) > 0, "the answer is empty: give at least one token id.")
    is_valid = isinstance(samples, int) and isinstance(batch_size, int) and min(samples, batch_size) >= 1
    require(is_valid, "samples and batch_size must be whole numbers of at least 1.")
    require(method in ("monte carlo", "exact"), f"the method must be 'monte carlo' or 'exact', not '{method}'.")
    total = 0.0
    for before, block in _blocks(prompt, answer, denoiser):
        exact, n = method == "exact", len(block)
        masks, weights = _all_masks(n) if exact else random_masks(n, samples, batch_size, seed)
        total += float(weights @ masked_log_probability(denoiser, before, block, masks, batch_size).cpu())
    return total


def _blocks(prompt: list[int], answer: list[int], denoiser: Denoiser) -> Iterator[tuple[list[int], list[int]]]:
    """The blocks of an answer, each with all that stands before it; one where the model is not block-causal."""
    whole, start, length = [*prompt, *answer], len(prompt), denoiser.block_length
    origin = start if denoiser.blocks_from_answer else 0
    while start < len(whole):
        stop = len(whole) if length is None else origin + ((start - origin) // length + 1) * length
        yield whole[:start], whole[start:stop]
        start = stop


def checked_ids(ids: Sequence[int], vocab_size: int) -> list[int]:
    """The ids as a list. Raise if they are no token ids."""
    listed = isinstance(ids, Iterable) and not isinstance(ids, str | bytes) and getattr(ids, "ndim", 1) == 1
    require(listed, f"prompt and answer must be lists of token ids, not {shown(ids)}.")
    found = [whole_number(i, "a token id of prompt and answer") for i in ids]
    require(
        max(found, default=0) < vocab_size,
        f"the token id {max(found, default=0)} is outside the vocabulary of {vocab_size} tokens.",
    )
    return found


def masked_log_probability(
    denoiser: Denoiser,
    prompt: Sequence[int],
    answer: Sequence[int],
    masks: Tensor,
    batch_size: int = 16,
    counted: Tensor | None = None,
) -> Tensor:
    """For each row of `masks` `[N, n]`, the sum of the masked tokens' log-probabilities given all others: `[N]`.

    With `counted` `[N, n]`, the sum is over these of the masked tokens alone.
    """
    device, start = denoiser.device, len(prompt)
    truth = torch.tensor([*prompt, *answer], device=device)
    require(denoiser.mask_id not in truth, "the prompt or the answer contains the mask token.")
    require(int(truth.min()) >= 0 and int(truth.max()) < denoiser.vocab_size, "an id is outside the vocabulary.")
    parts = [torch.split(each, batch_size) for each in (masks if counted is None else counted, masks)]
    pairs = ((summed.to(device), masked.to(device)) for summed, masked in zip(*parts, strict=True))
    return torch.cat([_forward(denoiser, truth, start, masked, summed) for summed, masked in pairs])


@torch.inference_mode()
def masked_logits(denoiser: Denoiser, truth: Tensor, start: int, masks: Tensor) -> Tensor:
    """The logits `[N, n, V]` of an answer that begins at `start` of `truth`, with each of the `masks` `[N, n]`."""
    rows, length = len(masks), len(truth)
    tokens = truth.repeat(rows, 1)
    tokens[:, start:].masked_fill_(masks, denoiser.mask_id)
    # the prompt alone, also where the answer is unmasked
    given = torch.arange(length, device=truth.device).expand(rows, -1) < start

    def span(first: int, last: int) -> Span:
        return Span(np.full(rows, first), np.full(rows, last))

    session = denoiser.open(rows, length)
    answer, nothing = span(start, length), span(0, 0)
    plan = Plan(window=span(0, length), wanted=answer, store=nothing, reuse=nothing, block=answer)
    return session.logits(tokens, Layout.without_padding(given), plan)


@torch.inference_mode()
def _forward(denoiser: Denoiser, truth: Tensor, start: int, masks: Tensor, counted: Tensor) -> Tensor:
    logits = masked_logits(denoiser, truth, start, masks)
    logp = log_probabilities(logits)
    found = logp.gather(-1, truth[start:].expand(len(masks), -1)[..., None])[..., 0]
    summed = found.masked_fill(~counted, 0.0).sum(-1).double()
    if bool(summed.isnan().any()):
        bad = find_bad_logits(logits[masks])
        raise bad_logits(denoiser, "NaN" if bad is None else bad[1])
    return summed


def _all_masks(length: int) -> tuple[Tensor, Tensor]:
    """Every way to mask at least one token, with its weight in the average over all orders.

    In m! (n - m)! of the n! orders a given set of m tokens is still masked before some step. Each of the m tokens is
    next in one m-th of these orders.
    """
    require(
        length <= MAX_EXACT_TOKENS,
        f"an answer of {length} tokens can be masked in {2**length - 1} ways: "
        f"above {MAX_EXACT_TOKENS} tokens use method='monte carlo'.",
    )
    masks = torch.tensor(list(product([False, True], repeat=length)))[1:]
    counts = masks.sum(-1)
    sizes = torch.bincount(counts, minlength=length + 1).double()
    return masks, 1 / (counts.double() * sizes[counts])


def random_masks(length: int, samples: int, batch_size: int, seed: int) -> tuple[Tensor, Tensor]:
    """LLaDA's masks: the numbers of masks in a batch grow in even strides, modulo the length, from a random start."""
    masks = []
    for batch, first in enumerate(range(0, samples, batch_size)):
        rows = min(batch_size, samples - first)
        noise = PhiloxNoise(torch.tensor([[seed]]), torch.tensor([[batch]]))
        drawn = noise.positions(Purpose.TOKEN, torch.arange(rows * length + 1)[None])[0]
        begin = 1 + int(drawn[0] * length)
        counts = ((begin + torch.arange(rows) * length / rows).round().long() - 1) % length + 1
        ranks = drawn[1:].reshape(rows, length).argsort(dim=-1, stable=True).argsort(-1)
        masks.append(ranks < counts[:, None])
    stacked = torch.cat(masks)
    return stacked, length / stacked.sum(-1).double() / len(stacked)
