"""The forwards of a batch: what the next one computes, and how the host stays ahead of the device.

Some facts are known to the device alone: whether a block is filled, whether a stop rule has ended a row. To learn them
the host must wait for the forward (a host sync), and the device is idle until the host has launched the next one. Most
steps need no sync: a selector with a schedule says how many steps a block takes at least. The host counts those steps
down and syncs when one of these facts can have changed::

    open blocks -> count down -> sync -> count down      no block was filled
         ^                        |
         +------------------------+                      a block was filled, or rows came or went

A single row with a stop rule would sync at every step. On a CUDA device its next forward is launched before the sync,
so that the device works while the host waits. If the stop rule then ends the row, that one forward is discarded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..pieces.cache import NoCache, Place, Plan, Span
from ..support.arrays import Ints
from ..support.transfer import upload
from .lane import Lane
from .rows import Rows, Window


class LookAhead:
    """Steps until the host must sync, and the forward that was launched before a sync. Counts are the batch's."""

    def __init__(self, device: torch.device) -> None:
        self.is_async = device.type == "cuda"
        """Whether the device works while the host waits: only then is a forward launched before a sync."""
        self.must_open_blocks = True
        """Whether the next step begins with opening blocks: rows came or went, or a block was filled."""
        self.since_sync = 0
        """Steps that the rows' own counts do not have yet."""
        self._until_filled = 0
        """The least number of steps until a block can be filled. A stop rule alone can end a row sooner."""
        self._until_sync = 0
        self._logits: Tensor | None = None
        """Of the next step, where its forward was launched before the last sync."""

    def interrupt(self) -> None:
        """Rows came or went, or a block was filled: the next step opens blocks first."""
        self.must_open_blocks = True

    def reopen(self, rows: Rows, lanes: Sequence[Lane]) -> None:
        """Blocks have been opened: what was launched before is void, and the counts restart."""
        self.must_open_blocks, self._logits = False, None
        self.restart(rows, lanes)

    def restart(self, rows: Rows, lanes: Sequence[Lane]) -> None:
        """Restart the counts after a sync.

        The host also syncs once after a block's first step, where bad logits show, and after every step where a stop
        rule may end a row or a cache policy follows the masks.
        """
        unfinished = ~rows.finished
        steps, sync_after_next = np.zeros_like(rows.block), rows.block_step == 0
        for lane in lanes:
            policy, here = lane.sampler.policy, lane.members
            moves = policy.blocks.sees_beliefs or policy.blocks.slides or lane.sampler.cache.follows_masks
            if not (lane.revises or moves):
                masked, shares = rows.of_block(rows.masked)[here], rows.of_block(rows.shares)[here]
                fewest = policy.select.min_steps(masked, shares)
                if lane.draft_steps is not None:
                    fewest = lane.draft_steps.min_forwards(fewest)
                steps[here] = fewest - rows.block_step[here]
            sync_after_next[here] |= policy.stop.stops
        self._until_filled, self._until_sync = (
            int(count[unfinished].min()) if unfinished.any() else 0
            for count in (steps, np.where(sync_after_next, np.minimum(steps, 1), steps))
        )

    def count_step(self) -> bool:
        """Count a step. Returns whether the host must sync after it."""
        self.since_sync += 1
        self._until_filled -= 1
        self._until_sync -= 1
        return self._until_sync <= 0

    def take_count(self) -> int:
        """The steps since the last sync, for the rows' own counts. The count restarts at 0."""
        since, self.since_sync = self.since_sync, 0
        return since

    def is_worthwhile(self, rows: int) -> bool:
        """Whether to launch the next forward before a sync. Of several rows one ends often, which would waste it."""
        return self.is_async and rows == 1 and self._until_filled > 0

    def keep_logits(self, logits: Tensor) -> None:
        """The next step's forward has been launched; these are its logits."""
        self._logits = logits

    def take_logits(self) -> Tensor | None:
        """The logits of a forward that was launched before the last sync, once."""
        logits, self._logits = self._logits, None
        return logits

    def latest(self, logits: Tensor) -> Tensor:
        """The logits that are still valid: those of the next step where its forward has been launched, else these."""
        return logits if self._logits is None else self._logits


