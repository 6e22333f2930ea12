"""The plan of the next forward, and which positions each forward has recomputed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from ..pieces.cache import NoCache, Place, Plan, Span
from ..support.arrays import Ints
from .lanes.decide import Lane
from .rows import Rows


class Planner:
    """Asks the rows' cache policies for a plan, and keeps it while it does not change."""

    def __init__(self) -> None:
        self.current: Plan | None = None
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
        return self._uses_cache and any(lane.sampler.cache.changes(block_step) for lane in self._lanes)

    def make(self, place: Place, rows: Rows, clock: int) -> Plan:
        """Ask for a new plan; each row follows its own cache policy."""
        plans = [lane.sampler.cache(place) for lane in self._lanes]

        def mix(name: str) -> Span:
            spans = [getattr(plan, name) for plan in plans]
            picks = rows.lane, rows.index
            return Span(np.stack([s.start for s in spans])[picks], np.stack([s.stop for s in spans])[picks])

        mixed = len(plans) > 1
        self.current = plan = (
            Plan(window=mix("window"), wanted=mix("wanted"), store=mix("store"), reuse=mix("reuse"))
            if mixed
            else plans[0]
        )
        self._history.append((clock, rows.ids, self._in_row_positions(plan.window)))
        return plan

    def _in_row_positions(self, span: Span) -> Span:
        """A span of columns as positions of each row, which count from its first valid token."""
        first, length = self._first, self._lengths
        return Span(np.clip(span.start - first, 0, length), np.clip(span.stop - first, 0, length))

    def recomputed(self, ids: Ints, joined_at_step: Ints, forwards: int) -> Ints:
        """The positions that each of these rows' forwards recomputed, `[N, 2, T]`."""
        found, steps = np.zeros((len(ids), 2, forwards), dtype=np.int64), np.arange(forwards)
        for clock, present, window in self._history:
            _, mine, theirs = np.intersect1d(ids, present, assume_unique=True, return_indices=True)
            since = steps >= (clock - joined_at_step[mine])[:, None]
            spans = np.stack([window.start[theirs], window.stop[theirs]], 1)
            found[mine] = np.where(since[:, None], spans[..., None], found[mine])
        return found
