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
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ..denoiser import Facts
from ..pieces.cache import NoCache, Place, Plan, SlidingColumns, Span
from ..support.arrays import Ints
from ..support.transfer import upload
from .lanes.lane import Lane
from .rows import OpenBlocks, Rows, Window

MAX_FREE_TOKENS = 64
"""Up to so many tokens of a forward, more of them cost hardly anything beside the weights that it reads."""
WIDTH_MULTIPLE = 32
"""Windows on the device are rounded up to a multiple of so many columns: each width has its own captured graph."""
TIGHT_MULTIPLE, MAX_TIGHT_COLUMNS = 8, 64
"""The multiple for windows of at most so many columns, in forwards of many tokens."""


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
        self._may_stop = False
        """Whether a stop rule may end a row sooner."""
        self._ahead: tuple[Tensor, Plan] | None = None
        """The logits of the next step and their plan, where its forward was launched before the last sync."""
        self._window: Window | None = None

    def interrupt(self) -> None:
        """Rows came or went, or a block was filled: the next step opens blocks first. What was launched is void."""
        self.must_open_blocks, self._ahead = True, None

    def lay_out_again(self) -> None:
        """Windows slide out of the columns that are laid out: the next step opens blocks first, which all stay."""
        self.must_open_blocks = True

    def reopen(self, rows: Rows, lanes: Sequence[Lane], window: Window) -> None:
        """Blocks have been opened in this window: the counts restart. Logits that were launched before follow it."""
        if self._ahead is not None and self._window is not None:
            logits, plan = self._ahead
            self._ahead = window.take_over(logits, self._window), plan
        self.must_open_blocks, self._window = False, window
        self.restart(rows, lanes)

    def restart(self, rows: Rows, lanes: Sequence[Lane]) -> None:
        """Restart the counts after a sync.

        The host also syncs once after a block's first step, where bad logits show, and after every step where a stop
        rule may end a row, a window slides or a cache policy follows the masks.
        """
        unfinished = ~rows.finished
        self._may_stop = any(lane.sampler.policy.stop.stops for lane in lanes)
        steps, sync_after_next = np.zeros_like(rows.block), rows.block_step == 0
        for lane in lanes:
            policy, here = lane.sampler.policy, lane.members
            moves = policy.blocks.sees_beliefs or policy.blocks.slides or lane.sampler.cache.follows_masks
            slides = _slides_on_device(lane)
            if slides or not (lane.revises or moves):
                masked, shares = rows.of_block(rows.masked)[here], rows.of_block(rows.shares)[here]
                fewest = policy.select.min_steps(masked, shares)
                if lane.draft_steps is not None:
                    fewest = lane.draft_steps.min_forwards(fewest)
                steps[here] = fewest - rows.block_step[here]
                if slides:  # a step fills no mask behind its window
                    steps[here] = np.maximum(steps, 1 + (rows.window_stop < rows.ends[:, -1]))[here]
            sync_after_next[here] |= policy.stop.stops or slides
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
        """Whether to launch the next forward before a sync. Of several rows with a stop rule one ends often, which
        would waste it."""
        return self.is_async and (rows == 1 or not self._may_stop) and self._until_filled > 0

    def keep_logits(self, logits: Tensor, plan: Plan) -> None:
        """The next step's forward has been launched with this plan; these are its logits."""
        self._ahead = logits, plan

    def discard(self) -> None:
        """The canvas has changed since the next step's forward was launched."""
        self._ahead = None

    def take_logits(self, plan: Plan) -> Tensor | None:
        """The logits of a forward that was launched before the last sync, once; None where the step's plan turns out to
        ask for more than that forward has computed."""
        (logits, launched), self._ahead = self._ahead or (None, None), None
        return logits if launched is plan or (launched and _covers(launched, plan)) else None

    def latest(self, logits: Tensor) -> Tensor:
        """The logits that are still valid: those of the next step where its forward has been launched, else these."""
        return logits if self._ahead is None else self._ahead[0]


def _covers(launched: Plan, plan: Plan) -> bool:
    """Whether a forward that was launched over windows on the device has computed all that a later plan asks for."""
    has_slid = launched.columns is not None and plan.slides is not None and bool(plan.slides.all())
    return has_slid and launched.columns is not None and plan.window.width <= launched.columns.width


