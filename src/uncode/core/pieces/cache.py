"""Cache policies: which positions a forward recomputes, which keys it stores, which it reuses.

The decision is separate from the tensors: a policy returns a :class:`Plan` of column spans, and the
model's session does as the plan says. The open blocks of rows may lie in different columns, so a
:class:`Span` has one start and one stop per row. Sessions turn a uniform span into slices.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import require
from ..support.arrays import Ints
from .piece import Piece


@dataclass(frozen=True, eq=False)
class Span:
    """Columns `[start, stop)` of the canvas, one pair per row. The span of a canvas, the columns that are generated, is
    a number of columns instead."""

    start: Ints
    stop: Ints

    @cached_property
    def uniform(self) -> bool:
        """Whether all rows have the same span."""
        return bool((self.start == self.start[0]).all() and (self.stop == self.stop[0]).all())

    @cached_property
    def width(self) -> int:
        """Columns of the widest row."""
        return int((self.stop - self.start).max())

    def take(self, rows: Ints) -> Span:
        """The spans of some of the rows."""
        return Span(self.start[rows], self.stop[rows])

    def mask(self, length: int) -> NDArray[np.bool_]:
        """`[B, length]`: which columns belong to the span."""
        columns = np.arange(length)
        return (columns >= self.start[:, None]) & (columns < self.stop[:, None])


@dataclass(frozen=True, eq=False)
class SlidingColumns:
    """Where windows are that follow the masks, as numbers on the device: a forward is launched before the host knows
    them."""

    window: Tensor
    """`[B, 2]`: the column at which each row's window starts, and the one at which it stops."""
    wanted: Tensor
    """`[B, W]`: the columns whose logits are asked for."""
    width: int
    """Columns that are computed of each row, from the start of its window on."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What one forward does, in columns of the canvas."""

    window: Span
    """Recompute keys, values and hidden states here, from the tokens as they are now."""
    wanted: Span
    """Return logits of these columns; every row has the same width. Entries outside the window are undefined."""
    store: Span
    """Columns whose fresh keys and values later plans may reuse. A session may also store the rest of the window."""
    reuse: Span
    """Attend to the stored keys and values of these columns, except where the window is fresh."""
    slides: NDArray[np.bool_] | None = None
    """Which rows `[B]` have a window that follows the masks, and reuse every column; the others refresh. None where no
    policy follows the masks."""
    block: Span | None = None
    """The open blocks of a block-causal model. A model whose finished tokens are causal computes these alone in both
    directions; None where nothing is open."""
    columns: SlidingColumns | None = None
    """The windows of the rows that slide, for sessions that read them from the device (`slides_on_device`). Of these
    rows, `window` may be that of the step before."""

    def take(self, rows: Ints) -> Plan:
        """The plan of some of the rows, by the host's numbers."""
        window, wanted, store, reuse = (s.take(rows) for s in (self.window, self.wanted, self.store, self.reuse))
        block = None if self.block is None else self.block.take(rows)
        return Plan(window, wanted, store, reuse, None if self.slides is None else self.slides[rows], block)


NEVER = 2**40
"""Tokens since what has not happened yet."""


@dataclass(frozen=True)
class Place:
    """What a cache policy reads of the rows, in columns of the canvas."""

    block: Span
    """Their open blocks; of a block-causal model, its blocks around them."""
    block_step: Ints
    """Steps since these opened."""
    wanted: Span
    """Columns whose logits the step reads."""
    length: int
    """Columns of the canvas."""
    first_mask: Ints
    """The first mask of each open block, as of the last sync; after every step where a policy `follows_masks`. So for
    the next four."""
    first_mask_before: Ints | int = NEVER
    """The same at the row's last forward."""
    stop_before: Ints | int = 0
    """Where the open block ended at the row's last forward."""
    since_refresh: Ints | int = NEVER
    """Tokens committed since a forward last reused no key of the generated span; :data:`NEVER` before the first."""
    since_prompt: Ints | int = NEVER
    """The same for a forward that reused no key at all."""
    start: int = 0
    """The first column of the generated span."""
    settled: Ints | int = -NEVER
    """Of a block-causal model: up to where a row's stored keys and values are those of its final tokens."""

    def take(self, rows: Ints) -> Place:
        """What is read of some of the rows."""

        def taken(count: Ints | int) -> Ints | int:
            return count if isinstance(count, int) else count[rows]

        return replace(
            self,
            block=self.block.take(rows),
            block_step=self.block_step[rows],
            wanted=self.wanted.take(rows),
            first_mask=self.first_mask[rows],
            first_mask_before=taken(self.first_mask_before),
            stop_before=taken(self.stop_before),
            since_refresh=taken(self.since_refresh),
            since_prompt=taken(self.since_prompt),
            settled=taken(self.settled),
        )

    def span(self, start: Ints | int, stop: Ints | int) -> Span:
        like = self.block.start
        return Span(np.broadcast_to(start, like.shape), np.broadcast_to(stop, like.shape))


