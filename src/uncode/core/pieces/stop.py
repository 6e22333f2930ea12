"""Stop rules: *when to end early*."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from ..denoiser import Facts
from ..errors import require
from .piece import Piece


@dataclass(frozen=True)
class Stop(Piece):
    """Looks at the whole span after each step."""

    kind: ClassVar[bool] = True

    @property
    def stops(self) -> bool:
        """False for the one rule that never does; the stepper then does not look."""
        return True

    def __call__(self, tokens: Tensor, masked: Tensor, own: Tensor) -> Tensor:
        """The token to fill the rest of each row's span with, `[B, S]`; -1 where nothing is to be filled."""
        raise NotImplementedError


@dataclass(frozen=True)
class AtTheEnd(Stop):
    """Every mask is filled by the model."""

    @property
    def stops(self) -> bool:
        return False

    def __call__(self, tokens: Tensor, masked: Tensor, own: Tensor) -> Tensor:
        return torch.full_like(tokens, -1)


@dataclass(frozen=True)
class AfterEos(Stop):
    """When no mask is left before an EOS token the decoder wrote, the rest of the row becomes that token."""

    _ids: ClassVar[Tensor | None] = None

    def bind(self, facts: Facts) -> Self:
        require(len(facts.eos_ids) > 0, "this model has no EOS token, so AfterEos cannot stop: use AtTheEnd.")
        return self.holding(_ids=torch.tensor(facts.eos_ids, device=facts.device))

    def __call__(self, tokens: Tensor, masked: Tensor, own: Tensor) -> Tensor:
        assert self._ids is not None, "a stop rule is bound to a model before it is used"
        settled = torch.isin(tokens, self._ids) & own & (masked.cumsum(-1) == 0)
        first = settled.long().argmax(-1, keepdim=True)
        after = torch.arange(tokens.shape[-1], device=tokens.device) > first
        fill = after & masked & settled.any(-1, keepdim=True)
        return torch.where(fill, tokens.gather(-1, first), -1)
