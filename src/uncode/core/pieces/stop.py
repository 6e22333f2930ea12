"""Stop rules: *when to end early*."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from ..denoiser import Facts
from ..errors import require
from ..view import View
from .piece import Buffer, Piece


@dataclass(frozen=True)
class Stop(Piece):
    """Looks at the whole span after each step."""

    kind: ClassVar[bool] = True

    sees_beliefs: ClassVar[bool] = False
    """Whether it reads beliefs, of the whole span, before a step commits; see :meth:`exits`."""

    @property
    def reads_committed(self) -> bool:
        """Whether it reads beliefs at committed positions too. A KV cache does not compute them again, so a sampler
        with such a rule has none."""
        return False

    overwrites: ClassVar[bool] = False
    """Whether it writes over tokens, and at masks of a row that goes on. The trace then keeps every change."""

    stops: ClassVar[bool] = True
    """False for the one rule that never does; the stepper then does not look."""

    def __call__(self, tokens: Tensor, masked: Tensor, own: Tensor) -> Tensor:
        """The token to write at masks, or over the decoder's own tokens, `[B, S]`; -1 where nothing is written."""
        raise NotImplementedError

    def exits(self, view: View) -> Tensor:
        """The masks that take their proposals in this step because the row ends with it, `[B, W]`: all of a row's or
        none. Asked where `sees_beliefs`; the view then has the whole span."""
        raise NotImplementedError

    def followed_by(self, stop: Stop) -> Stop:
        """The rule of a sampler that has this one and is asked to follow `stop` too. By default both hold."""
        return EitherStop(self, stop) if stop.stops and stop != self else self


@dataclass(frozen=True)
class EitherStop(Stop):
    """Two rules: the second fills what the first leaves open."""

    first: Stop
    second: Stop

    @property
    def sees_beliefs(self) -> bool:  # type: ignore[override]
        return self.first.sees_beliefs or self.second.sees_beliefs

    @property
    def reads_committed(self) -> bool:
        return self.first.reads_committed or self.second.reads_committed

    @property
    def overwrites(self) -> bool:  # type: ignore[override]
        return self.first.overwrites or self.second.overwrites

    @property
    def stops(self) -> bool:  # type: ignore[override]
        return self.first.stops or self.second.stops

    def __call__(self, tokens: Tensor, masked: Tensor, own: Tensor) -> Tensor:
        fill = self.first(tokens, masked, own)
        return torch.where(fill >= 0, fill, self.second(tokens, masked, own))

    def exits(self, view: View) -> Tensor:
        found = [rule.exits(view) for rule in (self.first, self.second) if rule.sees_beliefs]
        return found[0] | found[-1]

    def followed_by(self, stop: Stop) -> Stop:
        return replace(self, second=self.second.followed_by(stop))


@dataclass(frozen=True)
class AtTheEnd(Stop):
    """Every mask is filled by the model."""

    stops: ClassVar[bool] = False

    def __call__(self, tokens: Tensor, masked: Tensor, own: Tensor) -> Tensor:
        return torch.full_like(tokens, -1)

    def followed_by(self, stop: Stop) -> Stop:
        return stop


@dataclass(frozen=True)
class AfterEos(Stop):
    """When no mask is left before an EOS token the decoder wrote, the rest of the row becomes that token."""

    _ids: ClassVar[Tensor]

    def bind(self, facts: Facts) -> Self:
        require(len(facts.eos_ids) > 0, "this model has no EOS token, so AfterEos cannot stop: use AtTheEnd.")
        return self.holding(_ids=torch.tensor(facts.eos_ids, device=facts.device))

    def __call__(self, tokens: Tensor, masked: Tensor, own: Tensor) -> Tensor:
        settled = torch.isin(tokens, self._ids) & own & (masked.cumsum(-1) == 0)
        first = settled.long().argmax(-1, keepdim=True)
        after = torch.arange(tokens.shape[-1], device=tokens.device) > first
        fill = after & masked & settled.any(-1, keepdim=True)
        return torch.where(fill, tokens.gather(-1, first), -1)

    def followed_by(self, stop: Stop) -> Stop:
        return stop


