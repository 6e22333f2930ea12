"""The state of a batch: rows that may differ in sampler, block, length and seed, on one canvas.

What changes at every step lives in tensors on the device; what changes when a block opens or a row joins lives in small
arrays on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..canvas import Canvas
from ..denoiser import Denoiser, Facts, Session
from ..errors import require, shown
from ..noise import PhiloxNoise
from ..pieces.cache import Place, Plan, Span
from ..pieces.policy import Sampler
from ..pieces.propose import Adjust
from ..support.arrays import Ints
from ..support.threads import threads_for
from ..support.transfer import upload
from ..trace.row_record import RowRecord
from ..view import Count
from .constraints import Constraints, RowConstraints, each_constraint
from .forwards import LookAhead, Planner
from .lanes.lane import Lane, add_lanes, plan_rows
from .record import BatchRecord, HostRows
from .requests import (
    NoiseSource,
    Observe,
    Samplers,
    Seeds,
    check_options,
    each_count,
    each_sampler,
    each_seed,
    require_logits,
)
from .rows import FAR, ROOM_TO_SLIDE, Batch, OpenBlocks, Rows


@dataclass(frozen=True)
class Overwritten:
    """What stood where a step writes, until a sync has found that the constraints accept it."""

    span: Tensor
    commit_step: Tensor
    edges: tuple[Tensor | None, Tensor | None]

    @classmethod
    def of(cls, state: State) -> Overwritten:
        blocks = state.blocks
        return cls(state.batch.generated.clone(), state.record.commit_step.clone(), (blocks.edges, blocks.before))

    def restore(self, state: State) -> None:
        state.batch.generated.copy_(self.span)
        state.record.commit_step.copy_(self.commit_step)
        state.blocks.edges, state.blocks.before = self.edges


@dataclass(frozen=True)
class Synced:
    """What a sync brings back, `[B]` each; flags are 0 or 1."""

    first_mask: Ints
    """The offset of the open block's first mask; `FAR` where it has none."""
    changed: Ints
    """Whether anything was written or erased."""
    pending: Ints
    """Whether the block must stay open although it is full."""
    done: Ints
    """Whether the stop rule has left no mask at all."""
    is_nan: Ints | None = None
    """Whether an eligible belief is NaN; after a block's first step."""
    block_stop: Ints | None = None
    """The offset at which the open block ends, where this step has decided it. So for the next two."""
    masks_behind: Ints | None = None
    next_mask: Ints | None = None
    """How many masks are behind the block, and the offset of the first of them."""
    window_stop: Ints | None = None
    """The offset at which the window of a row stops that slides. The `first_mask` of such a row is that of the span."""
    masks_left: Ints | None = None
    """The masks of the span, where a cache policy follows the masks."""

    @property
    def filled(self) -> NDArray[np.bool_]:
        """Whether the open block has no mask left."""
        return np.equal(self.first_mask, FAR)


