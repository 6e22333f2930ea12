"""Selectors: *how many*. From a ranking to the set of positions a step commits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ..errors import require
from ..noise import Purpose
from ..support.arrays import Ints
from ..view import Ranking, View
from .quota import Decay, Even, Quota, Schedule


@dataclass(frozen=True)
class Selector(Schedule):
    """Chooses among the ranking's candidates: a boolean `[B, W]`."""

    kind: ClassVar[bool] = True

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        raise NotImplementedError


@dataclass(frozen=True)
class Scheduled(Selector):
    """A selector whose steps are those of another schedule."""

    kind: ClassVar[bool] = True

    @property
    def schedule(self) -> Schedule:
        raise NotImplementedError

    @property
    def may_wait(self) -> bool:
        return self.schedule.may_wait

    def shares(self, masked: Ints) -> Ints:
        return self.schedule.shares(masked)

    def min_steps(self, masked: Ints, steps: Ints) -> Ints:
        return self.schedule.min_steps(masked, steps)


@dataclass(frozen=True)
class TopK(Scheduled):
    """The best few of every step, as many as the quota says."""

    quota: Quota = field(default_factory=Even)

    @property
    def schedule(self) -> Schedule:
        return self.quota

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        return ranking.top(self.quota(view))


@dataclass(frozen=True)
class TauLeap(Scheduled):
    """Every masked position by its own coin, as likely as the step's share of the time left (Dream `origin`)."""

    time: Decay = field(default_factory=Decay)

    @property
    def schedule(self) -> Schedule:
        return self.time

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        coin = view.noise.positions(Purpose.COMMIT, view.offsets)
        return (coin < self.time.lost(view)) & ranking.candidates


@dataclass(frozen=True)
class Threshold(Selector):
    """Every position that reaches the threshold, and the best one in any case.

    `of="confidence"` compares the probability of the proposal, `of="score"` the exponential of the
    whole score, which for a calibrated score is no probability.
    """

    threshold: float
    of: Literal["confidence", "score"] = "confidence"

    def check(self) -> None:
        require(self.threshold > 0, f"the threshold must be above 0, not {self.threshold}.")
        require(
            self.of == "score" or self.threshold <= 1,
            f"a threshold on confidence is a probability, so it must be in (0, 1], not {self.threshold}.",
        )

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        value = view.belief.logp if self.of == "confidence" else ranking.score
        return ((value >= math.log(self.threshold)) & ranking.candidates) | ranking.top(1)


@dataclass(frozen=True)
class Factor(Selector):
    """Down the ranking while the n-th position's probability is at least 1 - factor / (n + 1); the first always."""

    factor: float

    def check(self) -> None:
        require(self.factor > 0, f"the factor must be above 0, not {self.factor}.")

    def count(self, ranking: Ranking, view: View) -> Tensor:
        """How many pass before the first that does not: `[B, 1]`."""
        confidence = view.belief.logp.exp().gather(-1, ranking.order)
        rank = torch.arange(1, confidence.shape[-1] + 1, device=confidence.device)
        passes = (confidence >= 1 - self.factor / (rank + 1)) | (rank == 1)
        return passes.long().cumprod(-1).sum(-1, keepdim=True)

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        return ranking.top(self.count(ranking, view))


@dataclass(frozen=True)
class EntropyBudget(Selector):
    """Down the ranking while the summed entropy, less the largest, is within `gamma`; the first always (EB)."""

    gamma: float

    def check(self) -> None:
        require(self.gamma >= 0, f"gamma must be 0 or more, not {self.gamma}.")

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        entropy = view.belief.entropy.gather(-1, ranking.order)
        spent = entropy.cumsum(-1) - entropy.cummax(-1).values  # never falls, whatever the order
        return ranking.top((spent <= self.gamma).sum(-1, keepdim=True).clamp(min=1))
