"""The rows of a batch: their tokens on the device, their blocks on the host, and the window over their open blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..canvas import Canvas
from ..denoiser import Layout
from ..pieces.blocks import BlockSchedule
from ..pieces.cache import NEVER, Span
from ..pieces.policy import Sampler
from ..support.arrays import Ints
from ..support.transfer import upload
from ..view import Count, View

FAR = 2**62
"""An offset behind every span."""
ROOM_TO_SLIDE = 32
"""At least so many columns are laid out beside a window that slides, and a multiple of it in all. So the host lays
them out again after about as many tokens, and a GPU replays few graphs."""


def room_for(width: int) -> int:
    """The columns that are laid out for a window that slides and is so wide now."""
    return (-(-width // ROOM_TO_SLIDE) + 1) * ROOM_TO_SLIDE


class Batch:
    """Rows on one canvas `[B, L]`; the generated span starts at the same column for all."""

    def __init__(self, canvas: Canvas, seeds: Tensor) -> None:
        self.tokens, self.valid, self.given = canvas.tokens.clone(), canvas.valid.clone(), canvas.given
        self.seeds, self.unfinished, self.start = seeds, _ones(seeds), canvas.start
        """`unfinished` `[B, 1]` is 1 for rows that are still decoded and 0 for rows that have finished."""
        self.layout = Layout(self.valid, self.given)

    @property
    def span(self) -> int:
        """Columns of the generated span."""
        return int(self.tokens.shape[1]) - self.start

    @property
    def generated(self) -> Tensor:
        """The generated span, `[B, S]`; a view."""
        return self.tokens[:, self.start :]

    def add(self, canvas: Canvas, seeds: Tensor) -> tuple[int, int]:
        """Rows join; all grow to the wider prompt and the longer span. Returns by how many columns the old rows grow,
        left and right."""
        left, right = canvas.start - self.start, canvas.span - self.span
        filler = int(canvas.mask_id == 0)  # any token but the mask
        pairs = (
            (self.tokens, canvas.tokens, filler),
            (self.valid, canvas.valid, False),
            (self.given, canvas.given, True),
        )
        self.tokens, self.valid, self.given = (
            torch.cat([_widen(old, left, right, fill), _widen(new, -left, -right, fill)]) for old, new, fill in pairs
        )
        self.seeds, self.unfinished = torch.cat([self.seeds, seeds]), torch.cat([self.unfinished, _ones(seeds)])
        self.start = max(self.start, canvas.start)
        self.layout = Layout(self.valid, self.given, self.layout.version + 1)
        return max(left, 0), max(right, 0)

    def crop(self, left: int, right: int) -> None:
        """Drop columns that are padding in every row."""
        kept = slice(left, self.tokens.shape[1] - right)
        self.tokens, self.valid, self.given = (t[:, kept].clone() for t in (self.tokens, self.valid, self.given))
        self.start -= left
        self.layout = Layout(self.valid, self.given, self.layout.version + 1)

    def keep(self, rows: Tensor) -> None:
        """Only these rows stay, in this order."""
        self.tokens, self.valid, self.given = self.tokens[rows], self.valid[rows], self.given[rows]
        self.seeds, self.unfinished = self.seeds[rows], self.unfinished[rows]
        self.layout = Layout(self.valid, self.given, self.layout.version + 1)


def _ones(seeds: Tensor) -> Tensor:
    return torch.ones(len(seeds), 1, dtype=torch.int64, device=seeds.device)


def _widen(tensor: Tensor, left: int, right: int, fill: float) -> Tensor:
    return torch.nn.functional.pad(tensor, (max(left, 0), max(right, 0)), value=fill)


@dataclass
class Rows:
    """What the host knows of each row: one entry per row, `[B]`; or `[B, blocks]` for what is known of each block."""

    ids: Ints
    lane: Ints
    ends: Ints
    """Offsets at which the blocks end."""
    masked: Ints
    """Masks in each block."""
    first_masks: Ints
    """The offset of each block's first mask as the row joined; the span's width where it has none."""
    shares: Ints
    """Each block's share of the steps; 0 where there is no schedule."""
    block: Ints
    """The open block; -1 before the first."""
    block_step: Ints
    """Steps since it opened; -1 when it has been filled."""
    first_mask: Ints
    """The offset of its first mask, as of the last sync."""
    joined_at_step: Ints
    """The batch's forwards before the row joined."""
    limit: Ints
    grows: NDArray[np.bool_]
    """Whether the open block starts at the first offset; see :class:`BlockSchedule`."""
    widest: Ints
    """The most columns of a block that ends where beliefs say; 0 where all blocks are known from the start.

    Such a row has four blocks: what is done, the open block, given tokens behind it, and the rest. When the next block
    opens, it is cut from the rest.
    """
    slides: NDArray[np.bool_]
    """Whether the open block is a window that moves at every sync; see :class:`BlockSchedule`."""
    window_stop: Ints
    """The offset at which that window stops; it starts at the first mask."""
    masks_left: Ints
    """Masks of the span as of the last sync. So for the next three, where a cache policy follows the masks."""
    first_mask_before: Ints
    """The first mask at the last forward."""
    stop_before: Ints
    """Where the open block ended then."""
    since_refresh: Ints
    since_prompt: Ints
    """Tokens committed since the last forward that reused no key of the span, and since the last that reused none."""
    committed: Ints
    """Tokens committed by the last step."""
    lead: Ints
    """Of a block-causal model: how many tokens before the span the block starts in which the span does."""
    settled: Ints
    """Of a block-causal model: the offset at which its last block started, before which all stored keys are final."""
    finished: NDArray[np.bool_]

    @classmethod
    def plan(cls, sampler: Sampler, masked: NDArray[np.bool_], lengths: Ints, lead: Ints, clock: int) -> Rows:
        """The rows of one sampler as they join: blocks, masks and steps follow from where the masks are, `[B, S]`.

        Blocks count from `lead` tokens before the span."""
        before, blocks = np.pad(masked.cumsum(1), ((0, 0), (1, 0))), sampler.policy.blocks
        zeros = np.zeros_like(lengths)
        first = np.argmax(masked, 1)
        ends = np.stack([zeros, zeros, first, lengths], 1) if blocks.sees_beliefs else _ends(blocks, lengths, lead)
        counts = np.diff(np.take_along_axis(before, ends, 1), prepend=0)
        offsets = np.where(masked, np.arange(masked.shape[1]), masked.shape[1])
        offsets = np.pad(offsets, ((0, 0), (0, 1)), constant_values=masked.shape[1])
        following = np.minimum.accumulate(offsets[:, ::-1], 1)[:, ::-1]
        stop = blocks.window(torch.from_numpy(masked))[1][:, 0].numpy() if blocks.slides else zeros
        return cls(
            ids=zeros,
            lane=zeros,
            ends=ends,
            masked=counts,
            first_masks=np.take_along_axis(following, np.pad(ends, ((0, 0), (1, 0)))[:, :-1], 1),
            shares=sampler.policy.select.shares(counts),
            block=zeros - 1,
            block_step=zeros,
            first_mask=zeros,
            joined_at_step=zeros + clock,
            limit=8 * counts.sum(1) + 64 if sampler.limit is None else zeros + sampler.limit,
            grows=(zeros == 0) & blocks.grows,
            widest=blocks.widest(lengths) if blocks.sees_beliefs else zeros,
            slides=(zeros == 0) & blocks.slides,
            window_stop=np.minimum(stop, lengths),
            masks_left=counts.sum(1),
            first_mask_before=first,
            stop_before=zeros,
            since_refresh=zeros + NEVER,
            since_prompt=zeros + NEVER,
            committed=zeros,
            lead=lead,
            settled=zeros - FAR,
            finished=zeros > 0,
        )

    @classmethod
    def none(cls) -> Rows:
        """No rows yet."""
        line, square = np.zeros(0, dtype=np.int64), np.zeros((0, 1), dtype=np.int64)
        blocks, steps, joined = (square, square, square, square), (line, line, line), (line, line, line > 0)
        cache = (line, line, line, line, line, line, line, line)
        return cls(line, line, *blocks, *steps, *joined, line, line > 0, line, *cache, line > 0)

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Ints) -> Rows:
        """Some of the rows, in this order."""
        return Rows(**{name: array[rows] for name, array in vars(self).items()})

    def join(self, other: Rows) -> Rows:
        """These rows and then the others."""
        blocks = max(self.ends.shape[1], other.ends.shape[1])

        def widened(rows: Rows) -> dict[str, NDArray[Any]]:
            more = blocks - rows.ends.shape[1]
            modes: dict[str, Literal["edge", "constant"]] = {"ends": "edge"}
            names = ("ends", "masked", "first_masks", "shares")
            wide = {n: np.pad(vars(rows)[n], ((0, 0), (0, more)), mode=modes.get(n, "constant")) for n in names}
            return vars(rows) | wide

        ours, theirs = widened(self), widened(other)
        return Rows(**{name: np.concatenate([ours[name], theirs[name]]) for name in ours})

    @property
    def index(self) -> Ints:
        return np.arange(len(self.ids))

    @property
    def starts(self) -> Ints:
        """Offsets at which the open blocks start."""
        before = self.ends[self.index, np.maximum(self.block - 1, 0)]
        return np.where(self.slides, self.first_mask, np.where((self.block > 0) & ~self.grows, before, 0))

    @property
    def stops(self) -> Ints:
        """Offsets at which the open blocks end."""
        return np.where(self.slides, self.window_stop, self.of_block(self.ends))

    @property
    def remaining_blocks(self) -> NDArray[np.bool_]:
        """Which blocks come after the open one and have masks, `[B, blocks]`."""
        return (self.masked > 0) & (np.arange(self.masked.shape[1]) > self.block[:, None])

    def of_block(self, values: Ints) -> Ints:
        """What `values` `[B, blocks]` say of each row's open block."""
        return values[self.index, self.block]

    def open_next(self, model_block: int | None = None) -> None:
        """Rows whose block has been filled, or that have none yet, open the next one that has masks."""
        waiting = ~self.finished & ((self.block_step < 0) | (self.block < 0))
        if model_block is not None:
            self.settled = np.where(waiting & (self.block >= 0), self.model_blocks(model_block).start, self.settled)
        self.block = np.where(waiting, np.argmax(self.remaining_blocks, 1), self.block)
        self.block_step = np.where(waiting, 0, self.block_step)
        self.first_mask = np.where(waiting, self.of_block(self.first_masks), self.first_mask)
        for row in np.flatnonzero(waiting & (self.widest > 0)):
            start, end, masks = self.ends[row, 2], self.ends[row, -1], self.masked[row, 3]
            stop = min(start + self.widest[row], end)
            self.ends[row, :4], self.masked[row, :4], self.block[row] = (start, stop, stop, end), (0, masks, 0, 0), 1
            self.first_mask[row] = start

    def model_blocks(self, length: int) -> Span:
        """The blocks of a block-causal model around the open ones, in offsets; the first may start before the span."""
        start = (self.starts + self.lead) // length * length - self.lead
        return Span(start, np.minimum(start + length, self.ends[:, -1]))

    def slide(self, first_mask: Ints, stop: Ints) -> bool:
        """Move the windows to the first mask of each span, up to the offset `stop`; both are `[B]`. Returns whether
        one has moved."""
        here = self.slides & ~self.finished
        stop = np.minimum(stop, self.ends[:, -1])
        moved = here & ((self.first_mask != first_mask) | (self.window_stop != stop))
        self.first_mask, self.window_stop = (
            np.where(moved, new, old) for new, old in ((first_mask, self.first_mask), (stop, self.window_stop))
        )
        return bool(moved.any())

    def follow_cache(self, reuse: Span, start: int, masks_left: Ints) -> None:
        """A forward has reused the keys of these columns; the span starts at column `start`, and so many masks are left
        of it."""
        self.committed = self.masks_left - masks_left
        self.since_refresh = np.where(reuse.stop <= start, 0, self.since_refresh) + self.committed
        self.since_prompt = np.where(reuse.stop <= reuse.start, 0, self.since_prompt) + self.committed
        self.first_mask_before, self.stop_before, self.masks_left = self.first_mask, self.stops, masks_left

    def end_blocks(self, stop: Ints, behind: Ints, following: Ints) -> NDArray[np.bool_]:
        """Set the end of each belief-delimited block after its first step, to the offset `stop`.

        `behind` counts the masks after it, `following` is the offset of the first of them. All are `[B]`. Returns
        which rows have such a block.
        """
        here: NDArray[np.bool_] = (self.widest > 0) & (self.block_step == 1) & ~self.finished
        for row in np.flatnonzero(here):
            masks, rest = self.masked[row, 1], int(behind[row])
            self.ends[row, 1:3] = stop[row], following[row] if rest else self.ends[row, -1]
            self.masked[row, 1:4] = masks - rest, 0, rest
        return here


