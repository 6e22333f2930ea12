"""Remaskers and editors: *what to take back* and what to overwrite, among what the decoder wrote in the open block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from ..belief import Belief
from ..denoiser import Facts
from ..errors import require
from ..support.arrays import Ints
from ..view import Count, Ranking, View, part_of
from .piece import Buffer, Piece
from .select import Quota, check_steps, split_steps


@dataclass(frozen=True)
class Reviser(Piece):
    """What remaskers and editors have in common."""

    kind: ClassVar[bool] = True

    def __call__(self, view: View) -> Tensor:
        """A boolean `[B, W]` of positions, a subset of `view.own`."""
        raise NotImplementedError

    def pending(self, view: View) -> Tensor | bool:
        """Rows `[B, 1]` whose block must stay open although it is full."""
        return False


@dataclass(frozen=True)
class Remasker(Reviser):
    """Called after each commit: the positions to erase."""

    kind: ClassVar[bool] = True

    needs_standing: ClassVar[bool] = False
    """Whether the belief must hold the log probability of the standing tokens."""

    erases: ClassVar[bool] = True
    """False for the one remasker that never does anything; the stepper then skips the step."""


@dataclass(frozen=True)
class Never(Remasker):
    """What is written stays."""

    erases: ClassVar[bool] = False

    def __call__(self, view: View) -> Tensor:
        return torch.zeros_like(view.eligible)


def in_loop(view: View, start: float, ahead: int = 0) -> Tensor | bool:
    """Whether the step `ahead` of this one lies in the loop of :class:`LeastConfident`: one share of the steps
    long, from the `start` part of the share on."""
    begin = part_of(view.block_steps, start)
    step = view.block_step + ahead
    return (step >= begin) & (step < begin + view.block_steps)


def _check_loop(start: float, count: int) -> None:
    require(0 < start < 1, f"the loop must start at a part of the steps in (0, 1), not {start}.")
    require(count >= 1, f"the number of tokens to take back must be at least 1, not {count}.")


@dataclass(frozen=True)
class LeastConfident(Remasker):
    """In the loop, take back the `count` tokens that were committed with the least probability (ReMDM on LLaDA)."""

    needs_schedule: ClassVar[bool] = True

    count: int = 1
    start: float = 0.875

    def check(self) -> None:
        _check_loop(self.start, self.count)

    def __call__(self, view: View) -> Tensor:
        assert view.logp_at_commit is not None
        return Ranking(-view.logp_at_commit, view.own).top(self.count) & in_loop(view, self.start, ahead=1)


@dataclass(frozen=True)
class LoopQuota(Quota):
    """The quota that goes with :class:`LeastConfident`: an even pace, and `count` tokens a step in the loop."""

    steps: int | None = None
    count: int = 1
    start: float = 0.875

    def check(self) -> None:
        check_steps(self.steps)
        _check_loop(self.start, self.count)

    def shares(self, masked: Ints) -> Ints:
        return split_steps(self.steps, masked)

    def __call__(self, view: View) -> Count:
        masked, steps = view.block_masked, view.block_steps
        in_the_loop = in_loop(view, self.start) * 1
        after_it = (view.block_step >= part_of(steps, self.start) + steps) * 1
        paced = masked // steps + (view.block_step - after_it * steps < masked % steps)
        return self.count * in_the_loop + paced * (1 - in_the_loop)


@dataclass(frozen=True)
class LargestDrops(Remasker):
    """While the block has masks, take back the tokens at whose positions the probability of the most likely token has
    fallen most since the step before.

    Of the masks that a step fills, an eighth is taken back, at least half of `count`, never all.
    """

    count: int = 2

    def check(self) -> None:
        require(self.count >= 1, f"the count must be at least 1, not {self.count}.")

    def buffers(self) -> tuple[Buffer, ...]:
        return (Buffer("last_p", outlives_block=True),)

    def __call__(self, view: View) -> Tensor:
        assert view.chosen is not None
        written = (view.chosen & view.eligible).sum(-1, keepdim=True)  # an editor's tokens fill no mask
        number = ((written + 7) // 8).clamp(min=self.count // 2).minimum(written - 1)
        drop = view.memory["last_p"] - view.belief.logp.exp()
        is_full = ~(view.masked & ~view.chosen).any(-1, keepdim=True)
        return Ranking(drop, view.own).top(number) & ~is_full

    def remember(self, view: View, logits: Tensor) -> dict[str, Tensor]:
        return {"last_p": view.belief.logp.exp().double()}


@dataclass(frozen=True)
class Editor(Reviser):
    """Called with each commit: the standing tokens that take the proposal."""

    kind: ClassVar[bool] = True

    def edits(self, view: View) -> tuple[Tensor, Belief]:
        """The positions to overwrite, and the belief whose tokens they take: the step's own, or that of a probe."""
        return self(view), view.belief


