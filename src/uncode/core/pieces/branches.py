"""Selectors that try several sets of positions before they commit one: each set is a branch, and each has a probe."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..errors import check_probability, require
from ..noise import Purpose, gumbel
from ..view import Ranking, View
from .select import Certain, Selector

MAX_CANDIDATES = 64
"""Sets that a step may try. Each is a forward, and they are compared in pairs."""


@dataclass(frozen=True)
class Branching(Selector):
    """Of several sets of positions, the one after which the model is least uncertain.

    Each is tried in a probe: the mean entropy of the masks that it leaves, plus its price, is to be least.
    """

    kind: ClassVar[bool] = True

    candidates: int = 8

    def check(self) -> None:
        fits = 2 <= self.candidates <= MAX_CANDIDATES
        require(fits, f"there must be 2 to {MAX_CANDIDATES} candidates, not {self.candidates}.")

    @property
    def max_probes(self) -> int:
        return self.candidates

    def price(self, chosen: Tensor, view: View) -> Tensor | float:
        """What `chosen` `[B, W]` costs beside what it leaves, in nats, `[B]`."""
        return 0.0

    def best_of(self, sets: Tensor, view: View, decided: Tensor | bool = False) -> Tensor:
        """The best of the sets `[B, candidates, W]`. A row that is `decided` `[B, 1]`, or whose sets are all the same,
        needs no probe; it gets its first set."""
        is_new = ~_repeats(sets)
        tried = is_new & (is_new.sum(-1, keepdim=True) > 1) & ~torch.as_tensor(decided, device=sets.device)
        first = (~tried).long().argsort(dim=-1, stable=True)  # a batch takes as many as one of its rows
        sets, tried = sets.gather(1, first[..., None].expand_as(sets)), tried.gather(1, first)
        uncertainty = torch.full(tried.shape, torch.inf, dtype=torch.float32, device=tried.device)
        for at in tried.any(0).nonzero()[:, 0].tolist():
            found = self._uncertainty(sets[:, at], view, tried[:, at])
            uncertainty[:, at] = torch.where(tried[:, at], found.nan_to_num(torch.inf), torch.inf)
        best = uncertainty.min(-1).indices[:, None, None].expand(-1, 1, sets.shape[-1])
        return sets.gather(1, best)[:, 0]

    def _uncertainty(self, chosen: Tensor, view: View, needed: Tensor) -> Tensor:
        """The price of committing `chosen` `[B, W]` and what is then left of the uncertainty, `[B]`."""
        assert view.probe is not None, "a selector with probes is asked where view.probe is set"
        probed = view.probe(torch.where(chosen, view.belief.token, view.tokens), needed)
        left = torch.where(probed.masked, probed.belief.entropy.double(), 0.0).sum(-1) / probed.masked.sum(-1).clamp(1)
        return (left + self.price(chosen, view)).float()  # so that sums of another width round alike


def _repeats(sets: Tensor) -> Tensor:
    """Which sets `[B, N, W]` are equal to an earlier one of the row, `[B, N]`."""
    same = (sets[:, :, None] == sets[:, None]).all(-1)
    return same.tril(-1).any(-1)


@dataclass(frozen=True)
class LeastUncertainNext(Branching):
    """Of several sets of positions, the one after which the model is least uncertain.

    The sets have `count` positions: the best of the ranking, and others drawn by Gumbel noise on score / temperature.
    Each is tried in a probe. The mean entropy of the masks that it leaves is to be least; with `immediate`, plus the
    summed entropy of its positions. Where every mask of the block reaches the threshold, all are committed
    without a probe.
    """

    temperature: float = 0.2
    threshold: float = 0.8
    count: int = 1
    immediate: bool = True

    def check(self) -> None:
        super().check()
        require(self.temperature > 0, f"the temperature must be above 0, not {self.temperature}.")
        check_probability(self.threshold, "threshold")
        require(self.count >= 1, f"the count must be at least 1, not {self.count}.")

    @property
    def draws(self) -> bool:
        return True

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        sure = ((-view.belief.log_sumexp >= math.log(self.threshold)) | ~view.eligible).all(-1, keepdim=True)
        return torch.where(sure, ranking.candidates, self.best_of(self._sets(ranking, view), view, sure))

    def _sets(self, ranking: Ranking, view: View) -> Tensor:
        """The candidate sets, `[B, candidates, W]`; the first is the best of the ranking."""
        noise = gumbel(view.noise.tokens(Purpose.PROBE, view.offsets, self.candidates - 1)).unbind(-1)
        drawn = [Ranking(ranking.score / self.temperature + each, ranking.candidates) for each in noise]
        return torch.stack([each.top(self.count) for each in (ranking, *drawn)], 1)

    def price(self, chosen: Tensor, view: View) -> Tensor | float:
        return torch.where(chosen, view.belief.entropy.double(), 0.0).sum(-1) if self.immediate else 0.0


@dataclass(frozen=True)
class Lookahead(Branching):
    """An anchor, and branches that commit one further position each: the one after which the model is least uncertain.

    The anchor is every position that reaches the threshold, or else the best one (:class:`Certain`). The further
    positions are the next `candidates` - 1 of the ranking. Of equal branches, one with a further position is taken.
    """

    threshold: float = 0.9

    def check(self) -> None:
        super().check()
        check_probability(self.threshold, "threshold")

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        anchor = Certain(self.threshold)(ranking, view)
        rest = Ranking(ranking.score, ranking.candidates & ~anchor)
        further = [rest.candidates & (rest.rank == place) for place in range(self.candidates - 1)]
        return self.best_of(torch.stack([*(anchor | one for one in further), anchor], 1), view)