def _ends(blocks: BlockSchedule, lengths: Ints, lead: Ints) -> Ints:
    """The ends of the blocks of a schedule that counts from `lead` tokens before the span."""
    if not lead.any():
        return blocks(lengths)
    ends: Ints = np.maximum(blocks(lengths + lead) - lead[:, None], 0)
    return ends


@dataclass(frozen=True, eq=False)
class Window:
    """Offsets `[start, start + width)` of each row's span. Rows with a common start are sliced, others gathered."""

    start: Ints
    width: int
    offsets: Tensor
    """`[1, W]` where all rows agree, else `[B, W]`."""
    places: Tensor
    """The same in float64."""
    inside: Tensor | None
    """Which of the columns lie in the row's open block; None where all do."""

    @classmethod
    def over(cls, start: Ints, width: int, block_start: Ints, block_stop: Ints, device: torch.device) -> Window:
        """The window of `width` columns from `start` on, around the open blocks."""
        first = start[:1] if (start == start[0]).all() else start
        offsets = first[:, None] + np.arange(width)
        inside = (offsets >= block_start[:, None]) & (offsets < block_stop[:, None])
        return cls(
            start,
            width,
            upload(offsets, device),
            upload(offsets.astype(np.float64), device),
            None if inside.all() else upload(inside, device),
        )

    def columns(self, origin: int) -> Span:
        """The window in columns of the canvas, whose span starts at `origin`."""
        return Span(self.start + origin, self.start + origin + self.width)

    def take_over(self, values: Tensor, other: Window) -> Tensor:
        """`values` `[B, W, ...]` of another window's columns, for the columns of this one. Those that the other does
        not have hold anything."""
        shift = (self.start - other.start)[:, None]
        index = np.clip((shift[:1] if (shift == shift[0]).all() else shift) + np.arange(self.width), 0, other.width - 1)
        where = upload(index, values.device)
        if len(index) == 1:
            return values.index_select(1, where[0])
        return values[torch.arange(len(values), device=values.device)[:, None], where]

    def restrict(self, flags: Tensor) -> Tensor:
        """`flags` `[B, W]` inside the open blocks only."""
        return flags if self.inside is None else flags & self.inside