class Planner:
    """Asks the rows' cache policies for a plan, and keeps it while it does not change."""

    def __init__(self) -> None:
        self.current: Plan | None = None
        self.computed: Tensor | None = None
        """Which columns of the open blocks the plan computes, `[B, W]`; None where it computes them all."""
        self.slides_on_device = False
        """Whether all rows have windows that the session reads from the device."""
        self._lanes: Sequence[Lane] = ()
        self._uses_cache = False
        self._width = 0
        """Columns that forwards over such windows compute of each row."""
        self._wanted: tuple[OpenBlocks, Tensor] | None = None
        self._history: list[tuple[int, Ints, Span]] = []
        """The batch's clock, the rows' ids and the window in row positions, at each change of the plan."""

    def regroup(self, rows: Rows, lanes: Sequence[Lane], valid: Tensor, facts: Facts) -> None:
        """Rows came or went."""
        self._lanes = lanes
        self.slides_on_device = facts.slides_on_device and all(map(_slides_on_device, lanes))
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

    def make(self, place: Place, rows: Rows, blocks: OpenBlocks, clock: int) -> Plan:
        """Ask for a new plan; each row follows its own cache policy."""
        plans = [lane.sampler.cache(place) for lane in self._lanes]

        def mix(spans: Sequence[Span]) -> Span:
            starts, stops = np.stack([span.start for span in spans]), np.stack([span.stop for span in spans])
            return Span(starts[rows.lane, rows.index], stops[rows.lane, rows.index])

        spans = zip(*((plan.window, plan.wanted, plan.store, plan.reuse) for plan in plans), strict=True)
        if len(plans) == 1:
            plan = plans[0]
        else:
            none = np.zeros(len(rows), dtype=bool)
            slides = np.stack([none if plan.slides is None else plan.slides for plan in plans])[rows.lane, rows.index]
            recomputed, wanted, store, reuse = map(mix, spans)
            plan = Plan(recomputed, wanted, store, reuse, slides if slides.any() else None)
        plan = replace(plan, block=place.block)
        self.computed = _computed(plan, place, blocks.window)
        self._history.append((clock, rows.ids, self._in_row_positions(plan.window)))
        if self.slides_on_device and plan.slides is not None and plan.slides.any():
            self._set_width(plan.window.take(np.flatnonzero(plan.slides)), place.length)
        self.current = plan
        return plan

    # -- windows on the device -------------------------------------------------------------------

    def located(self, plan: Plan, blocks: OpenBlocks, start: int) -> Plan:
        """The plan with its windows as the device knows them, for a forward that was not launched ahead."""
        slides = self.slides_on_device and plan.slides is not None and bool(plan.slides.any())
        return replace(plan, columns=self._columns(blocks, start)) if slides and plan.columns is None else plan

    def ahead(self, rows: Rows, blocks: OpenBlocks, start: int) -> Plan | None:
        """The next plan, before the host knows where its windows are; None where rows will refresh as it seems."""
        plan = self.current
        if plan is None or plan.slides is None or not self._width:
            return None
        since = np.where(plan.slides, rows.since_refresh, 0) + rows.committed
        if any(lane.sampler.cache.is_due(since[lane.members]).any() for lane in self._lanes):
            return None
        return replace(plan, slides=np.ones_like(plan.slides), columns=self._columns(blocks, start))

    def _set_width(self, window: Span, length: int) -> None:
        """Choose the columns that are computed: what is needed now, rounded up. A width that is one multiple larger is
        kept: windows often grow again. So is any larger one at the end of the canvas, where windows shrink."""
        rows, needed = len(window.start), window.width
        is_tight = rows * needed > MAX_FREE_TOKENS and needed <= MAX_TIGHT_COLUMNS
        multiple = TIGHT_MULTIPLE if is_tight else WIDTH_MULTIPLE
        width = -(-needed // multiple) * multiple
        most = length if (window.stop == length).all() else width + multiple
        if not width <= self._width <= most:
            self._width = width

    def _columns(self, blocks: OpenBlocks, start: int) -> SlidingColumns:
        """Where the windows are now, on the device; the span starts at column `start`."""
        assert blocks.edges is not None and blocks.before is not None
        if self._wanted is None or self._wanted[0] is not blocks:
            offsets = blocks.window.offsets.expand(len(blocks.edges), -1)  # one shape, whether rows agree or not
            self._wanted = blocks, offsets + start
        edges = (torch.cat((blocks.edges, blocks.before), 1) + start).T
        found = torch.empty_like(blocks.edges)
        for lane in self._lanes:
            if lane.rows is None:
                found = lane.sampler.cache.window(*edges)
            else:
                found[lane.rows] = lane.sampler.cache.window(*edges[:, lane.rows])
        return SlidingColumns(found, self._wanted[1], self._width)

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


def _slides_on_device(lane: Lane) -> bool:
    """Whether the rows of a lane have windows whose place follows from the masks alone. Where a remasker reopens
    columns or pieces remember them, the host has to know each move."""
    sampler = lane.sampler
    knows = sampler.policy.blocks.slides and sampler.cache.slides_on_device
    return knows and not lane.revises and lane.memory is None


def _computed(plan: Plan, place: Place, window: Window) -> Tensor | None:
    """Which columns of the window a plan computes, `[B, W]`; None where it computes the open blocks whole."""
    start, stop = plan.window.start, plan.window.stop
    if bool(((start <= place.block.start) & (stop >= place.block.stop)).all()):
        return None
    columns = place.wanted.start[:, None] + np.arange(window.width)
    return upload((columns >= start[:, None]) & (columns < stop[:, None]), window.offsets.device)