@dataclass(frozen=True)
class Overwrite(Editor):
    """Standing tokens are overwritten where another token is the most likely one, with a probability above `threshold`.

    A full block is looked at again until nothing changes, at most `rounds` times.
    """

    threshold: float = 0.0
    rounds: int = 16

    def check(self) -> None:
        require(0 <= self.threshold < 1, f"the threshold must be a probability below 1, not {self.threshold}.")
        require(self.rounds >= 0, f"rounds must be 0 or more, not {self.rounds}.")

    def buffers(self) -> tuple[Buffer, ...]:
        return (Buffer("times_full", "row"),)

    def __call__(self, view: View) -> Tensor:
        standing = view.own & ~view.masked
        return standing & (view.belief.token != view.tokens) & (view.belief.logp.exp() > self.threshold)

    def pending(self, view: View) -> Tensor | bool:
        was_full = ~view.masked.any(-1, keepdim=True)
        return (~was_full | self(view).any(-1, keepdim=True)) & (self._times_full(view) < self.rounds)

    def _times_full(self, view: View) -> Tensor:
        """How often the model has looked at the full block, this step included."""
        return view.memory["times_full"] + ~view.masked.any(-1, keepdim=True)

    def remember(self, view: View, logits: Tensor) -> dict[str, Tensor]:
        return {"times_full": self._times_full(view)}


@dataclass(frozen=True)
class OverwriteBrittle(Editor):
    """Standing tokens that the model would not write again, were they and others masked, take what it would write.

    At every `every`-th step of a block, in the part of its steps from `start` to `end`, a probe masks the `candidates`
    tokens at whose positions the margin is smallest. Where another token is then the most likely one, with a
    probability above `threshold`, the old token is brittle. The `count` least likely of these are overwritten with what
    the probe says. The last `protect` columns of a block are left alone.
    """

    needs_schedule: ClassVar[bool] = True
    _mask_id: ClassVar[Tensor]

    candidates: int = 32
    every: int = 8
    count: int = 1
    threshold: float = 0.3
    start: float = 0.25
    end: float = 0.75
    protect: int = 16

    def check(self) -> None:
        for name in ("candidates", "every", "count"):
            value = getattr(self, name)
            require(value >= 1, f"{name} must be at least 1, not {value}.")
        require(0 <= self.threshold < 1, f"the threshold must be a probability below 1, not {self.threshold}.")
        fits = 0 <= self.start < self.end <= 1
        require(fits, f"start and end must be parts of the steps, in order, not {self.start} and {self.end}.")
        require(self.protect >= 0, f"protect must be 0 or more columns, not {self.protect}.")

    @property
    def max_probes(self) -> int:
        return 1

    def bind(self, facts: Facts) -> Self:
        return self.holding(_mask_id=torch.tensor(facts.mask_id, device=facts.device))

    def __call__(self, view: View) -> Tensor:
        return self.edits(view)[0]

    def edits(self, view: View) -> tuple[Tensor, Belief]:
        now = self._revises(view)
        if now is False:
            return torch.zeros_like(view.masked), view.belief
        tried = self._candidates(view) & now
        needed = tried.any(-1)
        if not bool(needed.any()):
            return tried, view.belief
        assert view.probe is not None, "an editor with probes is asked where view.probe is set"
        without = view.probe(torch.where(tried, self._mask_id, view.tokens), needed).window(view.offsets)
        brittle = tried & (without.token != view.tokens) & (without.logp.exp() > self.threshold)
        return Ranking(-without.standing, brittle).top(self.count), without

    def _revises(self, view: View) -> Tensor | bool:
        """Whether this is a step that revises."""
        step, steps = view.block_step, view.block_steps
        first, stop = part_of(steps, self.start), part_of(steps, self.end)
        return (step % self.every == 0) & (step >= first) & (step < stop)

    def _candidates(self, view: View) -> Tensor:
        """The tokens that the probe masks, `[B, W]`, as long as the block has masks."""
        last = view.block_start + view.block_length - self.protect
        standing = view.own & ~view.masked & (view.offsets < last) & view.masked.any(-1, keepdim=True)
        return Ranking(-view.belief.margin, standing).top(self.candidates)
