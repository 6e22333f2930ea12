"""The state of a batch: rows that may differ in sampler, block, length and seed, on one canvas.

What changes at every step lives in tensors on the device; what changes when a block opens or a row
joins (where blocks lie, which steps they have) lives in small arrays on the host.
"""

from __future__ import annotations

import inspect
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import index
from typing import Any, Literal, TypedDict

import numpy as np
import torch
from torch import Tensor

from ...version import __version__
from ..canvas import Canvas
from ..denoiser import Denoiser, Facts
from ..errors import Stalled, require, shown
from ..noise import Noise, PhiloxNoise
from ..pieces.cache import NoCache, Place, Plan, Span
from ..pieces.policy import Sampler
from ..support.arguments import whole_number
from ..support.arrays import Ints
from ..support.memory import require_logits
from ..support.threads import threads_for
from ..support.transfer import upload
from ..view import Count
from .decide import Lane
from .record import Record
from .rows import Rows
from .window import Pane, Window

Observe = Literal["open", "span"]
Samplers = Sampler | Sequence[Sampler]
Seeds = int | Sequence[int]


class DecodeOptions(TypedDict, total=False):
    """What a decode records, and where its random numbers come from; see :class:`State`."""

    observe: Observe
    drafts: bool
    noise: Callable[[Tensor, Tensor], Noise]


