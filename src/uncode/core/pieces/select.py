"""Selectors and quotas: *how many*. From a ranking to the set of positions a step commits.

A quota follows a schedule: it has a total over the span, and each block gets its share by its masks. Its formula holds
for numbers and for `[B, 1]` tensors alike, because rows of a batch may be at different steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor

from ..denoiser import Facts
from ..errors import check_probability, require
from ..noise import Purpose
from ..support.arrays import Ints
from ..support.transfer import number
from ..view import Count, Ranking, View
from .piece import Buffer, Piece


@dataclass(frozen=True)
class Schedule(Piece):
    """What selectors and quotas can say ahead of time about how many steps a block takes."""

    kind: ClassVar[bool] = True

    @property
    def may_wait(self) -> bool:
        """Whether a step may commit nothing without being stalled."""
        return False

    @property
    def commits_one(self) -> bool:
        """Whether every step commits one token, whatever the model believes."""
        return False

    def shares(self, masked: Ints) -> Ints:
        """Each block's share of the steps, `[B, blocks]`, from its masks; zeros where there is no schedule."""
        return np.zeros_like(masked)

    def min_steps(self, masked: Ints, steps: Ints) -> Ints:
        """The fewest steps that fill a block with so many masks and so large a share of the steps, `[B]`.

        The host first syncs after this many steps. Return 0 if it is unknown: the host then syncs after every step.
        """
        return np.zeros_like(masked)

    @property
    def has_schedule(self) -> bool:
        """Whether `view.block_steps` is a number of steps, and not 0."""
        return bool(self.shares(np.full((1, 1), 64)).any())


@dataclass(frozen=True)
class Quota(Schedule):
    """Tokens per step: a function of the view, one number for all rows or `[B, 1]`."""

    kind: ClassVar[bool] = True

    def __call__(self, view: View) -> Count:
        raise NotImplementedError


def split_steps(total: int | None, masked: Ints) -> Ints:
    """`total` steps over blocks in proportion to their masks, the remainder to the first ones; None: one token a step.

    A block with masks gets at least one step and never more steps than masks.
    """
    if total is None:
        return masked
    share = masked * total // np.maximum(masked.sum(1, keepdims=True), 1)
    has_masks = masked > 0
    spare = total - share.sum(1, keepdims=True)
    share = share + (has_masks & (np.cumsum(has_masks, 1) <= spare))
    share = np.where(has_masks, np.clip(share, 1, masked), 0)
    while (over := (share.sum(1) > total) & (share.max(1) > 1)).any():  # tiny blocks took more than their part
        share[over, share[over].argmax(1)] -= 1
    return share


def check_steps(steps: int | None) -> None:
    require(steps is None or steps >= 1, f"steps must be at least 1, not {steps}.")


@dataclass(frozen=True)
class Even(Quota):
    """The same number at every step, the remainder to the earliest ones (LLaDA). None: one token a step."""

    steps: int | None = None

    def check(self) -> None:
        check_steps(self.steps)

    @property
    def commits_one(self) -> bool:
        return self.steps is None

    def shares(self, masked: Ints) -> Ints:
        return split_steps(self.steps, masked)

    def __call__(self, view: View) -> Count:
        return view.block_masked // view.block_steps + (view.block_step < view.block_masked % view.block_steps)

    def min_steps(self, masked: Ints, steps: Ints) -> Ints:
        return steps


