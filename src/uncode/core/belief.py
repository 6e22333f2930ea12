"""Belief: what a step knows about each position. The vocabulary axis ends here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
GPU_CHUNK_LOGITS = 2**24
"""Logits that are divided by a temperature together on a GPU, where each chunk costs kernel launches."""


@dataclass(frozen=True, eq=False)
class Belief:
    """Per position `[B, W]`, in float32 (float64 if the logits are): never a vocabulary axis.

    It holds a few sums over the vocabulary. With d = logit - largest logit they are the terms of a stable softmax:
    the log-sum-exp of d, and the sum of exp(d) * d from which the entropy follows. Scores and records derive what they
    need from these sums.
    """

    token: Tensor
    """The proposed token."""
    sumexp_others: Tensor
    """The sum of exp(d) over all tokens but the most likely one, which has exp(0) = 1."""
    log_sumexp: Tensor
    """log(1 + sumexp_others): the log-sum-exp of d, and minus the log probability of the most likely token."""
    exp_second: Tensor
    """exp(d) of the second most likely token: its probability divided by that of the most likely one."""
    sum_exp_bits: Tensor
    """The sum of exp(d) * d / ln 2: the expected d in bits, before it is divided by the softmax denominator."""
    proposed_logit: Tensor | None = None
    """d of the proposed token; None where it is the most likely one."""
    standing_logit: Tensor | None = None
    """d of the token that is on the canvas now, where a remasker asked for it."""
    moved: Tensor | None = None
    """The KL divergence of the distribution from that of the step before, where a piece asked for it."""
    drawn_logp: Tensor | None = None
    """The log probability of the proposed token in the distribution it was drawn from, where the caller asked for
    it."""

    @classmethod
    def of(cls, logits: Tensor, proposed: Proposed = None, standing: Tensor | None = None) -> Belief:
        """The belief from `logits` `[B, W, V]`. Without a proposal the most likely token is proposed (ties: lowest id).

        log p of the most likely token is -log1p(sumexp_others), and the entropy is a sum of two positive numbers. So
        positions that the model is nearly certain of keep different values, where a softmax would round all to 1.
        """
        top, best, sumexp_others, exp_second, sum_exp_bits, token = _sums(logits, proposed)

        def relative_logit(token: Tensor) -> Tensor:
            return logits.gather(-1, token.unsqueeze(-1)).squeeze(-1).to(top.dtype) - top

        return cls(
            token=best if token is None else token,
            sumexp_others=sumexp_others,
            log_sumexp=sumexp_others.log1p(),
            exp_second=exp_second,
            sum_exp_bits=sum_exp_bits,
            proposed_logit=None if token is None else relative_logit(token),
            standing_logit=None if standing is None else relative_logit(standing),
        )

    def __repr__(self) -> str:
        return f"Belief({list(self.sumexp_others.shape)}, {str(self.sumexp_others.dtype).removeprefix('torch.')})"

    @cached_property
    def logp(self) -> Tensor:
        """The log probability of the proposed token."""
        return -self.log_sumexp if self.proposed_logit is None else self.proposed_logit - self.log_sumexp

    @cached_property
    def entropy(self) -> Tensor:
        return self.log_sumexp - self.sum_exp_bits / (self.sumexp_others + 1.0) / _BITS

    @cached_property
    def margin(self) -> Tensor:
        """The probability of the most likely token less that of the second."""
        return (1.0 - self.exp_second) / (self.sumexp_others + 1.0)

    @cached_property
    def log_margin(self) -> Tensor:
        """The logarithm of the margin, which keeps near-certain positions apart; -inf where the two are equal."""
        return (-self.exp_second).log1p() - self.log_sumexp

    @property
    def standing(self) -> Tensor:
        """The log probability of the token that is on the canvas now (the standing token)."""
        assert self.standing_logit is not None, (
            "this remasker reads belief.standing: set needs_standing = True on its class"
        )
        return self.standing_logit - self.log_sumexp

    @property
    def drift(self) -> Tensor:
        """The KL divergence of the distribution from that of the step before, in nats; inf at a block's first step."""
        assert self.moved is not None, "this piece reads belief.drift: set needs_drift = True on its class"
        return self.moved

    def at(self, step: Tensor) -> Belief:
        """The belief of one step per position, `[B, W]`, from a belief stacked over steps."""

        def pick(values: Tensor) -> Tensor:
            return values.gather(0, step[None])[0]

        return Belief(
            token=self.token,
            sumexp_others=pick(self.sumexp_others),
            log_sumexp=pick(self.log_sumexp),
            exp_second=pick(self.exp_second),
            sum_exp_bits=pick(self.sum_exp_bits),
            proposed_logit=None if self.proposed_logit is None else pick(self.proposed_logit),
            drawn_logp=None if self.drawn_logp is None else pick(self.drawn_logp),
        )

    def overwritten(self, where: Tensor, other: Belief) -> Belief:
        """This belief with another one's in some places. What stands there and how far it moved stays this one's."""
        both = Belief.join([self, other], lambda two: torch.where(where, two[1], two[0]), tokens=True)
        return replace(both, standing_logit=self.standing_logit, moved=self.moved)

    @classmethod
    def join(cls, beliefs: Sequence[Belief], how: Callable[[list[Tensor]], Tensor], tokens: bool = False) -> Belief:
        """Several beliefs as one: `how` joins their tensors. Tokens are joined only with `tokens=True`."""
        any_drawn = any(b.proposed_logit is not None for b in beliefs)
        return cls(
            token=how([b.token for b in beliefs]) if tokens else beliefs[0].token,
            sumexp_others=how([b.sumexp_others for b in beliefs]),
            log_sumexp=how([b.log_sumexp for b in beliefs]),
            exp_second=how([b.exp_second for b in beliefs]),
            sum_exp_bits=how([b.sum_exp_bits for b in beliefs]),
            proposed_logit=how(
                [torch.zeros_like(b.sumexp_others) if b.proposed_logit is None else b.proposed_logit for b in beliefs]
            )
            if any_drawn
            else None,
            drawn_logp=None
            if any(b.drawn_logp is None for b in beliefs)
            else how([b.drawn_logp for b in beliefs if b.drawn_logp is not None]),
        )