@dataclass(frozen=True)
class CachePolicy(Piece):
    """A function from a :class:`Place` to a plan. Only masks that the plan computes can be committed; the first mask of
    the open block must be among them."""

    kind: ClassVar[bool] = True

    sees_span: ClassVar[bool] = True
    """Whether every masked position is computed at every step."""

    sees_block: ClassVar[bool] = True
    """Whether the whole open block is computed at every step, committed positions too."""

    is_exact: ClassVar[bool] = False
    """Whether it is made for block-causal models, and wrong for others."""

    follows_masks: ClassVar[bool] = False
    """Whether plans depend on `place.first_mask`. The host then syncs after every step, and asks for a new plan."""

    @property
    def needs_kv_cache(self) -> bool:
        """Whether the model must store keys and values from one forward to the next."""
        return True

    @property
    def stores_once(self) -> bool:
        """Whether keys and values are stored in the first step of a block and in no later one."""
        return False

    @property
    def slides_on_device(self) -> bool:
        """Whether :meth:`window` says where a step computes, so that the host need not know it before the forward."""
        return False

    def __call__(self, place: Place) -> Plan:
        raise NotImplementedError

    def window(self, first_mask: Tensor, stop: Tensor, first_mask_before: Tensor, stop_before: Tensor) -> Tensor:
        """Where the window of a step starts and stops, `[B, 2]`, if it refreshes nothing; asked where it
        `slides_on_device`. All are columns `[B]`: the first mask and the end of the open block, now and at the last
        forward."""
        raise NotImplementedError

    def is_due(self, since_refresh: Ints | int) -> NDArray[np.bool_]:
        """Which rows refresh, so many tokens after the last time; asked where it `slides_on_device`."""
        raise NotImplementedError

    def changes(self, block_step: Ints) -> bool:
        """Whether the plan at this step differs from the one a step before (blocks unchanged)."""
        return False


@dataclass(frozen=True)
class NoCache(CachePolicy):
    """Recompute everything at every step."""

    @property
    def needs_kv_cache(self) -> bool:
        return False

    @property
    def stores_once(self) -> bool:
        return True

    def __call__(self, place: Place) -> Plan:
        everything, nothing = place.span(0, place.length), place.span(0, 0)
        return Plan(window=everything, wanted=place.wanted, store=nothing, reuse=nothing)


@dataclass(frozen=True)
class _BlockCache(CachePolicy):
    """One full forward when a block opens, then only part of the canvas until it is filled.

    `refresh` repeats the full forward every so many steps; 1 equals no cache.
    """

    kind: ClassVar[bool] = True
    refresh: int | None = None
    optional: bool | None = field(default=None, compare=False, repr=False)
    """Whether a model without a KV cache may be decoded without one. Where it has one, this changes nothing."""

    def check(self) -> None:
        require(self.refresh is None or self.refresh >= 1, "refresh must be at least 1 step.")

    @property
    def needs_kv_cache(self) -> bool:
        return self.refresh != 1

    @property
    def stores_once(self) -> bool:
        return self.refresh is None

    def _fresh(self, block_step: Ints) -> NDArray[np.bool_]:
        since = block_step if self.refresh is None else block_step % self.refresh
        return np.equal(since, 0)

    def changes(self, block_step: Ints) -> bool:
        return bool((self._fresh(block_step) != self._fresh(block_step - 1)).any())

    def _stored(self, place: Place) -> Span:
        raise NotImplementedError

    def _window(self, place: Place) -> Span:
        raise NotImplementedError

    def __call__(self, place: Place) -> Plan:
        fresh, window, stored = self._fresh(place.block_step), self._window(place), self._stored(place)
        return Plan(
            window=Span(np.where(fresh, 0, window.start), np.where(fresh, place.length, window.stop)),
            wanted=place.wanted,
            store=Span(np.where(fresh, stored.start, 0), np.where(fresh, stored.stop, 0)),
            reuse=Span(np.where(fresh, 0, stored.start), np.where(fresh, 0, stored.stop)),
        )


@dataclass(frozen=True)
class PrefixCache(_BlockCache):
    """Store everything before the block; recompute the block and all that follows (Fast-dLLM, prefix)."""

    def _stored(self, place: Place) -> Span:
        return place.span(0, place.block.start)

    def _window(self, place: Place) -> Span:
        return place.span(place.block.start, place.length)


