"""Proposals: *what* to write at each position. They read logits, and so does the belief alone. And adjustments: what is
added to logits before both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from ..belief import Belief, Proposed, log_probabilities, tempered_logp
from ..denoiser import Facts
from ..errors import require, shown
from ..noise import Draw
from ..support.reprs import counted
from ..view import View
from .piece import Buffer, Piece


@dataclass(frozen=True)
class Proposal(Piece):
    """Picks a token per position and says from which logits the belief is formed."""

    kind: ClassVar[bool] = True
    _bias: ClassVar[Tensor | None] = None

    ban: tuple[int | str, ...] = ()
    """Tokens that get probability 0: ids, "eos" (the first EOS token) or "ends" (all EOS tokens)."""

    def bind(self, facts: Facts) -> Self:
        if not self.ban:
            return self
        bias = torch.zeros(facts.vocab_size, device=facts.device)
        bias[list(facts.resolve(self.ban))] = float("-inf")
        return self.holding(_bias=bias)

    def __call__(self, logits: Tensor, view: View) -> tuple[Proposed, Tensor]:
        """What is proposed, and the logits that the belief is formed from. The view has no belief yet."""
        return self.propose(self.without_banned(logits, view), view)

    def without_banned(self, logits: Tensor, view: View) -> Tensor:
        """The logits with -inf for the banned tokens. Of a probe, the view is that of the canvas it tries."""
        return logits if self._bias is None else logits + self._bias

    def propose(self, logits: Tensor, view: View) -> tuple[Proposed, Tensor]:
        """The same for logits `[B, W, V]` without the banned tokens. Never write into `logits`: copy them.

        Compute in float32 or wider: logits of half precision are float32 where a row of the batch adjusts them.
        The first result is a token id per position `[B, W]`, a :class:`Draw`, or None for the most likely token.
        """
        raise NotImplementedError

    def drawn_logp(self, logits: Tensor, belief: Belief) -> Tensor:
        """The log probability of the proposed tokens in the distribution they are drawn from; `logits` are those that
        the belief was formed from."""
        return belief.logp


@dataclass(frozen=True)
class Greedy(Proposal):
    """The most likely token, lowest id on ties."""

    def propose(self, logits: Tensor, view: View) -> tuple[Proposed, Tensor]:
        return None, logits


@dataclass(frozen=True)
class Credit(Greedy):
    """The most likely token, where tokens that were the most likely one before have a credit.

    At each step the most likely token of a masked position gains p^boost, and all credits shrink by `decay`. The logits
    rise by strength * log(1 + credit), for the proposal and the belief.
    """

    strength: float = 0.7
    decay: float = 0.8
    boost: float = 0.2

    def check(self) -> None:
        require(self.strength >= 0, f"strength must be 0 or more, not {self.strength}.")
        require(0 <= self.decay <= 1, f"decay must be in [0, 1], not {self.decay}.")
        require(self.boost >= 0, f"boost must be 0 or more, not {self.boost}.")

    def buffers(self) -> tuple[Buffer, ...]:
        return (Buffer("credit", "token"),)

    def _credit(self, logits: Tensor, view: View) -> Tensor:
        logp, best = log_probabilities(logits).max(-1, keepdim=True)
        gain = torch.where(view.eligible[..., None], (logp * self.boost).exp(), 0.0)
        return (view.memory["credit"].to(gain.dtype) * self.decay).scatter_add(-1, best, gain)

    def propose(self, logits: Tensor, view: View) -> tuple[Proposed, Tensor]:
        return None, logits + self.strength * self._credit(logits, view).log1p()

    def remember(self, view: View, logits: Tensor) -> dict[str, Tensor]:
        return {"credit": self._credit(self.without_banned(logits, view), view)}


@dataclass(frozen=True)
class Sample(Proposal):
    """A draw from softmax(logits / temperature), cut by min p, top p and top k, by Gumbel noise in float64.

    The ranking is formed from the clean logits, so temperature never changes the order (LLaDA's
    rule). `ranking="drawn"` forms it from the tempered, cut ones (Dream's rule).
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    ranking: Literal["clean", "drawn"] = "clean"
    min_p: float | None = None
    """The least probability of a token that is drawn, as a share of the most probable one's."""

    def check(self) -> None:
        fits = self.temperature >= 0 and math.isfinite(self.temperature)
        require(fits, f"temperature must be a number of 0 or more, not {self.temperature}.")
        require(self.top_k is None or self.top_k >= 1, f"top_k must be at least 1, not {self.top_k}.")
        require(self.top_p is None or 0 < self.top_p <= 1, f"top_p must be in (0, 1], not {self.top_p}.")
        require(self.min_p is None or 0 <= self.min_p <= 1, f"min_p must be in [0, 1], not {self.min_p}.")

    @property
    def draws(self) -> bool:
        return self.temperature > 0

    def propose(self, logits: Tensor, view: View) -> tuple[Proposed, Tensor]:
        wide = torch.promote_types(logits.dtype, torch.float32)
        if self.temperature == 0:
            cut = self._cut(logits.double())
            return cut.max(-1).indices, cut.to(wide) if self.ranking == "drawn" else logits
        if not self._cuts and self.ranking == "clean":
            return Draw(self.temperature, view.noise, view.offsets), logits
        tempered = self._cut(logits.double() / self.temperature)
        drawn = Draw(1.0, view.noise, view.offsets)(tempered)
        return drawn, tempered.to(wide) if self.ranking == "drawn" else logits

    def drawn_logp(self, logits: Tensor, belief: Belief) -> Tensor:
        require(not self._cuts or self.ranking == "drawn", "the log probability of a cut draw needs ranking='drawn'.")
        if self.ranking == "drawn" or self.temperature in (0, 1):
            return belief.logp
        return tempered_logp(logits, belief.token, self.temperature)

    @property
    def _cuts(self) -> bool:
        return self.top_k is not None or (self.top_p is not None and self.top_p < 1) or bool(self.min_p)

    def _cut(self, logits: Tensor) -> Tensor:
        if self.min_p:
            least = logits.amax(-1, keepdim=True) + math.log(self.min_p)
            logits = logits.masked_fill(logits < least, float("-inf"))
        if self.top_p is not None and self.top_p < 1:
            logits = _cut_top_p(logits, self.top_p)
        if self.top_k is not None:
            least = logits.topk(min(self.top_k, logits.shape[-1]), -1).values[..., -1:]
            logits = logits.masked_fill(logits < least, float("-inf"))
        return logits


def _cut_top_p(logits: Tensor, top_p: float) -> Tensor:
    """Keep the fewest most likely tokens whose probability exceeds `top_p`, at least one."""
    ordered, index = logits.sort(dim=-1, descending=True, stable=True)
    before = ordered.softmax(-1).cumsum(-1).roll(1, -1)
    before[..., 0] = 0.0
    return logits.masked_fill(torch.zeros_like(before, dtype=torch.bool).scatter(-1, index, before > top_p), -torch.inf)


@dataclass(frozen=True)
class Adjust(Piece):
    """What is added to a row's logits before a token is proposed and a belief is formed.

    A position counts what stands elsewhere in its row, in whatever order it was written. The presence and the frequency
    penalty count the tokens that the decoder wrote; the repetition penalty counts those of the prompt too. EOS tokens
    do not count: an answer ends with many. The order is vLLM's: bias, repetition, then frequency and presence.
    """

    tokens: tuple[int, ...] = ()
    """Tokens with a bias."""
    bias: tuple[float, ...] = ()
    """What is added to their logits."""
    presence_penalty: float = 0.0
    """Subtracted where the token was written before."""
    frequency_penalty: float = 0.0
    """Subtracted once for each time."""
    repetition_penalty: float = 1.0
    """Divides a positive logit of a token that was written or stands in the prompt, and multiplies a negative one."""

    def check(self) -> None:
        tokens = self.tokens
        counts = f"{counted(len(tokens), 'token')} with a bias and {counted(len(self.bias), 'number')}: give one each."
        require(len(tokens) == len(self.bias), counts)
        wrong = next((one for at, one in enumerate(tokens) if one < 0 or one in tokens[:at]), None)
        require(wrong is None, f"the tokens with a bias are ids, each once, not {wrong} again or below 0.")
        theta = self.repetition_penalty
        require(theta > 0, f"repetition_penalty must be above 0, not {theta}; 1 changes nothing.")

    def check_ids(self, facts: Facts) -> None:
        """Raise unless the model has all tokens that have a bias."""
        wrong = next((one for one in self.tokens if one >= facts.vocab_size or one == facts.mask_id), None)
        what = f"ids from 0 to {facts.vocab_size - 1} without the mask id {facts.mask_id}"
        require(wrong is None, f"a bias of token {wrong} means nothing to this model, which writes {what}.")

    def biasing(self, bias: Mapping[int, float]) -> Self:
        """The same with another bias."""
        fits = isinstance(bias, Mapping)
        require(fits, f"a bias says by token id what is added to its logits, {{198: -5.0}} say, not {shown(bias)}.")
        return replace(self, tokens=tuple(bias), bias=tuple(bias.values()))