class State:
    """Rows in decoding. Add rows, `advance` it step by step, drop the rows that have finished."""

    rows: Rows
    tokens: Tensor
    valid: Tensor
    given: Tensor
    seeds: Tensor
    alive: Tensor
    """1 for rows that go on and 0 for rows that have finished, `[B, 1]`."""
    start: int
    """The column at which the generated span starts, the same for all rows."""

    def __init__(
        self,
        denoiser: Denoiser,
        *,
        observe: Observe = "open",
        drafts: bool = False,
        noise: Callable[[Tensor, Tensor], Noise] = PhiloxNoise,
    ) -> None:
        require(
            isinstance(observe, str) and observe in ("open", "span"),
            f"observe must be 'open' or 'span', not {shown(observe)}.",
        )
        require(isinstance(drafts, bool), f"drafts must be True or False, not {shown(drafts)}.")
        require(callable(noise), f"noise makes a Noise of seeds and steps, PhiloxNoise say, not {shown(noise)}.")
        self.denoiser, self.facts = denoiser, Facts.of(denoiser)
        self.observe, self.drafts, self.noise = observe, drafts, noise
        self.session: Any = None
        self.lanes: list[Lane] = []
        self.record = Record(self.facts.device)
        self.clock = 0
        self.foreseen = self.certain = 0
        self.ended = False
        """Whether some row has finished and is still here."""
        self.over = True
        """Whether there is no row that goes on."""
        self.since = 0
        self._block_step: Count = 0
        self.hurries = self.facts.device.type == "cuda"
        """Whether a forward may run ahead of a look: only a device that works while the host waits gains by it."""
        self.ahead: Tensor | None = None
        """Logits of the next step, where they were asked for before it was known whether there is one."""
        self.threads: int | None = None
        """The most threads a step uses on a CPU."""
        self.stale = True
        self.rows = Rows.none()
        self._next_id = 0
        self._windows: list[tuple[int, Ints, Span]] = []

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
        each, numbers = each_sampler(samplers, count), _each_seed(seeds, count)
        require_logits(canvas, each, self.facts, whole_span=self.observe == "span")
        self.lanes, lanes = self._with_lanes(each)
        ids = np.arange(self._next_id, self._next_id + count)
        self._next_id += count
        self.record.fold()
        self.settle()
        canvas = canvas.to(self.facts.device)
        self._lay_out(canvas, torch.tensor([[n] for n in numbers], device=self.facts.device))
        rows = self._schedule(canvas, lanes, ids)
        self.rows = self.rows.join(rows) if len(self.rows) else rows
        self._regroup()
        return [int(i) for i in ids]

    @torch.inference_mode()
    def keep(self, rows: Ints) -> None:
        """Only these rows (indices, not ids) stay."""
        self.record.fold()
        self.settle()
        index = upload(rows, self.facts.device)
        self.tokens, self.valid, self.given = self.tokens[index], self.valid[index], self.given[index]
        self.seeds, self.alive = self.seeds[index], self.alive[index]
        self.record.keep(rows.tolist())
        self.session.keep(index)
        self.rows = self.rows.take(rows)
        self._regroup()

    def read(self, row: int) -> dict[str, Any]:
        """All that is known of a row: its tokens, its sampler and what was recorded of it."""
        lane = self.lanes[int(self.rows.lane[row])]
        return self.record.read(row, len(lane.spec.policy.score.terms)) | {
            "tokens": self.tokens[row],
            "window": self._windows_of(row, int(self.record.forwards[row])),
            "sampler": lane.spec,
            "seed": int(self.seeds[row]),
            "term_names": lane.spec.policy.score.term_names,
        }

    def _windows_of(self, row: int, forwards: int) -> Tensor:
        """The positions each of the row's forwards recomputed, `[2, T]`."""
        born, found = int(self.rows.born[row]), np.zeros((2, forwards), dtype=np.int64)
        for clock, ids, window in self._windows:
            at = np.flatnonzero(ids == self.rows.ids[row])
            if len(at):
                found[:, max(clock - born, 0) :] = [[window.start[at[0]]], [window.stop[at[0]]]]
        return torch.from_numpy(found)

    def header(self) -> dict[str, Any]:
        """What a trace says about the model and the way it was watched."""
        versions = {"uncode": __version__, "torch": str(torch.__version__), "python": platform.python_version()}
        return dict(getattr(self.denoiser, "about", {})) | {
            "dtype": str(self.denoiser.dtype).removeprefix("torch."),
            "special_ids": sorted({self.facts.mask_id, *self.facts.eos_ids}),
            "observe": self.observe,
            "versions": versions,
        }

    def _with_lanes(self, samplers: list[Sampler]) -> tuple[list[Lane], Ints]:
        """The lanes with those of new rows added, and the number of each new row's lane."""
        lanes, numbers = list(self.lanes), []
        for sampler in samplers:
            known = [number for number, lane in enumerate(lanes) if lane.spec == sampler]
            if not known:
                lanes.append(self._bound(sampler))
            numbers.append(known[0] if known else len(lanes) - 1)
        return lanes, np.array(numbers)

    def _bound(self, sampler: Sampler) -> Lane:
        require(
            self.observe == "open" or sampler.cache.sees_span,
            f"observe='span' needs every masked position at every step, which {type(sampler.cache).__name__} skips: "
            "use another cache or observe='open'.",
        )
        return Lane(sampler, sampler.bind(self.facts))

    def _lay_out(self, canvas: Canvas, seeds: Tensor) -> None:
        """Put the canvas beside the rows that are here; both grow to the wider prompt and the longer span."""
        given = canvas.given
        alive = torch.ones(canvas.rows, 1, dtype=torch.int64, device=seeds.device)
        if not len(self.rows):
            self.tokens, self.valid, self.given = canvas.tokens.clone(), canvas.valid.clone(), given
            self.seeds, self.alive, self.start, left, right = seeds, alive, canvas.start, 0, 0
            self.session = self.denoiser.open(*canvas.tokens.shape)
            self.record = Record(self.facts.device)
        else:
            left, right = canvas.start - self.start, canvas.span - self.span
            old = (self.tokens, self.valid, self.given)
            new = (canvas.tokens, canvas.valid, given)
            fills = (int(self.facts.mask_id == 0), False, True)
            self.tokens, self.valid, self.given = (
                torch.cat([_widen(a, left, right, f), _widen(b, -left, -right, f)])
                for a, b, f in zip(old, new, fills, strict=True)
            )
            self.seeds, self.alive = torch.cat([self.seeds, seeds]), torch.cat([self.alive, alive])
            self.start = max(self.start, canvas.start)
            self.session.add(canvas.rows, max(left, 0), max(right, 0))
        masked = self.tokens[-canvas.rows :, self.start :] == self.facts.mask_id
        self.record.add(masked, max(len(lane.spec.policy.score.terms) for lane in self.lanes))

    def _schedule(self, canvas: Canvas, lanes: Ints, ids: Ints) -> Rows:
        """The new rows, lane by lane, in the order of the canvas."""
        masked, lengths = canvas.masked[:, canvas.start :].cpu().numpy(), canvas.lengths.cpu().numpy()
        parts = []
        for number in np.unique(lanes):
            here = np.flatnonzero(lanes == number)
            part = Rows.plan(self.lanes[number].sampler, masked[here], lengths[here], self.clock)
            part.ids, part.lane = ids[here], lanes[here]
            parts.append(part)
        rows = reduce(Rows.join, parts)
        return rows.take(np.argsort(rows.ids))

    def _regroup(self) -> None:
        """Rows came or went: sort them into lanes anew; lanes without rows are dropped."""
        used, self.rows.lane = np.unique(self.rows.lane, return_inverse=True)
        self.lanes = [self.lanes[number] for number in used]
        self._caching = any(not isinstance(lane.spec.cache, NoCache) for lane in self.lanes)
        self.ended, self.over = bool(self.rows.finished.any()), bool(self.rows.finished.all())
        erases = np.array([lane.sampler.policy.remask.erases for lane in self.lanes], dtype=bool)
        self.erasing, self.erases = erases[self.rows.lane], bool(erases.any())
        self.oldest = int(min(self.rows.born, default=self.clock))
        self.deadline = int(min(self.rows.born + self.rows.limit, default=self.clock))
        valid = self.valid.cpu().numpy()
        self._reach = np.argmax(valid, 1), valid.sum(1)
        self._windows = [entry for entry in self._windows if np.isin(entry[1], self.rows.ids).any()]
        for number, lane in enumerate(self.lanes):
            lane.rows = None if len(used) == 1 else upload(self.members(number), self.facts.device)
        self.threads = threads_for(self.facts.device, self.facts.parameters, self.tokens.numel())
        self.stale = True

    def members(self, lane: int) -> Ints:
        """Indices of the rows in a lane."""
        return np.flatnonzero(self.rows.lane == lane)

    @property
    def span(self) -> int:
        return int(self.tokens.shape[1]) - self.start

    # -- blocks ----------------------------------------------------------------------------------

    def open_blocks(self) -> None:
        """Rows without an open block open the next that has masks; then fix the window until a block is filled."""
        self.record.fold()
        self.settle()
        self.rows.open_next()
        self._open_window()
        self.foresee()
        self._plan: Plan | None = None
        self.ahead = None
        self.stale = False

    def _open_window(self) -> None:
        rows = self.rows
        starts, stops = rows.starts, rows.stops
        if self.observe == "span":
            self.window = Window.over(np.zeros_like(starts), self.span, starts, stops, self.facts.device)
        else:
            width = int((stops - starts).max())
            self.window = Window.over(np.minimum(starts, self.span - width), width, starts, stops, self.facts.device)
        self.block_start, self.block_length = self._count(starts), self._count(stops - starts)
        self.block_masked = self._count(rows.of_block(rows.masked))
        self.block_steps = self._count(rows.of_block(rows.shares))
        self._block_step, self.since = self._count(rows.block_step.copy()), 0  # theirs are counted up in place
        self._open_panes()

    def _open_panes(self) -> None:
        window = self.window
        self.here = Pane(window, self.tokens[:, self.start :])
        self.record.look_through(window, max(len(lane.spec.policy.score.terms) for lane in self.lanes))
        self.free_here = window.restrict(~Pane(window, self.given[:, self.start :]).read())

    def _count(self, values: Ints) -> Count:
        """A plain number where all rows agree, else `[B, 1]`."""
        if (values == values[0]).all():
            return int(values[0])
        return upload(values, self.facts.device)[:, None]

    def foresee(self) -> None:
        """Count the steps that are `certain` unless a stop rule ends a row, until a block can be filled; and those
        `foreseen` until the host must look: then, once after a block's first step, and always where rules may stop."""
        rows, going = self.rows, ~self.rows.finished
        steps, looks = np.zeros_like(rows.block), rows.block_step == 0
        for number, lane in enumerate(self.lanes):
            policy, here = lane.sampler.policy, self.members(number)
            if not policy.remask.erases:
                masked, shares = rows.of_block(rows.masked)[here], rows.of_block(rows.shares)[here]
                steps[here] = policy.select.foresee(masked, shares) - rows.block_step[here]
            looks[here] |= policy.stop.stops
        self.certain, self.foreseen = (
            int(count[going].min()) if going.any() else 0
            for count in (steps, np.where(looks, np.minimum(steps, 1), steps))
        )

    @property
    def block_step(self) -> Count:
        """Steps since the rows' blocks opened."""
        return self._block_step + self.since

    def settle(self) -> None:
        """Bring the rows' own step counts up to date; between two looks they are counted together."""
        if self.since:
            self.rows.block_step += self.since
            self._block_step = self._block_step + self.since
        self.since = 0

    # -- the forward -----------------------------------------------------------------------------

    @property
    def may_run_ahead(self) -> bool:
        """Whether the next step's forward is worth starting before a look: a stop rule alone can say that there is
        none. Only a single row gains by it: of several, one ends often, and the forward was in vain."""
        alone = self.hurries and len(self.rows) == 1
        return alone and self.certain > 0 and not (self._caching and self._plan_changes())

    def plan(self) -> Plan:
        """What this step's forward recomputes, per row as its cache policy says; kept while it does not change."""
        if self._plan is None or (self._caching and self._plan_changes()):
            self.settle()
            self._plan = self._ask_caches()
            self._windows.append((self.clock, self.rows.ids, self._in_row_positions(self._plan.window)))
        return self._plan

    def _in_row_positions(self, span: Span) -> Span:
        """A span of columns as positions of each row, which count from its first valid token."""
        first, length = self._reach
        return Span(np.clip(span.start - first, 0, length), np.clip(span.stop - first, 0, length))

    def _plan_changes(self) -> bool:
        steps = self.rows.block_step + self.since
        return any(lane.sampler.cache.changes(steps) for lane in self.lanes)

    def _ask_caches(self) -> Plan:
        rows = self.rows
        block = Span(rows.starts + self.start, rows.stops + self.start)
        place = Place(block, rows.block_step, self.window.columns(self.start), self.tokens.shape[1])
        if len(self.lanes) == 1:
            return self.lanes[0].sampler.cache(place)
        plans = [lane.sampler.cache(place) for lane in self.lanes]

        def mix(name: str) -> Span:
            spans = [getattr(plan, name) for plan in plans]
            picks = rows.lane, rows.index
            return Span(np.stack([s.start for s in spans])[picks], np.stack([s.stop for s in spans])[picks])

        return Plan(window=mix("window"), wanted=mix("wanted"), keep=mix("keep"), reuse=mix("reuse"))

    def check_limit(self) -> None:
        """Raise :class:`Stalled` when a row has used up its forwards."""
        if self.clock < self.deadline:
            return
        over = np.flatnonzero((self.clock - self.rows.born >= self.rows.limit) & ~self.rows.finished)
        if len(over):
            row = int(over[0])
            spec = self.lanes[int(self.rows.lane[row])].spec
            raise Stalled(
                f"row {int(self.rows.ids[row])} is not finished after {int(self.rows.limit[row])} forwards, the limit "
                f"of sampler '{spec.name}' ({type(spec.policy.select).__name__}): raise the limit or change it."
            )