class Planner:
    """Asks the rows' cache policies for a plan, and keeps it while it does not change."""

    def __init__(self) -> None:
        self.current: Plan | None = None
        self.computed: Tensor | None = None
        """Which columns of the open blocks the plan computes, `[B, W]`; None where it computes them all."""
        self._lanes: Sequence[Lane] = ()
        self._uses_cache = False
        self._history: list[tuple[int, Ints, Span]] = []
        """The batch's clock, the rows' ids and the window in row positions, at each change of the plan."""

    def regroup(self, rows: Rows, lanes: Sequence[Lane], valid: Tensor) -> None:
        """Rows came or went."""
        self._lanes = lanes
        self._uses_cache = any(not isinstance(lane.spec.cache, NoCache) for lane in lanes)
        seen = valid.cpu().numpy()
        self._first, self._lengths = np.argmax(seen, 1), seen.sum(1)
        here = set(rows.ids.tolist())
        self._history = [entry for entry in self._history if not here.isdisjoint(entry[1].tolist())]

    def changes(self, block_step: Ints) -> bool:
        """Whether a cache policy asks for another plan at this step; the blocks are the same."""
        return self._uses_cache and any(
            lane.sampler.cache.follows_masks or lane.sampler.cache.changes(block_step) for lane in self._lanes
        )

    def make(self, place: Place, rows: Rows, window: Window, clock: int) -> Plan:
        """Ask for a new plan; each row follows its own cache policy."""
        plans = [lane.sampler.cache(place) for lane in self._lanes]

        def mix(spans: Sequence[Span]) -> Span:
            starts, stops = np.stack([span.start for span in spans]), np.stack([span.stop for span in spans])
            return Span(starts[rows.lane, rows.index], stops[rows.lane, rows.index])

        spans = zip(*((plan.window, plan.wanted, plan.store, plan.reuse) for plan in plans), strict=True)
        if len(plans) == 1:
            self.current = plan = plans[0]
        else:
            recomputed, wanted, store, reuse = map(mix, spans)
            self.current = plan = Plan(recomputed, wanted, store, reuse, any(plan.slides for plan in plans))
        self.computed = _computed(plan, place, window)
        self._history.append((clock, rows.ids, self._in_row_positions(plan.window)))
        return plan

    def _in_row_positions(self, span: Span) -> Span:
        """A span of columns as positions of each row, which count from its first valid token."""
        first, length = self._first, self._lengths
        return Span(np.clip(span.start - first, 0, length), np.clip(span.stop - first, 0, length))

    def recomputed(self, ids: Ints, joined_at_step: Ints, forwards: int) -> Ints:
        """The positions that each of these rows' forwards recomputed, `[N, 2, T]`."""
        found = np.zeros((len(ids), 2, forwards), dtype=np.int64)
        for clock, present, window in self._history:
            for row, at in zip(*(index.tolist() for index in np.nonzero(present[:, None] == ids)), strict=True):
                since = max(clock - int(joined_at_step[at]), 0)
                found[at, 0, since:], found[at, 1, since:] = window.start[row], window.stop[row]
        return found


def _computed(plan: Plan, place: Place, window: Window) -> Tensor | None:
    """Which columns of the window a plan computes, `[B, W]`; None where it computes the open blocks whole."""
    start, stop = plan.window.start, plan.window.stop
    if bool(((start <= place.block.start) & (stop >= place.block.stop)).all()):
        return None
    columns = place.wanted.start[:, None] + np.arange(window.width)
    return upload((columns >= start[:, None]) & (columns < stop[:, None]), window.offsets.device)