@dataclass(frozen=True)
class Exactly(Quota):
    """A fixed number of tokens at every step."""

    count: int = 1

    def check(self) -> None:
        require(self.count >= 1, f"the count must be at least 1, not {self.count}.")

    @property
    def commits_one(self) -> bool:
        return self.count == 1

    def shares(self, masked: Ints) -> Ints:
        return -(-masked // self.count)

    def __call__(self, view: View) -> Count:
        return self.count

    def min_steps(self, masked: Ints, steps: Ints) -> Ints:
        return steps


@dataclass(frozen=True)
class Decay(Quota):
    """Dream's schedule: time runs evenly from 1 to eps, a step commits the share of the masks that time loses.

    The number is cut to a whole one, so early steps may commit nothing; the last step commits the rest.
    """

    steps: int | None = None
    eps: float = 1e-3

    def check(self) -> None:
        check_steps(self.steps)
        require(0 < self.eps < 1, f"eps must be in (0, 1), not {self.eps}.")

    @property
    def may_wait(self) -> bool:
        return True

    def shares(self, masked: Ints) -> Ints:
        return split_steps(self.steps, masked)

    def __call__(self, view: View) -> Count:
        left = view.eligible.sum(-1, keepdim=True)
        return (left * self.lost(view)).long()

    def lost(self, view: View) -> Tensor:
        """1 - s/t for the step from time t to time s; 1 at a block's last step."""
        steps, step = (
            n.double() if isinstance(n, Tensor) else number(n, view.tokens, torch.float64)
            for n in (view.block_steps, view.block_step)
        )
        now, then = (1.0 - (1.0 - self.eps) * at / steps for at in (step, step + 1))
        return torch.where(step >= steps - 1, 1.0, 1.0 - then / now)


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

    @property
    def commits_one(self) -> bool:
        return self.quota.commits_one

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        return ranking.top(self.quota(view))


@dataclass(frozen=True)
class TauLeap(Scheduled):
    """Every masked position by its own coin, as likely as the step's share of the time left (Dream `origin`)."""

    time: Decay = field(default_factory=Decay)

    @property
    def schedule(self) -> Schedule:
        return self.time

    @property
    def draws(self) -> bool:
        return True

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
    """Commit the longest prefix of the ranking whose entropy sum minus maximum is at most `gamma`; always one (EB)."""

    gamma: float

    def check(self) -> None:
        require(self.gamma >= 0, f"gamma must be 0 or more, not {self.gamma}.")

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        entropy = view.belief.entropy.gather(-1, ranking.order)
        spent = entropy.cumsum(-1) - entropy.cummax(-1).values  # never falls, whatever the order
        return ranking.top((spent <= self.gamma).sum(-1, keepdim=True).clamp(min=1))


@dataclass(frozen=True)
class EntropyThreshold(Selector):
    """Every position whose entropy, in nats, is at most the threshold, and the best one in any case.

    With `block_length`, the best position of the first block with masks is committed too, if the threshold takes none
    of that block (d3LLM, whose blocks overlap). Then `best` may be False: no other is committed in any case.
    """

    threshold: float
    block_length: int | None = None
    best: bool = True

    def check(self) -> None:
        require(self.threshold >= 0, f"the threshold must be 0 or more, not {self.threshold}.")
        length = self.block_length
        require(length is None or length >= 1, f"the block length must be at least 1, not {length}.")
        require(self.best or length is not None, "without its best position, EntropyThreshold needs a block_length.")

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        chosen = (view.belief.entropy <= self.threshold) & ranking.candidates
        if self.best:
            chosen = chosen | ranking.top(1)
        if self.block_length is None:
            return chosen
        block = (view.offsets // self.block_length).expand_as(chosen)
        last = torch.iinfo(block.dtype).max
        front = ranking.candidates & (block == block.masked_fill(~ranking.candidates, last).amin(-1, keepdim=True))
        has_none = ~(chosen & front).any(-1, keepdim=True)
        return chosen | (has_none & Ranking(ranking.score, front).top(1))


@dataclass(frozen=True)
class Certain(Selector):
    """Where candidates reach the threshold, all of them and nothing else; elsewhere the best one alone.

    A position that is committed beside others is decided without knowing them. So nothing uncertain is committed in the
    same step as what is certain: the model looks again first.
    """

    threshold: float = 0.999

    def check(self) -> None:
        check_probability(self.threshold, "threshold")

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        certain = _reaches(view, self.threshold) & ranking.candidates
        return torch.where(certain.any(-1, keepdim=True), certain, ranking.top(1))


@dataclass(frozen=True)
class BestOfRuns(Selector):
    """The best position of each run of neighbouring masks, where its probability exceeds `low`; every position above
    the threshold; and the best one in any case."""

    threshold: float = 0.9
    low: float = 0.4

    def check(self) -> None:
        check_probability(self.threshold, "threshold")
        require(0 <= self.low < 1, f"low must be a probability below 1, not {self.low}.")

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        p, here = view.belief.logp.exp(), ranking.candidates
        run = (view.eligible & ~view.eligible.roll(1, -1).index_fill(-1, ranking.order.new_zeros(1), False)).cumsum(-1)
        last = ranking.rank.shape[-1]
        rank = torch.where(here, ranking.rank, last)
        best = rank.new_full((len(rank), last + 1), last).scatter_reduce(-1, run, rank, "amin").gather(-1, run)
        return here & ((p > self.threshold) | ((rank == best) & (p > self.low))) | ranking.top(1)


@dataclass(frozen=True)
class AtLeastQuota(Scheduled):
    """A selector that commits as many as a quota says or more, so that a block may be filled sooner."""

    kind: ClassVar[bool] = True

    quota: Quota = field(default_factory=Even)

    @property
    def schedule(self) -> Schedule:
        return self.quota

    def min_steps(self, masked: Ints, steps: Ints) -> Ints:
        return np.zeros_like(masked)


@dataclass(frozen=True)
class ThresholdOrQuota(AtLeastQuota):
    """Every position whose probability exceeds the threshold, if these are as many as the quota; else the quota."""

    threshold: float = 0.85

    def check(self) -> None:
        check_probability(self.threshold, "threshold")

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        above = (view.belief.logp > math.log(self.threshold)) & ranking.candidates
        quota = self.quota(view)
        return torch.where(above.sum(-1, keepdim=True) >= quota, above, ranking.top(quota))


@dataclass(frozen=True)
class AroundAnchors(AtLeastQuota):
    """The quota; and around those of its positions that reach `anchor`, the neighbours within `radius` columns that
    reach `neighbour`."""

    anchor: float = 0.9
    neighbour: float = 0.75
    radius: int = 4

    def check(self) -> None:
        check_probability(self.anchor, "anchor")
        check_probability(self.neighbour, "neighbour")
        require(self.radius >= 1, f"the radius must be at least 1, not {self.radius}.")

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        best = ranking.top(self.quota(view))
        anchors = (best & _reaches(view, self.anchor)).float()
        near = torch.nn.functional.max_pool1d(anchors, 2 * self.radius + 1, 1, self.radius) > 0
        return best | (near & _reaches(view, self.neighbour) & ranking.candidates)


@dataclass(frozen=True)
class StableOrQuota(AtLeastQuota):
    """Every position whose probability exceeds the threshold and whose distribution has moved by less than `drift`
    nats in each of the last `history` steps; where there is none, the quota."""

    needs_drift: ClassVar[bool] = True

    threshold: float = 0.9
    drift: float = 0.01
    history: int = 2

    def check(self) -> None:
        check_probability(self.threshold, "threshold")
        require(self.drift > 0, f"drift must be above 0, not {self.drift}.")
        require(self.history >= 1, f"history must be at least 1 step, not {self.history}.")

    def buffers(self) -> tuple[Buffer, ...]:
        return (Buffer("stable_steps"),)

    def _stable_steps(self, view: View) -> Tensor:
        """For how many steps each position has hardly moved, this one included."""
        return torch.where(view.belief.drift < self.drift, view.memory["stable_steps"] + 1, 0.0)

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        stable = self._stable_steps(view) >= self.history
        ready = stable & (view.belief.logp > math.log(self.threshold)) & ranking.candidates
        return torch.where(ready.any(-1, keepdim=True), ready, ranking.top(self.quota(view)))

    def remember(self, view: View, logits: Tensor) -> dict[str, Tensor]:
        return {"stable_steps": self._stable_steps(view)}


@dataclass(frozen=True)
class AboveMeanAtCommit(Selector):
    """Every position whose probability exceeds the mean probability at commit of what the row has written so far; at
    least the best `count`."""

    count: int = 2

    def check(self) -> None:
        require(self.count >= 1, f"the count must be at least 1, not {self.count}.")

    def buffers(self) -> tuple[Buffer, ...]:
        return (
            Buffer("p_at_commit", fill=math.nan, outlives_block=True),
            Buffer("sum_at_commit", "row", outlives_block=True),
            Buffer("positions_committed", "row", outlives_block=True),
        )

    def __call__(self, ranking: Ranking, view: View) -> Tensor:
        total, count = view.memory["sum_at_commit"], view.memory["positions_committed"]
        mean = torch.where(count > 0, total / count, 1.0)
        above = (view.belief.logp.exp() > mean) & ranking.candidates
        return above | ranking.top(self.count)

    def remember(self, view: View, logits: Tensor) -> dict[str, Tensor]:
        assert view.chosen is not None
        before, p = view.memory["p_at_commit"], view.belief.logp.exp().double()
        gain = torch.where(view.chosen, p - before.nan_to_num(0.0), 0.0)
        return {
            "p_at_commit": torch.where(view.chosen, p, before),
            "sum_at_commit": view.memory["sum_at_commit"] + gain.sum(-1, keepdim=True),
            "positions_committed": view.memory["positions_committed"]
            + (view.chosen & before.isnan()).sum(-1, keepdim=True),
        }


def _reaches(view: View, threshold: float) -> Tensor:
    """Where the probability of the proposal is at least the threshold, `[B, W]`."""
    return view.belief.logp >= math.log(threshold)


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
    def draws(self) -> bool:
        return True

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