class WindowedTensor:
    """The columns of a window `[..., B, W]` in a tensor over the generated span, `[..., B, S]`."""

    def __init__(self, window: Window, span: Tensor) -> None:
        self.whole = span
        self._view: Tensor | None = None
        if window.offsets.shape[0] == 1:
            first = int(window.start[0])
            self._view = span[..., first : first + window.width]
        else:
            self._index = window.offsets.expand(*span.shape[:-1], window.width)

    def read(self) -> Tensor:
        """The columns as they are now; a view where all rows have the same window."""
        return self._view if self._view is not None else self.whole.gather(-1, self._index)

    def write(self, where: Tensor, values: Tensor) -> None:
        """Write `values` at the columns `where`."""
        if self._view is not None:
            torch.where(where, values, self._view, out=self._view)
        else:
            self.whole.scatter_(-1, self._index, torch.where(where, values, self.read()))


class OpenBlocks:
    """The rows' open blocks: their columns, their tokens, and for how many steps they have been open."""

    def __init__(self, rows: Rows, tokens: Tensor, given: Tensor, whole_span: bool) -> None:
        """`tokens` and `given` `[B, S]` are of the generated span. The window covers the blocks, or the whole span."""
        starts, stops, span = rows.starts, rows.stops, tokens.shape[1]
        width, slides = span if whole_span else int((stops - starts).max()), bool(rows.slides.any())
        if slides:
            width = min(room_for(width), span)
        first = np.zeros_like(starts) if whole_span else np.minimum(starts, span - width)
        inside = Span(np.where(rows.slides, 0, starts), np.where(rows.slides, rows.ends[:, -1], stops))
        self.window = Window.over(first, width, inside.start, inside.stop, tokens.device)
        now, before = np.stack((starts, stops), 1), np.stack((rows.first_mask_before, rows.stop_before), 1)
        self.edges = upload(now, tokens.device) if slides else None
        """The offsets at which the open blocks start and stop, `[B, 2]`, where one is a window that slides: it moves at
        every sync, and the columns that are laid out have room for it."""
        self.before = upload(before, tokens.device) if slides else None
        """The same at the last forward; the first mask for the start."""
        self.start, self.length = _count(starts, tokens.device), _count(stops - starts, tokens.device)
        self.span_length = _count(rows.ends[:, -1], tokens.device)
        """Columns of each row's span."""
        self.masked = _count(rows.of_block(rows.masked), tokens.device)
        """Masks in each block when it opened."""
        self.steps = _count(rows.of_block(rows.shares), tokens.device)
        """Each block's share of the steps, for selectors that have a total; else 0."""
        self.age = _count(rows.block_step.copy(), tokens.device)  # a copy: the rows' own is counted up in place
        """Steps since the blocks opened, at the last sync."""
        self.tokens = WindowedTensor(self.window, tokens)
        self.writable = self.window.restrict(~WindowedTensor(self.window, given).read())
        """Positions of the blocks that are not given, `[B, W]`."""
        self.view: View | None = None
        """The first step's view. Later steps copy it, which is faster than building a frozen view of twenty fields."""

    def have_room(self, rows: Rows, more: Ints | int = 0) -> bool:
        """Whether the columns that are laid out have all windows that slide, as they are now, and so many `more`."""
        first, here = self.window.start, rows.slides & ~rows.finished
        stops = np.minimum(rows.stops + more, rows.ends[:, -1])
        return bool(((rows.starts >= first) & (stops <= first + self.window.width))[here].all())

    def slide(self, rows: Tensor | slice, start: Tensor, stop: Tensor) -> None:
        """Move the windows of some rows, on the device. The window of a row without masks stays: it may be reopened."""
        assert self.edges is not None
        end = self.span_length if isinstance(self.span_length, int) else self.span_length[rows]
        moved = torch.cat((start, stop), 1)
        moved = moved.clamp(max=end) if isinstance(end, int) else torch.minimum(moved, end)
        if isinstance(rows, slice):
            self.edges = torch.where(start < end, moved, self.edges)
        else:
            self.edges = self.edges.index_copy(0, rows, torch.where(start < end, moved, self.edges[rows]))


def _count(values: Ints, device: torch.device) -> Count:
    """A plain number where all rows agree, else `[B, 1]`."""
    if (values == values[0]).all():
        return int(values[0])
    return upload(values, device)[:, None]
