"""Quotas: how many tokens a step commits, for selectors that follow a schedule.

A quota has a total over the span; each block gets its share by its masks. Its formula holds for
numbers and for `[B, 1]` tensors alike, because rows of a batch may be at different steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ..errors import require
from ..support.arrays import Ints
from ..support.transfer import number
from ..view import Count, View
from .piece import Piece


@dataclass(frozen=True)
class Schedule(Piece):
    """What selectors and quotas can say ahead of time about how many steps a block takes."""

    kind: ClassVar[bool] = True

    @property
    def may_wait(self) -> bool:
        """Whether a step may commit nothing without being stalled."""
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