def _sums(logits: Tensor, proposed: Proposed) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """Of each position: the largest logit, its token, the three sums of a belief, and the proposed token."""
    if use_triton(logits):
        from .belief_triton import sums

        drawn = proposed if isinstance(proposed, Draw) and type(proposed.noise) is PhiloxNoise else None
        top, best, sumexp_others, exp_second, sum_exp_bits, token = sums(logits, drawn)
    else:
        (top, best, sumexp_others, exp_second, sum_exp_bits), token = _sums_in_parts(logits), None
    if token is None:
        token = proposed(logits) if isinstance(proposed, Draw) else proposed
    return top, best, sumexp_others, exp_second, sum_exp_bits, token


def _sums_in_parts(logits: Tensor) -> tuple[Tensor, ...]:
    """The same without a kernel. On a CPU it runs in chunks of positions that stay in its cache."""
    if logits.numel() <= CHUNK_LOGITS or logits.device.type != "cpu":
        return _sums_of(logits)
    rows = logits.flatten(0, -2)
    chunk = max(2, CHUNK_LOGITS // rows.shape[-1])
    parts = [_sums_of(rows[first : first + chunk]) for first in range(0, len(rows), chunk)]
    return tuple(torch.cat(tensors).view(logits.shape[:-1]) for tensors in zip(*parts, strict=True))


def _sums_of(logits: Tensor) -> tuple[Tensor, ...]:
    shape = logits.shape[:-1]
    if shape.numel() == 1:  # torch sums a single row in another order than one of several
        return tuple(found[:1].view(shape) for found in _sums_of(logits.view(1, -1).expand(2, -1)))
    wide = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
    top, best = wide.max(-1, keepdim=True)
    relative = wide - top
    weights = relative.exp().scatter_(
        -1, best, 0.0
    )  # not exp2: torch's differs in the last place by where a number lies
    sumexp_others, exp_second = weights.sum(-1), weights.amax(-1)
    sum_exp_bits = (
        weights.mul_(relative).nansum(-1) * _BITS
    )  # a token of probability 0 is 0 * -inf here, and adds nothing
    return top.squeeze(-1), best.squeeze(-1), sumexp_others, exp_second, sum_exp_bits


def tempered_logp(logits: Tensor, token: Tensor, temperature: float) -> Tensor:
    """The log probability of tokens `[B, W]` in softmax(logits / temperature), in float32 or the logits' float64. It
    is formed in chunks of columns, and has gradients where the logits have."""
    rows, width, vocab = logits.shape
    at_once = CHUNK_LOGITS if logits.device.type == "cpu" else GPU_CHUNK_LOGITS
    chunk = max(1, at_once // max(rows * vocab, 1))

    def of_columns(at: int) -> Tensor:
        wide = logits[:, at : at + chunk].to(torch.promote_types(logits.dtype, torch.float32)) / temperature
        picked = wide.gather(-1, token[:, at : at + chunk, None])[..., 0]
        return picked - wide.logsumexp(-1)

    return torch.cat([of_columns(at) for at in range(0, max(width, 1), chunk)], 1)


def log_probabilities(logits: Tensor) -> Tensor:
    """The log-probabilities of all tokens, `[B, W, V]`, in float32 or the logits' float64."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)


def divergence(now: Tensor, last: Tensor) -> Tensor:
    """KL(now || last) of log-probabilities `[B, W, V]`; inf where `last` is NaN."""
    moved = (now.exp() * (now - last)).nansum(-1)  # a token of probability 0 is 0 * inf here, and adds nothing
    return moved.masked_fill(last.isnan().all(-1), torch.inf)


_EMPTY = torch.empty(0, 0)
NOTHING = Belief(_EMPTY, _EMPTY, _EMPTY, _EMPTY, _EMPTY)
"""The belief before the first forward."""
