"""Cache policies: which positions a forward recomputes, which keys it stores, which it reuses.

The decision is separate from the tensors: a policy returns a :class:`Plan` of column spans, and the
model's session does as the plan says. The open blocks of rows may lie in different columns, so a
:class:`Span` has one start and one stop per row. Sessions turn a uniform span into slices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

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

    def take(self, rows: Ints) -> Plan:
        """The plan of some of the rows."""
        return Plan(*(span.take(rows) for span in (self.window, self.wanted, self.store, self.reuse)))


@dataclass(frozen=True)
class Place:
    """What a cache policy reads of the rows, in columns of the canvas."""

    block: Span
    """Their open blocks."""
    block_step: Ints
    """Steps since these opened."""
    wanted: Span
    """Columns whose logits the step reads."""
    length: int
    """Columns of the canvas."""
    first_mask: Ints
    """The first mask of each open block, as of the last sync; after every step where a policy `follows_masks`."""

    def take(self, rows: Ints) -> Place:
        """What is read of some of the rows."""
        block, wanted = self.block.take(rows), self.wanted.take(rows)
        return Place(block, self.block_step[rows], wanted, self.length, self.first_mask[rows])

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

    def __call__(self, place: Place) -> Plan:
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