def each_sampler(samplers: Samplers, count: int) -> list[Sampler]:
    each = [samplers] * count if isinstance(samplers, Sampler) else samplers
    made = f": call it, {samplers.__name__}(...)" if inspect.isfunction(samplers) else ""
    fits = isinstance(each, Sequence) and all(isinstance(sampler, Sampler) for sampler in each)
    require(fits, f"a sampler was expected, presets.confidence() say, not {shown(samplers)}{made}.")
    require(len(each) == count, f"{len(each)} samplers were given for {count} rows.")
    return list(each)


def _each_seed(seeds: Seeds, count: int) -> list[int]:
    try:
        each = [index(seeds) + row for row in range(count)]  # type: ignore[arg-type]
    except TypeError:
        listed = list(seeds) if isinstance(seeds, Iterable) and not isinstance(seeds, str | bytes | Mapping) else []
        require(len(listed) > 0, f"a seed is a whole number or one per row, not {shown(seeds)}.")
        each = [whole_number(seed, "a seed", least=-(2**63)) for seed in listed]
    require(len(each) == count, f"{len(each)} seeds were given for {count} rows.")
    require(all(-(2**63) <= seed < 2**63 for seed in each), "a seed must fit in 64 bits.")
    return each


def _widen(tensor: Tensor, left: int, right: int, fill: float) -> Tensor:
    return torch.nn.functional.pad(tensor, (max(left, 0), max(right, 0)), value=fill)
