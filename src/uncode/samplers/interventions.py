"""Controlled changes for experiments (Uncode, Section 3): reject trivial tokens, insert anchors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn, Self

import torch
from torch import Tensor

from ..core.canvas import Canvas
from ..core.denoiser import Facts
from ..core.errors import NoSuchName, require
from ..core.noise import Purpose
from ..core.pieces.policy import Sampler
from ..core.pieces.select import Schedule, Scheduled, Selector
from ..core.trace.texts import is_trivial
from ..core.view import Ranking, View

__all__ = ["insert_anchor", "reject_trivial", "trivial_ids"]


def __dir__() -> list[str]:
    """The edits alone, for completion."""
    return __all__


def trivial_ids(tokenizer: Any) -> tuple[int, ...]:
    """The ids of any tokenizer that read as one of the paper's trivial tokens, with or without a space before."""
    texts = tokenizer.batch_decode([[i] for i in range(len(tokenizer))])
    special = set(tokenizer.all_special_ids)
    return tuple(i for i, text in enumerate(texts) if i not in special and is_trivial(text))


@dataclass(frozen=True)
class RejectTrivial(Scheduled):
    """When the inner selector picks a trivial proposal, reject it with a probability and take the best non-trivial
    candidate instead, if there is one."""

    _ids: ClassVar[Tensor | None] = None

    inner: Selector
    tokens: tuple[int, ...]
    probability: float

    def check(self) -> None:
        require(0 <= self.probability <= 1, f"the probability must be in [0, 1], not {self.probability}.")

    def bind(self, facts: Facts) -> Self:
        ids = torch.tensor(facts.resolve(self.tokens), dtype=torch.long, device=facts.device)
        return replace(self, inner=self.inner.bind(facts)).holding(_ids=ids)

    @property
    def schedule(self) -> Schedule:
        return self.inner

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        assert self._ids is not None, "a selector is bound to a model before it is used"
        picked = self.inner(ranking, view)
        trivial = torch.isin(view.belief.token, self._ids)
        coin = view.noise.positions(Purpose.REJECT, view.offsets) < self.probability
        rejected = picked & trivial & coin
        instead = Ranking(ranking.score, ~(picked | trivial)).top(rejected.sum(-1, keepdim=True))
        # As many rejections stand as there are replacements, the worst-ranked rejected first.
        worst = Ranking(ranking.rank.double(), rejected)
        return (picked & ~worst.top(instead.sum(-1, keepdim=True))) | instead


def reject_trivial(sampler: Sampler, tokens: tuple[int, ...], probability: float) -> Sampler:
    """The same sampler, with trivial proposals rejected with `probability`."""
    policy = sampler.policy
    select = RejectTrivial(policy.select, tokens, probability)
    return replace(sampler, policy=replace(policy, select=select), name=f"{sampler.name}+reject_trivial")


def insert_anchor(canvas: Canvas, at: float, token: int) -> Canvas:
    """The same canvas with one token given at a relative position of the span: 0.25 or 0.75 in the paper."""
    require(0 <= at < 1, f"an anchor's relative position must be in [0, 1), not {at}.")
    return canvas.with_anchors([{int(at * length): token} for length in canvas.lengths.tolist()])


def __getattr__(name: str) -> NoReturn:
    raise NoSuchName("uncode.interventions", name, ("insert_anchor", "reject_trivial", "trivial_ids"))
