"""Belief: what a step knows about each position. The vocabulary axis ends here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from .noise import Draw, PhiloxNoise
from .support.triton_support import use_triton

Proposed = Tensor | Draw | None
"""The tokens to write `[B, W]`, or how they are drawn; None where the most likely ones are meant."""
_BITS = math.log2(math.e)
CHUNK_LOGITS = 2**18
"""Logits that are reduced together on a CPU, so that intermediate results fit into its cache."""


@dataclass(frozen=True, eq=False)
class Belief:
    """Per position `[B, W]`, in float32 (float64 if the logits are): never a vocabulary axis.

    It holds a few sums over the vocabulary, measured from the most likely token. Scores and records derive
    what they need from these sums.
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
    def of(cls, logits: Tensor, proposed: Proposed = None, standing: Tensor | None = None) -> Belief:
        """The belief from `logits` `[B, W, V]`. Without a proposal the most likely token is proposed (ties: lowest id).

        With everything measured from the maximum, log p of the best is -log1p(rest) and the entropy is a sum
        of two positive numbers, so positions the model is nearly certain of stay apart where a softmax would
        round them all to 1.
        """
        top, best, rest, second, slope, token = _sums(logits, proposed)

        def lift(token: Tensor) -> Tensor:
            return logits.gather(-1, token.unsqueeze(-1)).squeeze(-1).to(top.dtype) - top

        return cls(
            token=best if token is None else token,
            rest=rest,
            log_total=rest.log1p(),
            second=second,
            slope=slope,
            lift=None if token is None else lift(token),
            stands=None if standing is None else lift(standing),
        )

    def __repr__(self) -> str:
        return f"Belief({list(self.rest.shape)}, {str(self.rest.dtype).removeprefix('torch.')})"

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
        """The logarithm of the margin, which keeps near-certain positions apart; -inf where the two are equal."""
        return (-self.second).log1p() - self.log_total

    @property
    def standing(self) -> Tensor:
        """The log probability of the token that stands there now."""
        assert self.stands is not None, "this remasker reads belief.standing: set needs_standing = True on its class"
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
        """Several beliefs as one: `how` joins their tensors. Tokens are joined only with `tokens=True`."""
        lifted = any(b.lift is not None for b in beliefs)
        return cls(
            token=how([b.token for b in beliefs]) if tokens else beliefs[0].token,
            rest=how([b.rest for b in beliefs]),
            log_total=how([b.log_total for b in beliefs]),
            second=how([b.second for b in beliefs]),
            slope=how([b.slope for b in beliefs]),
            lift=how([torch.zeros_like(b.rest) if b.lift is None else b.lift for b in beliefs]) if lifted else None,
        )


def _sums(logits: Tensor, proposed: Proposed) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """The largest logit of each position, its token, the sums of all others' odds, and the proposed token."""
    if use_triton(logits):
        from .belief_triton import sums

        drawn = proposed if isinstance(proposed, Draw) and type(proposed.noise) is PhiloxNoise else None
        top, best, rest, second, slope, token = sums(logits, drawn)
    else:
        (top, best, rest, second, slope), token = _sums_in_parts(logits), None
    if token is None:
        token = proposed(logits) if isinstance(proposed, Draw) else proposed
    return top, best, rest, second, slope, token


def _sums_in_parts(logits: Tensor) -> tuple[Tensor, ...]:
    """The same without a kernel. On a CPU it runs in chunks of positions, whose odds stay in the cache."""
    if logits.numel() <= CHUNK_LOGITS or logits.device.type != "cpu":
        return _sums_of(logits)
    rows = logits.flatten(0, -2)
    some = max(2, CHUNK_LOGITS // rows.shape[-1])
    parts = [_sums_of(rows[first : first + some]) for first in range(0, len(rows), some)]
    return tuple(torch.cat(tensors).view(logits.shape[:-1]) for tensors in zip(*parts, strict=True))


def _sums_of(logits: Tensor) -> tuple[Tensor, ...]:
    shape = logits.shape[:-1]
    if shape.numel() == 1:  # torch sums a single row in another order than one of several
        return tuple(found[:1].view(shape) for found in _sums_of(logits.view(1, -1).expand(2, -1)))
    wide = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
    top, best = wide.max(-1, keepdim=True)
    below = wide - top
    odds = below.exp().scatter_(-1, best, 0.0)  # not exp2: torch's differs in the last place by where a number lies
    rest, second = odds.sum(-1), odds.amax(-1)
    slope = odds.mul_(below).nansum(-1) * _BITS  # a token of probability 0 is 0 * -inf here, and adds nothing
    return top.squeeze(-1), best.squeeze(-1), rest, second, slope


_EMPTY = torch.empty(0, 0)
NOTHING = Belief(_EMPTY, _EMPTY, _EMPTY, _EMPTY, _EMPTY)
"""The belief before the first forward."""