@dataclass(frozen=True)
class DualCache(_BlockCache):
    """Store everything; recompute the block alone, the suffix stays stale until the next block (Fast-dLLM, dual)."""

    sees_span: ClassVar[bool] = False

    def _stored(self, place: Place) -> Span:
        return place.span(0, place.length)

    def _window(self, place: Place) -> Span:
        return place.block


@dataclass(frozen=True)
class BlockCache(CachePolicy):
    """Store the blocks that are done; recompute the open one. For block-causal models, where that is exact: no position
    sees a later block.

    The first step of a block computes the one before it too, now with its final tokens, and stores that. What follows
    the open block is never computed.
    """

    sees_span: ClassVar[bool] = False
    is_exact: ClassVar[bool] = True

    @property
    def stores_once(self) -> bool:
        return True

    def changes(self, block_step: Ints) -> bool:
        return bool((block_step == 1).any())

    def __call__(self, place: Place) -> Plan:
        opens = np.equal(place.block_step, 0)
        first = np.where(opens, np.maximum(place.settled, 0), place.block.start)
        return Plan(
            window=Span(first, place.block.stop),
            wanted=place.wanted,
            store=Span(first, np.where(opens, place.block.start, first)),
            reuse=place.span(0, first),
        )


@dataclass(frozen=True)
class WindowCache(CachePolicy):
    """Store everything; recompute the open masks and a margin to their left (DSB).

    A step computes the open block from its first mask on, at least `margin` columns to the left of it, and all columns
    that the step before has computed and committed: a fresh token is computed once before its keys are reused
    (dKV-Cache). With blocks that slide, that is a window of about one width. What a stop rule fills behind it is
    computed at the next refresh.

    After `every` committed tokens a step recomputes the whole generated span, never where it is None; 1 equals no
    cache. The prompt is then recomputed too if `prompt_every` tokens were committed since; None keeps it for the whole
    answer (dLLM-Cache has such intervals). With a `suffix`, only so many columns behind the open block exist for the
    model, and each step computes them; the masks further right are left out (DPad).
    """

    sees_span: ClassVar[bool] = False
    sees_block: ClassVar[bool] = False
    follows_masks: ClassVar[bool] = True

    margin: int = 24
    every: int | None = 32
    prompt_every: int | None = 32
    suffix: int | None = None

    def check(self) -> None:
        require(self.margin >= 0, f"the margin must be at least 0 columns, not {self.margin}.")
        require(self.every is None or self.every >= 1, f"every must be at least 1 token, not {self.every}.")
        fits = self.prompt_every is None or self.prompt_every >= 1
        require(fits, f"prompt_every must be at least 1 token, not {self.prompt_every}.")
        require(self.suffix is None or self.suffix >= 0, f"the suffix must be at least 0 columns, not {self.suffix}.")

    @property
    def needs_kv_cache(self) -> bool:
        return self.every != 1 or self.prompt_every != 1 or self.suffix is not None

    @property
    def slides_on_device(self) -> bool:
        return self.suffix is None  # which columns are seen is for the host

    def __call__(self, place: Place) -> Plan:
        fresh, prompt_fresh = self.is_due(place.since_refresh), _is_due(place.since_prompt, self.prompt_every)
        edges = (place.first_mask, place.block.stop, place.first_mask_before, place.stop_before)
        first, stop = self.window(*map(torch.as_tensor, edges)).numpy().T
        seen = np.full_like(first, place.length)
        if self.suffix is not None:
            stop = seen = np.minimum(stop + self.suffix, place.length)
        from_column = np.where(prompt_fresh, 0, np.minimum(place.start, first))
        window = Span(np.where(fresh, from_column, first), np.where(fresh, seen, stop))
        return Plan(
            window=window,
            wanted=place.wanted,
            store=window,
            reuse=place.span(0, np.where(fresh, from_column, seen)),
            slides=~fresh,
        )

    def window(self, first_mask: Tensor, stop: Tensor, first_mask_before: Tensor, stop_before: Tensor) -> Tensor:
        start = torch.minimum(first_mask - self.margin, first_mask_before).clamp(min=0)
        return torch.stack((start, torch.maximum(stop, stop_before)), -1)

    def is_due(self, since_refresh: Ints | int) -> NDArray[np.bool_]:
        return _is_due(since_refresh, self.every)


def _is_due(since: Ints | int, interval: int | None) -> NDArray[np.bool_]:
    """Whether so many tokens were committed since; at the first time in any case, and always where it is one token."""
    due = np.asarray(since) >= (NEVER if interval is None else interval)
    return np.full_like(due, True) if interval == 1 else due