class State:
    """Rows in decoding. Add rows, `advance` it step by step, drop the rows that have finished."""

    session: Session
    batch: Batch
    """Both are made when the first rows join."""
    blocks: OpenBlocks
    """Made by :meth:`open_blocks`."""

    def __init__(
        self,
        denoiser: Denoiser,
        *,
        observe: Observe = "open",
        drafts: bool = False,
        noise: NoiseSource = PhiloxNoise,
        drawn_logp: bool = False,
    ) -> None:
        """`drawn_logp` records the log probability of each token in the distribution it was drawn from."""
        check_options(observe, drafts, noise)
        self.denoiser, self.facts = denoiser, Facts.of(denoiser)
        self.observe, self.drafts, self.noise, self.drawn_logp = observe, drafts, noise, drawn_logp
        self.rows, self.lanes = Rows.none(), list[Lane]()
        self.samplers = list[Sampler]()
        """Each row's, as the caller gave it."""
        self.alternatives = list[int]()
        """The most probable tokens that are recorded of each row's tokens."""
        self.record, self.planner = BatchRecord(self.facts.device), Planner()
        self.lookahead, self.constraints = LookAhead(self.facts.device), RowConstraints(self.facts)
        self.clock = 0
        """Steps of the batch so far."""
        self.unchecked = True
        """Whether the session has not run a forward yet."""
        self.before_write: Overwritten | None = None
        """What a step overwrites that is checked once it is written; None where nothing is left to check."""
        self.any_finished = False
        """Whether a finished row is still in the batch."""
        self.all_finished = True
        """Whether every row has finished."""
        self.threads: int | None = None
        """The most threads a step uses on a CPU."""
        self._next_id = 0

    # -- rows ------------------------------------------------------------------------------------

    @torch.inference_mode()
    def add(
        self,
        canvas: Canvas,
        samplers: Samplers,
        seeds: Seeds = 0,
        constraints: Constraints = None,
        alternatives: Sequence[int] = (),
    ) -> list[int]:
        """Rows join, with a sampler, a seed and a constraint each (or one for all: row r then uses seed + r). Of each
        token, so many `alternatives` are recorded. Returns their ids."""
        is_canvas = isinstance(canvas, Canvas)
        require(is_canvas, f"a Canvas was expected, Canvas.after_prompt(...) say, not {shown(canvas)}.")
        mine, theirs = self.facts.mask_id, canvas.mask_id
        require(
            mine == theirs,
            f"the canvas was made with mask_id={theirs}, but the model's mask id is {mine}: make it with the model's.",
        )
        canvas.check(self.facts.vocab_size)
        count = canvas.rows
        each, numbers = each_sampler(samplers, count), each_seed(seeds, count)
        given, wanted = each_constraint(constraints, count), each_count(alternatives, each, self.facts)
        require_logits(
            canvas,
            each,
            self.facts,
            self.observe == "span",
            edited=any(given) or any(one.adjust != Adjust() for one in each),
        )
        completions = self.constraints.bind(canvas, each, given)
        self.lanes, lanes = add_lanes(self.lanes, each, self.facts, self.observe == "span")
        ids = np.arange(self._next_id, self._next_id + count)
        self._next_id += count
        self.record.flush()
        self.flush_step_counts()
        rows = plan_rows(canvas, self.lanes, lanes, ids, self.clock, self.facts)
        if not len(self.rows):
            self.constraints = RowConstraints(self.facts)
        self.constraints.add(canvas, given, completions)
        seeded = torch.tensor([[n] for n in numbers], device=self.facts.device)
        self._add_to_batch(canvas.to(self.facts.device), seeded, max(wanted))
        self.samplers = [*self.samplers, *each] if len(self.rows) else each
        self.alternatives = [*self.alternatives, *wanted] if len(self.rows) else wanted
        self.rows = self.rows.join(rows) if len(self.rows) else rows
        self._regroup()
        return [int(i) for i in ids]

    def _add_to_batch(self, canvas: Canvas, seeds: Tensor, alternatives: int) -> None:
        """Add the canvas to the batch; the first one opens a session."""
        if len(self.rows):
            self.session.add(canvas.rows, *self.batch.add(canvas, seeds))
        else:
            self.batch = Batch(canvas, seeds)
            self.session, self.unchecked = self.denoiser.open(*canvas.tokens.shape), True
            self.record = BatchRecord(self.facts.device)
        masked = self.batch.generated[-canvas.rows :] == self.facts.mask_id
        self.record.add(masked, self._max_terms, alternatives)

    @torch.inference_mode()
    def keep(self, rows: Ints) -> None:
        """Only these rows (indices, not ids) stay. The last of them take the places of those that leave, so that few
        rows of a KV cache move."""
        staying = np.zeros(len(self.rows), dtype=bool)
        staying[rows] = True
        rows = np.arange(len(rows))
        rows[~staying[: len(rows)]] = len(rows) + np.flatnonzero(staying[len(rows) :])
        self.record.flush()
        self.flush_step_counts()
        index = upload(rows, self.facts.device)
        self.batch.keep(index)
        self.record.keep(rows.tolist())
        self.session.keep(index)
        self.rows, self.samplers = self.rows.take(rows), [self.samplers[row] for row in rows.tolist()]
        self.alternatives = [self.alternatives[row] for row in rows.tolist()]
        self.constraints.keep(rows.tolist())
        self._regroup()

    @torch.inference_mode()
    def trim(self, least: float = 0.0) -> None:
        """Drop the columns that are padding in every row, where they are at least this share of the canvas."""
        seen = self.batch.valid.any(0).cpu().numpy()
        left, right = int(seen.argmax()), int(seen[::-1].argmax())
        if not left + right or left + right < least * len(seen):
            return
        self.record.flush()
        self.flush_step_counts()
        self.batch.crop(left, right)
        self.record.crop(right)
        self.session.add(0, -left, -right)
        self._regroup()

    def read(self, row: int) -> RowRecord:
        """All that is known of a row: its tokens, its sampler and what was recorded of it."""
        return self.read_rows(np.array([row])).record(0)

    def read_rows(self, rows: Ints) -> HostRows:
        """The same of several rows; they are copied to the host together."""
        index = upload(rows, self.facts.device)
        record, tokens = self.record.on_host(rows.tolist()), self.batch.tokens[index].cpu()
        steps = int(record.steps.max())
        window = self.planner.recomputed(self.rows.ids[rows], self.rows.joined_at_step[rows], steps)
        samplers = [self.samplers[row] for row in rows.tolist()]
        constraints = [self.constraints.given[row] for row in rows.tolist()]
        alternatives = [self.alternatives[row] for row in rows.tolist()]
        seeds = self.batch.seeds[index, 0].tolist()
        return HostRows(record, tokens, samplers, constraints, seeds, window, alternatives)

    def _regroup(self) -> None:
        """Rows came or went: sort them into lanes again, and drop lanes without rows."""
        used, self.rows.lane = np.unique(self.rows.lane, return_inverse=True)
        self.lanes = [self.lanes[number] for number in used]
        self.any_finished, self.all_finished = bool(self.rows.finished.any()), bool(self.rows.finished.all())
        revises = np.array([lane.revises for lane in self.lanes], dtype=bool)
        self.revising, self.revises = revises[self.rows.lane], bool(revises.any())
        self.earliest_join = int(min(self.rows.joined_at_step, default=self.clock))
        self.deadline = int(min(self.rows.joined_at_step + self.rows.limit, default=self.clock))
        self.planner.regroup(self.rows, self.lanes, self.batch.valid, self.facts)
        for number, lane in enumerate(self.lanes):
            members = np.flatnonzero(self.rows.lane == number)
            lane.follow(members, self.samplers, self.rows, self.batch, self.denoiser)
        rows, columns = self.batch.tokens.shape
        tokens = columns if self.denoiser.computes_in_parts else rows * columns
        self.threads = threads_for(self.facts.device, self.facts.parameters, tokens)
        self.lookahead.interrupt()

    @property
    def checks_late(self) -> bool:
        """Whether constraints are checked after a step is written, by what the sync brings back. Where something else
        in the step depends on what is written, they are checked before."""
        early = any(lane.revises or lane.memory is not None or lane.draft_steps is not None for lane in self.lanes)
        return self.constraints.any and not early

    @property
    def _sees_span(self) -> bool:
        """Whether the window is the whole span: on request, or because a stop rule needs it."""
        return self.observe == "span" or any(lane.sampler.policy.stop.sees_beliefs for lane in self.lanes)

    @property
    def _remembers(self) -> bool:
        """Whether pieces remember something of columns, and so must not see more of them beside other rows."""
        return any(lane.memory is not None for lane in self.lanes)

    @property
    def _max_terms(self) -> int:
        return max(len(lane.spec.policy.score.terms) for lane in self.lanes)

    # -- steps -----------------------------------------------------------------------------------

    def open_blocks(self) -> None:
        """Rows without an open block open the next that has masks; then fix the window until a block is filled.

        Nothing happens where all have one."""
        if not self.lookahead.must_open_blocks:
            return
        self.record.flush()
        self.flush_step_counts()
        self.rows.open_next(self.facts.block_length)
        given = self.batch.given[:, self.batch.start :]
        self.blocks = OpenBlocks(self.rows, self.batch.generated, given, self._sees_span)
        self.record.set_window(self.blocks.window, self._max_terms, max(self.alternatives))
        self._lay_out_memory()
        self.lookahead.reopen(self.rows, self.lanes, self.blocks.window)
        self.planner.current = None

    def _lay_out_memory(self) -> None:
        """What pieces remember follows its rows into the new window."""
        for lane in self.lanes:
            if lane.memory is not None:
                rows, window = lane.members, self.blocks.window
                blocks = Span(self.rows.starts[rows], self.rows.stops[rows])
                opens = self.rows.block_step[rows] == 0
                lane.memory.lay_out(self.rows.ids[rows], blocks, window.start[rows], window.width, opens)

    def record_probes(self) -> None:
        """Record the probes of a step."""
        for lane in self.lanes:
            if lane.probes is not None:
                for row, count in zip(lane.members.tolist(), lane.probes.counts.tolist(), strict=True):
                    if not self.rows.finished[row]:
                        self.record.probes[row].append(count)

    @property
    def block_step(self) -> Count:
        """Steps since the rows' blocks opened."""
        return self.blocks.age + self.lookahead.since_sync

    def flush_step_counts(self) -> None:
        """Add the steps since the last sync to the rows' own counts; between two syncs one counter serves all rows."""
        since = self.lookahead.take_count()
        if since:
            self.rows.block_step += since
            self.blocks.age = self.blocks.age + since

    def apply(self, found: Synced) -> tuple[int, ...]:
        """Apply what a sync found. Returns the ids of the rows that finish."""
        rows, filled, moves, has_room = self.rows, found.filled, False, True
        if found.block_stop is not None and found.masks_behind is not None and found.next_mask is not None:
            moves = bool(rows.end_blocks(found.block_stop, found.masks_behind, found.next_mask).any())
        if found.masks_left is not None and self.planner.current is not None:
            rows.follow_cache(self.planner.current.reuse, self.batch.start, found.masks_left)
        if found.window_stop is not None:
            slid = rows.slide(np.where(filled, rows.first_mask, found.first_mask), found.window_stop)
            moves |= slid and (self._remembers or not self.blocks.have_room(rows))
            if self.planner.slides_on_device:
                has_room = self.blocks.have_room(rows, np.minimum(rows.committed + 8, ROOM_TO_SLIDE // 2))
        rows.first_mask = np.where(filled, rows.first_mask, found.first_mask)
        closed = filled & (found.pending == 0) & ~rows.finished
        over = closed & (~rows.remaining_blocks.any(1) | (found.done > 0))
        rows.block_step[closed & ~over] = -1
        rows.finished |= over
        self.any_finished, self.all_finished = bool(rows.finished.any()), bool(rows.finished.all())
        self.lookahead.restart(rows, self.lanes)
        has_closed = bool(closed.any())
        if moves or has_closed:
            self.lookahead.interrupt()
        elif not has_room:
            self.lookahead.lay_out_again()
        if has_closed:
            self.batch.unfinished = upload((~rows.finished).astype(np.int64), self.facts.device)[:, None]
        return tuple(rows.ids[over].tolist())

    def plan_ahead(self) -> Plan | None:
        """The plan of the next step's forward, if it is to be launched before a sync."""
        if not self.lookahead.is_worthwhile(len(self.rows)):
            return None
        if self.constraints.any and not (self.checks_late and self.constraints.accepts_mostly):
            return None
        if self.planner.slides_on_device:
            return None if self.constraints.any else self.planner.ahead(self.rows, self.blocks, self.batch.start)
        return None if self._plan_changes() else self.plan()

    def plan(self) -> Plan:
        """What this step's forward recomputes, per row as its cache policy says; kept while it does not change."""
        if self.planner.current is None or self._plan_changes():
            self.flush_step_counts()
            return self.planner.make(self.place(), self.rows, self.blocks, self.clock)
        return self.planner.current

    def place(self) -> Place:
        """What cache policies read of the rows."""
        rows, start, length = self.rows, self.batch.start, self.batch.tokens.shape[1]
        own = (
            Span(rows.starts, rows.stops)
            if self.facts.block_length is None
            else rows.model_blocks(self.facts.block_length)
        )
        block = Span(own.start + start, own.stop + start)
        return Place(
            block=block,
            block_step=rows.block_step,
            wanted=self.blocks.window.columns(start),
            length=length,
            first_mask=rows.first_mask + start,
            first_mask_before=rows.first_mask_before + start,
            stop_before=rows.stop_before + start,
            since_refresh=rows.since_refresh,
            since_prompt=rows.since_prompt,
            start=start,
            settled=rows.settled + start,
        )

    def _plan_changes(self) -> bool:
        return self.planner.changes(self.rows.block_step + self.lookahead.since_sync)