@dataclass(frozen=True)
class FromFirstEos(Stop):
    """Everything behind an EOS token the decoder wrote becomes that token at once; masks before it stay open (DCD)."""

    overwrites: ClassVar[bool] = True
    _ids: ClassVar[Tensor]

    def bind(self, facts: Facts) -> Self:
        require(len(facts.eos_ids) > 0, "this model has no EOS token, so FromFirstEos cannot stop: use AtTheEnd.")
        return self.holding(_ids=torch.tensor(facts.eos_ids, device=facts.device))

    def __call__(self, tokens: Tensor, masked: Tensor, own: Tensor) -> Tensor:
        ends = torch.isin(tokens, self._ids) & own & ~masked
        first = ends.long().argmax(-1, keepdim=True)
        behind = own & ((ends.cumsum(-1) - ends.long()) > 0)
        return torch.where(behind & (tokens != tokens.gather(-1, first)), tokens.gather(-1, first), -1)

    def followed_by(self, stop: Stop) -> Stop:
        return self if isinstance(stop, AfterEos) else super().followed_by(stop)


@dataclass(frozen=True)
class WhenAnswerIsClear(Stop):
    """When the two most likely tokens of the answer's positions are far apart, all masks take their proposals.

    The gap of their logits, averaged over `length` positions from the offset `start` on, must reach `early`, `middle`
    or `late`, by the third of the steps. With a `start` of None it is averaged over the masks that propose text: EOS
    tokens are sure long before the answer is. If all masks propose EOS, it is averaged over all. `steps` is the
    sampler's number of steps, None one token a step. Until then the rule `otherwise` holds.
    """

    sees_beliefs: ClassVar[bool] = True
    _mask_id: ClassVar[Tensor]
    _eos_ids: ClassVar[Tensor]

    start: int | None = None
    length: int = 5
    early: float = 7.5
    middle: float = 5.0
    late: float = 2.5
    steps: int | None = None
    otherwise: Stop = field(default_factory=AtTheEnd)

    def check(self) -> None:
        require(
            self.start is None or self.start >= 0, f"the answer starts at an offset of 0 or more, not {self.start}."
        )
        require(self.length >= 1, f"the answer has at least 1 token, not {self.length}.")
        require(self.steps is None or self.steps >= 1, f"steps must be at least 1, not {self.steps}.")

    @property
    def reads_committed(self) -> bool:
        return self.start is not None or self.otherwise.reads_committed

    def bind(self, facts: Facts) -> Self:
        bound = replace(self, otherwise=self.otherwise.bind(facts))
        eos_ids = torch.tensor(facts.eos_ids, dtype=torch.long, device=facts.device)
        return bound.holding(_mask_id=torch.tensor(facts.mask_id, device=facts.device), _eos_ids=eos_ids)

    def buffers(self) -> tuple[Buffer, ...]:
        return (
            Buffer("steps_taken", "row", outlives_block=True),
            Buffer("masks_at_start", "row", outlives_block=True),
        )

    def _counts(self, view: View) -> tuple[Tensor, Tensor]:
        """Steps taken, this one included, and the masks that the row had at its start, `[B, 1]`."""
        taken, masks = view.memory["steps_taken"], view.tokens.eq(self._mask_id).sum(-1, keepdim=True).double()
        return taken + 1, torch.where(taken == 0, masks, view.memory["masks_at_start"])

    def exits(self, view: View) -> Tensor:
        masked, (taken, total) = view.tokens.eq(self._mask_id), self._counts(view)
        part = taken / (total if self.steps is None else total.clamp(max=self.steps))
        bar = torch.where(part < 0.33, self.early, torch.where(part < 0.67, self.middle, self.late))
        answer = self._answer(view, masked)
        gap = torch.where(answer, -view.belief.exp_second.double().log(), 0.0).sum(-1, keepdim=True)
        count = answer.sum(-1, keepdim=True)
        return masked & (count > 0) & (gap / count >= bar)

    def _answer(self, view: View, masked: Tensor) -> Tensor:
        """The positions whose gap counts, `[B, W]`."""
        if self.start is not None:
            answer = (view.offsets >= self.start) & (view.offsets < self.start + self.length)
            return (answer & (view.offsets < view.span_length)).expand_as(masked)
        text = masked & ~torch.isin(view.belief.token, self._eos_ids)
        return torch.where(text.any(-1, keepdim=True), text, masked)

    def remember(self, view: View, logits: Tensor) -> dict[str, Tensor]:
        taken, total = self._counts(view)
        return {"steps_taken": taken, "masks_at_start": total}

    def __call__(self, tokens: Tensor, masked: Tensor, own: Tensor) -> Tensor:
        return self.otherwise(tokens, masked, own)

    def followed_by(self, stop: Stop) -> Stop:
        return replace(self, otherwise=stop)
