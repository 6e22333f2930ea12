"""Adjustments of logits, as data: a bias of tokens, and penalties of tokens that stand in the row already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from ..denoiser import Facts
from ..errors import require, shown
from ..support.reprs import counted
from .piece import Piece


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
