"""Two orders: decode a canvas twice, and keep the answer that the model itself finds more consistent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core.canvas import Canvas
from ..core.denoiser import Denoiser, Facts
from ..core.errors import require, shown
from ..core.pieces.policy import Sampler
from ..core.pieces.stop import AfterEos
from ..core.stepper.requests import Seeds, each_seed
from ..core.support.arguments import checks_arguments
from ..core.trace.trace import Trace
from ..samplers.presets import certain_first
from ..samplers.resolve import SamplerLike
from .decoding import decode
from .likelihood import masked_log_probability

RATES = (0.02, 0.25)
"""The rates of `certain_first` in the two default orders."""
CHECK_FORWARDS = 4
"""Forwards of the self-check of an answer: two halves, each in two parts."""


@dataclass(frozen=True, eq=False)
class TwoOrders:
    """What :func:`two_orders` found."""

    tokens: Tensor
    """The canvas `[B, L]` with the answers that were kept."""
    kept: Tensor
    """Which order each row's answer is from, `[B]`: 0 or 1."""
    consistency: Tensor
    """The self-check less the summed entropy of both answers, `[B, 2]`; NaN where the second order was skipped."""
    forwards: Tensor
    """Forwards of each row, self-checks included, `[B]`."""
    first: Trace
    """Of all rows."""
    second: Trace | None
    """Of the rows that were decoded again; None where there is none."""
    again: tuple[int, ...]
    """Those rows."""

    @property
    def generated(self) -> Tensor:
        """The generated span, `[B, S]`."""
        return self.tokens[:, self.first.canvas.start :]


@checks_arguments()
def two_orders(
    denoiser: Denoiser,
    canvas: Canvas,
    samplers: Sequence[SamplerLike] | None = None,
    seed: Seeds = 0,
    *,
    sure: float = 0.5,
) -> TwoOrders:
    """Decode with two samplers, and keep for each row the answer that is more consistent.

    The consistency of an answer is a self-check less the entropies at which its tokens were committed. The self-check
    masks a part of the text and everything after it, and sums the log-probabilities of that part: every other token of
    each half, so four forwards. A row whose first answer is `sure` is not decoded again: the sum of its entropies, less
    the largest, is at most so many nats. A negative number decodes all rows twice.

    `samplers` are two samplers, as :func:`uncode.decode` takes them; None is `certain_first` at two rates, 0.02 and
    0.25, with the model's own frequency table where it has one.
    """
    facts = Facts.of(denoiser)
    require(isinstance(sure, int | float) and math.isfinite(sure), f"sure must be a number of nats, not {shown(sure)}.")
    orders = _default_orders(denoiser) if samplers is None else samplers
    fits = isinstance(orders, Sequence) and not isinstance(orders, str) and len(orders) == 2
    require(
        fits, f"two samplers were expected, [presets.confidence(), presets.left_to_right()] say, not {shown(orders)}."
    )
    seeds = each_seed(seed, canvas.rows)
    first = decode(denoiser, canvas, orders[0], seeds)
    again = [row for row in range(canvas.rows) if _doubt(first, row, facts) > sure]
    second = None
    if again:
        some = Canvas(canvas.tokens[again], canvas.valid[again], canvas.mask_id, canvas.start)
        second = decode(denoiser, some, orders[1], [seeds[row] for row in again])
    consistency = torch.full((canvas.rows, 2), math.nan, dtype=torch.float64)
    tokens, forwards = first.tokens.clone(), first.forwards.clone()
    for at, row in enumerate(again):
        assert second is not None
        answers = (first, row), (second, at)
        consistency[row] = torch.tensor([_consistency(denoiser, trace, where, facts) for trace, where in answers])
        forwards[row] += int(second.forwards[at]) + 2 * CHECK_FORWARDS
        if consistency[row, 1] > consistency[row, 0]:
            tokens[row] = second.tokens[at]
    kept = (consistency[:, 1] > consistency[:, 0]).long()
    return TwoOrders(tokens, kept, consistency, forwards, first, second, tuple(again))


def _default_orders(denoiser: Denoiser) -> list[Sampler]:
    table = denoiser.frequency
    rates = [certain_first(rate=rate, frequency=table, informativeness=table is not None) for rate in RATES]
    return [sampler.stopping(AfterEos()) for sampler in rates] if denoiser.eos_ids else rates


def _text_length(trace: Trace, row: int, facts: Facts) -> int:
    """Tokens of the row's text, its first EOS token included."""
    length = int(trace.canvas.lengths[row])
    ends = torch.isin(trace.generated[row, :length], torch.tensor(facts.eos_ids, dtype=torch.long)).nonzero()
    return int(ends[0]) + 1 if len(ends) else length


def _entropies(trace: Trace, row: int, facts: Facts) -> Tensor:
    """At which the tokens of the text were committed; given ones have none."""
    found = trace.entropy[row, : _text_length(trace, row, facts)]
    return found[~found.isnan()]


def _doubt(trace: Trace, row: int, facts: Facts) -> float:
    """The sum of the entropies less the largest: what was decided beside the one hardest decision."""
    entropies = _entropies(trace, row, facts)
    return float(entropies.sum() - entropies.max()) if len(entropies) else 0.0


def _consistency(denoiser: Denoiser, trace: Trace, row: int, facts: Facts) -> float:
    canvas, length = trace.canvas, int(trace.canvas.lengths[row])
    prompt = trace.tokens[row, : canvas.start][canvas.valid[row, : canvas.start]].tolist()
    masks, counted = check_masks(length, _text_length(trace, row, facts))
    written = canvas.masked[row, canvas.start : canvas.start + length]
    answer = trace.generated[row, :length].tolist()
    found = masked_log_probability(denoiser, prompt, answer, masks & written, counted=counted & written)
    return float(found.sum()) - float(_entropies(trace, row, facts).sum())


def check_masks(length: int, text: int) -> tuple[Tensor, Tensor]:
    """For each part of the self-check, what is masked and what is counted: two `[4, length]`.

    A part is every other token of a half of the text; the text after that half is masked too.
    """
    at = torch.arange(length)
    middle = (text + 1) // 2
    masks, counted = [], []
    for start, stop in ((0, middle), (middle, text)):
        for parity in (0, 1):
            part = (at >= start) & (at < stop) & (at % 2 == parity)
            counted.append(part)
            masks.append(part | ((at >= stop) & (at < text)))
    return torch.stack(masks), torch.stack(counted)
