"""The state of a batch: rows that may differ in sampler, block, length and seed, on one canvas.

What changes at every step lives in tensors on the device; what changes when a block opens or a row joins lives in small
arrays on the host.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..canvas import Canvas
from ..denoiser import Denoiser, Facts, Session
from ..errors import require, shown
from ..noise import PhiloxNoise
from ..pieces.cache import Place, Plan, Span
from ..pieces.policy import Sampler
from ..support.arrays import Ints
from ..support.threads import threads_for
from ..support.transfer import upload
from ..trace.row_record import RowRecord
from ..view import Count
from .batch import Batch
from .lanes.decide import Lane
from .lanes.join import add_lanes, plan_rows
from .lookahead import LookAhead
from .planner import Planner
from .record import BatchRecord, HostRows
from .requests import NoiseSource, Observe, Samplers, Seeds, check_options, each_sampler, each_seed, require_logits
from .rows import Rows
from .window import OpenBlocks


class State:
    """Rows in decoding. Add rows, `advance` it step by step, drop the rows that have finished."""

    session: Session
    batch: Batch
    """Both are made when the first rows join."""
    blocks: OpenBlocks
    """Made by :meth:`open_blocks`."""

    def __init__(
        self, denoiser: Denoiser, *, observe: Observe = "open", drafts: bool = False, noise: NoiseSource = PhiloxNoise
    ) -> None:
        check_options(observe, drafts, noise)
        self.denoiser, self.facts = denoiser, Facts.of(denoiser)
        self.observe, self.drafts, self.noise = observe, drafts, noise
        self.rows, self.lanes = Rows.none(), list[Lane]()
        self.record, self.planner = BatchRecord(self.facts.device), Planner()
        self.lookahead = LookAhead(self.facts.device)
        self.clock = 0
        """Steps of the batch so far."""
        self.unchecked = True
        """Whether the session has not run a forward yet."""
        self.any_finished = False
        """Whether a finished row is still in the batch."""
        self.all_finished = True
        """Whether every row has finished."""
        self.threads: int | None = None
        """The most threads a step uses on a CPU."""
        self._next_id = 0

    # -- rows ------------------------------------------------------------------------------------

    @torch.inference_mode()
    def add(self, canvas: Canvas, samplers: Samplers, seeds: Seeds = 0) -> list[int]:
        """Rows join, with a sampler and a seed each (or one for all: row r then uses seed + r). Returns their ids."""
        require(
            isinstance(canvas, Canvas),
            f"a Canvas was expected, Canvas.after_prompt(...) say, not {shown(canvas)}.",
        )
        mine, theirs = self.facts.mask_id, canvas.mask_id
        require(
            mine == theirs,
            f"the canvas was made with mask_id={theirs}, but the model's mask id is {mine}: make it with the model's.",
        )
        canvas.check(self.facts.vocab_size)
        count = canvas.rows
        each, numbers = each_sampler(samplers, count), each_seed(seeds, count)
        require_logits(canvas, each, self.facts, whole_span=self.observe == "span")
        self.lanes, lanes = add_lanes(self.lanes, each, self.facts, self.observe == "span")
        ids = np.arange(self._next_id, self._next_id + count)
        self._next_id += count
        self.record.flush()
        self.flush_step_counts()
        canvas = canvas.to(self.facts.device)
        self._add_to_batch(canvas, torch.tensor([[n] for n in numbers], device=self.facts.device))
        rows = plan_rows(canvas, self.lanes, lanes, ids, self.clock)
        self.rows = self.rows.join(rows) if len(self.rows) else rows
        self._regroup()
        return [int(i) for i in ids]

    def _add_to_batch(self, canvas: Canvas, seeds: Tensor) -> None:
        """Add the canvas to the batch; the first one opens a session."""
        if len(self.rows):
            self.session.add(canvas.rows, *self.batch.add(canvas, seeds))
        else:
            self.batch = Batch(canvas, seeds)
            self.session, self.unchecked = self.denoiser.open(*canvas.tokens.shape), True
            self.record = BatchRecord(self.facts.device)
        masked = self.batch.generated[-canvas.rows :] == self.facts.mask_id
        self.record.add(masked, self._max_terms)

    @torch.inference_mode()
    def keep(self, rows: Ints) -> None:
        """Only these rows (indices, not ids) stay."""
        self.record.flush()
        self.flush_step_counts()
        index = upload(rows, self.facts.device)
        self.batch.keep(index)
        self.record.keep(rows.tolist())
        self.session.keep(index)
        self.rows = self.rows.take(rows)
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
        samplers = [self.spec_of(row) for row in rows.tolist()]
        return HostRows(record, tokens, samplers, self.batch.seeds[index, 0].tolist(), window)

    def spec_of(self, row: int) -> Sampler:
        """A row's sampler, as the caller gave it."""
        return self.lanes[int(self.rows.lane[row])].spec

    def members(self, lane: int) -> Ints:
        """Indices of the rows in a lane."""
        return np.flatnonzero(self.rows.lane == lane)

    def _regroup(self) -> None:
        """Rows came or went: sort them into lanes again, and drop lanes without rows."""
        used, self.rows.lane = np.unique(self.rows.lane, return_inverse=True)
        self.lanes = [self.lanes[number] for number in used]
        self.any_finished, self.all_finished = bool(self.rows.finished.any()), bool(self.rows.finished.all())
        revises = np.array([lane.sampler.policy.revises for lane in self.lanes], dtype=bool)
        self.revising, self.revises = revises[self.rows.lane], bool(revises.any())
        self.earliest_join = int(min(self.rows.joined_at_step, default=self.clock))
        self.deadline = int(min(self.rows.joined_at_step + self.rows.limit, default=self.clock))
        self.planner.regroup(self.rows, self.lanes, self.batch.valid)
        for number, lane in enumerate(self.lanes):
            lane.rows = None if len(used) == 1 else upload(self.members(number), self.facts.device)
            if lane.probes is not None:
                ids = self.rows.ids[self.members(number)]
                lane.probes.follow(ids, lane.rows, self.batch, self.denoiser.open)
        rows, columns = self.batch.tokens.shape
        tokens = columns if self.denoiser.computes_in_parts else rows * columns
        self.threads = threads_for(self.facts.device, self.facts.parameters, tokens)
        self.lookahead.must_open_blocks = True

    @property
    def _sees_span(self) -> bool:
        """Whether the window is the whole span: on request, or because a stop rule needs it."""
        return self.observe == "span" or any(lane.sampler.policy.stop.sees_beliefs for lane in self.lanes)

    @property
    def _max_terms(self) -> int:
        return max(len(lane.spec.policy.score.terms) for lane in self.lanes)

    # -- steps -----------------------------------------------------------------------------------

    def open_blocks(self) -> None:
        """Rows without an open block open the next that has masks; then fix the window until a block is filled."""
        self.record.flush()
        self.flush_step_counts()
        self.rows.open_next()
        given = self.batch.given[:, self.batch.start :]
        self.blocks = OpenBlocks(self.rows, self.batch.generated, given, self._sees_span)
        self.record.set_window(self.blocks.window, self._max_terms)
        self._lay_out_memory()
        self.restart_lookahead()
        self.planner.current = None
        self.lookahead.logits, self.lookahead.must_open_blocks = None, False

    def _lay_out_memory(self) -> None:
        """What pieces remember follows its rows into the new window."""
        for number, lane in enumerate(self.lanes):
            if lane.memory is not None:
                rows, window = self.members(number), self.blocks.window
                blocks = Span(self.rows.starts[rows], self.rows.stops[rows])
                opens = self.rows.block_step[rows] == 0
                lane.memory.lay_out(self.rows.ids[rows], blocks, window.start[rows], window.width, opens)

    def record_probes(self) -> int:
        """Record the probes of a step. Returns the forwards that the batch took for them."""
        passes = 0
        for number, lane in enumerate(self.lanes):
            if lane.probes is not None:
                passes += lane.probes.passes
                for row, count in zip(self.members(number).tolist(), lane.probes.counts.tolist(), strict=True):
                    if not self.rows.finished[row]:
                        self.record.probes[row].append(count)
        return passes

    def restart_lookahead(self) -> None:
        """Count the steps until the host must sync again."""
        self.lookahead.restart(self.rows, self.lanes, [self.members(number) for number in range(len(self.lanes))])

    @property
    def block_step(self) -> Count:
        """Steps since the rows' blocks opened."""
        return self.blocks.age + self.lookahead.since_sync

    def flush_step_counts(self) -> None:
        """Add the steps since the last sync to the rows' own counts; between two syncs one counter serves all rows."""
        since, self.lookahead.since_sync = self.lookahead.since_sync, 0
        if since:
            self.rows.block_step += since
            self.blocks.age = self.blocks.age + since

    def end_blocks(self, stop: Ints, behind: Ints, following: Ints) -> None:
        """Apply what a sync found of blocks that end where beliefs say; see :meth:`Rows.end_blocks`."""
        if self.rows.end_blocks(stop, behind, following).any():
            self.lookahead.must_open_blocks = True

    def apply(self, filled: np.ndarray, done: np.ndarray) -> tuple[int, ...]:
        """Apply what a sync found: rows `[B]` whose block is `filled` and may close, and rows that a stop rule has
        `done`. Returns the ids of the rows that finish."""
        rows = self.rows
        closed = filled & ~rows.finished
        over = closed & (~rows.remaining_blocks.any(1) | done)
        rows.block_step[closed & ~over] = -1
        rows.finished |= over
        self.any_finished, self.all_finished = bool(rows.finished.any()), bool(rows.finished.all())
        self.restart_lookahead()
        if closed.any():
            self.lookahead.must_open_blocks = True
            self.batch.unfinished = upload((~rows.finished).astype(np.int64), self.facts.device)[:, None]
        return tuple(rows.ids[over].tolist())

    @property
    def may_run_ahead(self) -> bool:
        """Whether to launch the next step's forward before a sync."""
        return self.lookahead.is_worthwhile(len(self.rows)) and not self._plan_changes()

    def plan(self) -> Plan:
        """What this step's forward recomputes, per row as its cache policy says; kept while it does not change."""
        if self.planner.current is None or self._plan_changes():
            self.flush_step_counts()
            rows, start, length = self.rows, self.batch.start, self.batch.tokens.shape[1]
            block = Span(rows.starts + start, rows.stops + start)
            place = Place(block, rows.block_step, self.blocks.window.columns(start), length)
            return self.planner.make(place, rows, self.clock)
        return self.planner.current

    def _plan_changes(self) -> bool:
        return self.planner.changes(self.rows.block_step + self.lookahead.since_sync)
