"""Remaskers and editors: *what to take back* and what to overwrite, among what the decoder wrote in the open block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

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
