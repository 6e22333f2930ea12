"""The log-probabilities of a rollout under new weights: one canvas for each forward of each sample, in batches.

Sample by sample and step by step, the model sees the canvas as it stood before the step, and the tokens that the step
committed are read off: what was recorded while sampling, if the weights are the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ..core.belief import tempered_logp
from ..core.denoiser import Denoiser, Facts, Layout
from ..core.errors import require
from ..core.pieces.cache import CachePolicy, Plan, Span
from ..core.pieces.propose import Proposal
from ..core.support.arguments import whole_number
from ..core.trace.row_record import GIVEN
from .samples import Samples


def log_probabilities(denoiser: Denoiser, rollout: Samples, batch_size: int) -> Tensor:
    """See :meth:`.rollout.Rollout.log_probabilities`."""
    facts = Facts.of(denoiser)
    whole_number(batch_size, "batch_size", 1)
    _check(denoiser, rollout)
    bias = Proposal.from_dict(rollout.sampler["propose"]).bind(facts)._bias
    places, values = list[Tensor](), list[Tensor]()
    for alike in _alike(rollout):
        for pairs in alike.pairs.split(batch_size):
            samples, steps = pairs.unbind(1)
            chosen = alike.step_map[samples] == steps[:, None]
            logits = _logits_of(denoiser, alike, samples, steps, chosen)
            logits = logits if bias is None else logits + bias
            row, offset = chosen.nonzero(as_tuple=True)
            tokens = alike.tokens[samples[row], alike.start + offset].to(facts.device)
            values.append(tempered_logp(logits[None], tokens[None], rollout.temperature)[0])
            places.append(alike.numbers[samples[row]] * rollout.step_map.shape[1] + offset)
    flat = torch.cat(values)
    whole = flat.new_zeros(rollout.step_map.numel()).index_put((torch.cat(places).to(facts.device),), flat)
    return whole.view(rollout.step_map.shape)


def _logits_of(denoiser: Denoiser, alike: _Alike, samples: Tensor, steps: Tensor, chosen: Tensor) -> Tensor:
    """The logits `[K, V]` of the positions that are `chosen` `[B, S]` by these steps of these samples, in one
    forward."""
    step_map, start = alike.step_map[samples], alike.start
    is_open = (step_map != GIVEN) & ((step_map < 0) | (step_map >= steps[:, None]))
    canvas, given = alike.tokens[samples].clone(), alike.given[samples]
    canvas[:, start:].masked_fill_(is_open, denoiser.mask_id)
    rows, length = canvas.shape
    first, last = chosen.long().argmax(1), chosen.shape[1] - chosen.flip(1).long().argmax(1)
    width = int((last - first).max())

    def span(begin: int | Tensor, end: int | Tensor) -> Span:
        return Span(*(torch.as_tensor(edge).expand(rows).numpy() for edge in (begin, end)))

    block, first = span(start + first, start + last), first.clamp(max=chosen.shape[1] - width)
    wanted = span(start + first, start + first + width)
    plan = Plan(window=span(0, length), wanted=wanted, store=span(0, 0), reuse=span(0, 0), block=block)
    device = denoiser.device
    logits = denoiser.open(rows, length).logits(canvas.to(device), Layout.without_padding(given.to(device)), plan)
    row, offset = chosen.nonzero(as_tuple=True)
    return logits[row.to(device), (offset - first[row]).to(device)]


def _check(denoiser: Denoiser, rollout: Samples) -> None:
    """Raise where the model is another one, or where no single forward computes what a step of the sampler saw."""
    ours, theirs = denoiser.mask_id, rollout.canvas.mask_id
    require(ours == theirs, f"the rollout was made with mask_id={theirs}, but the model's mask id is {ours}.")
    cache = CachePolicy.from_dict(rollout.sampler["cache"])
    require(
        not cache.needs_kv_cache or cache.is_exact,
        f"the steps of this rollout reused keys and values of earlier steps ({type(cache).__name__}), which no forward "
        "over one canvas computes: make it with cache='none' to have its log-probabilities again.",
    )


class _Alike:
    """Samples whose prompts, and whose spans, have the same number of tokens: a batch of them needs no padding."""

    def __init__(self, rollout: Samples, numbers: Tensor, before: int, length: int) -> None:
        first = rollout.canvas.start
        columns = slice(first - before, first + length)
        self.numbers, self.start = numbers, before
        self.tokens = rollout.tokens[numbers, columns]
        self.given = rollout.canvas.given[numbers, columns]
        self.step_map = rollout.step_map[numbers, :length]
        drawn = self.step_map >= 0
        rows = torch.arange(len(numbers))[:, None].expand_as(drawn)
        self.pairs = torch.stack((rows[drawn], self.step_map[drawn]), 1).unique(dim=0)  # type: ignore[no-untyped-call]
        """Each sample with each of its steps that committed something, `[K, 2]`."""


def _alike(rollout: Samples) -> Iterator[_Alike]:
    before = rollout.canvas.valid[:, : rollout.canvas.start].sum(1)
    sizes = torch.stack((before, rollout.canvas.lengths), 1)
    for size in sizes.unique(dim=0):  # type: ignore[no-untyped-call]
        yield _Alike(rollout, (sizes == size).all(1).nonzero()[:, 0], int(size[0]), int(size[1]))
