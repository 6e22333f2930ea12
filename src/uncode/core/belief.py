"""Belief: what a step knows about each position. The vocabulary axis ends here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

_BITS = math.log2(math.e)


@dataclass(frozen=True, eq=False)
class Belief:
    """Per position `[B, W]`, in float32 (float64 if the logits are): never a vocabulary axis.

    Held are a few sums over the vocabulary, measured from the most likely token: what a score or a
    record asks for follows from them when it is asked for.
    """

    token: Tensor
    """The proposed token."""
    rest: Tensor
    """The odds of all tokens but the most likely one against it, summed."""
    log_total: Tensor
    """log(1 + rest), which is minus the log probability of the most likely token."""
    second: Tensor
    """The odds of the second most likely token against the first."""
    slope: Tensor
    """The odds times their logarithms to the base 2, summed."""
    lift: Tensor | None = None
    """The log odds of the proposed token; None where it is the most likely one."""
    stands: Tensor | None = None
    """The log odds of the token that stands there now, where a remasker asked for it."""

    @classmethod
    def of(cls, logits: Tensor, token: Tensor | None = None, standing: Tensor | None = None) -> Belief:
        """The belief that `logits` `[B, W, V]` hold; `token` defaults to the most likely one (lowest id on ties).

        With everything measured from the maximum, log p of the best is -log1p(rest) and the entropy is a sum
        of two positive numbers, so positions the model is nearly certain of stay apart where a softmax would
        round them all to 1.
        """
        wide = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
        top, best = wide.max(-1, keepdim=True)
        below = (wide - top).mul_(_BITS)  # in bits: a power of two is quicker than one of e
        odds = below.exp2().scatter_(-1, best, 0.0)
        rest, second = odds.sum(-1), odds.amax(-1)
        return cls(
            token=best.squeeze(-1) if token is None else token,
            rest=rest,
            log_total=rest.log1p(),
            second=second,
            slope=odds.mul_(below).nansum(-1),  # a token of probability 0 is 0 * -inf here, and adds nothing
            lift=None if token is None else _pick(below, token),
            stands=None if standing is None else _pick(below, standing),
        )

    @cached_property
    def logp(self) -> Tensor:
        """The log probability of the proposed token."""
        return -self.log_total if self.lift is None else self.lift - self.log_total

    @cached_property
    def entropy(self) -> Tensor:
        return self.log_total - self.slope / (self.rest + 1.0) / _BITS

    @cached_property
    def margin(self) -> Tensor:
        """The probability of the most likely token less that of the second."""
        return (1.0 - self.second) / (self.rest + 1.0)

    @cached_property
    def log_margin(self) -> Tensor:
        """Its logarithm, which keeps near-certain positions apart; -inf where the two are level."""
        return (-self.second).log1p() - self.log_total

    @property
    def standing(self) -> Tensor:
        """The log probability of the token that stands there now."""
        assert self.stands is not None, "only remaskers that ask for it have it"
        return self.stands - self.log_total

    def at(self, step: Tensor) -> Belief:
        """The belief of one step per position, `[B, W]`, from a belief stacked over steps."""

        def pick(values: Tensor) -> Tensor:
            return values.gather(0, step[None])[0]

        return Belief(
            token=self.token,
            rest=pick(self.rest),
            log_total=pick(self.log_total),
            second=pick(self.second),
            slope=pick(self.slope),
            lift=None if self.lift is None else pick(self.lift),
        )

    @classmethod
    def join(cls, beliefs: Sequence[Belief], how: Callable[[list[Tensor]], Tensor], tokens: bool = False) -> Belief:
        """Several beliefs as one, their tensors joined by `how`; their tokens only on request."""
        lifted = any(b.lift is not None for b in beliefs)
        return cls(
            token=how([b.token for b in beliefs]) if tokens else beliefs[0].token,
            rest=how([b.rest for b in beliefs]),
            log_total=how([b.log_total for b in beliefs]),
            second=how([b.second for b in beliefs]),
            slope=how([b.slope for b in beliefs]),
            lift=how([torch.zeros_like(b.rest) if b.lift is None else b.lift for b in beliefs]) if lifted else None,
        )


def _pick(below: Tensor, token: Tensor) -> Tensor:
    return below.gather(-1, token.unsqueeze(-1)).squeeze(-1) / _BITS


_EMPTY = torch.empty(0, 0)
NOTHING = Belief(_EMPTY, _EMPTY, _EMPTY, _EMPTY, _EMPTY)
"""The belief before the model has been asked."""
