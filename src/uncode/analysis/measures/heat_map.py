"""The unmasking heat map: the probability that each offset is unmasked by each step; and the boundary-first index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.errors import require
from ...core.trace.row_record import FILLED, GIVEN
from ...util.stats import Interval, mean_intervals, wilson
from ..read_traces import Numbers, TraceRow, Whole
from .order import commit_ranks
from .step_sums import interval_data, resamples_for


@dataclass(frozen=True)
class BoundaryIndex:
    """How much earlier the boundaries are written than the inner half, in ranks from 0 (first) to 1 (last).

    Positive is boundary first: about 0.5 is strictly from both ends to the middle, 0 from left to right.
    """

    index: Interval
    """Of both outer quarters."""
    first: Interval
    """Of the first quarter alone."""
    last: Interval
    traces: int
    """Traces that were measured: at least four offsets, and one written in each part."""

    def data(self) -> dict[str, Any]:
        return {"index": self.index.data(), "first": self.first.data(), "last": self.last.data(), "traces": self.traces}


class HeatMap:
    """The probability that an offset is unmasked after a step, over the traces."""

    needs = ("correct",)
    probability: Numbers
    """`[S, T]`; with `parts`, `[N, N]` over equal parts of the span and of the decode."""
    boundary: BoundaryIndex | None = None
    """None if no trace can be measured."""
    accuracy: Interval | None = None
    """The share of right answers; None if no grader has marked them."""

    def __init__(self, parts: int | None) -> None:
        self.parts, self.traces = parts, 0
        self._changes = np.zeros((parts or 0, parts or 0), dtype=np.float64 if parts else np.int32)
        """`[S, T]`: offsets that were unmasked at a step, less those that were masked again."""
        self._steps = parts or 0
        self._earlier: list[tuple[float, float, float]] = []
        self._correct: list[bool] = []

    def add(self, row: TraceRow) -> None:
        offsets, steps, signs = _changes(row)
        if self.parts is None:
            self._grow(len(row), row.steps)
            if row.events is None:
                self._changes[offsets, steps] += 1  # no offset occurs twice
            else:
                np.add.at(self._changes, (offsets, steps), signs)
        else:
            require(
                len(row) >= self.parts,
                f"'{row.source}' has a span of {len(row)} tokens, which cannot be cut into {self.parts} parts: give "
                f"`parts={len(row)}` or fewer.",
            )
            part = np.arange(len(row)) * self.parts // len(row)
            weights = 1 / np.bincount(part)[part]  # each part of the span counts as one
            ends = -(-(steps + 1) * self.parts // row.steps) - 1  # the first part that ends after the step
            np.add.at(self._changes, (part[offsets], ends), signs * weights[offsets])
        self.traces += 1
        if row.correct is not None:
            self._correct.append(row.correct)
        earlier = earlier_than_inner(row.commit_step)
        if earlier is not None:
            self._earlier.append(earlier)

    def _grow(self, span: int, steps: int) -> None:
        """Make room for more steps. Columns are doubled, so that growing costs little."""
        self._steps = max(self._steps, steps)
        if self._changes.shape[1] < steps or len(self._changes) < span:
            columns = steps if not self.traces else max(steps, 2 * self._changes.shape[1])
            larger = np.zeros((span, columns), dtype=np.int32)
            larger[: len(self._changes), : self._changes.shape[1]] = self._changes
            self._changes = larger

    def finish(self) -> None:
        self.probability = np.cumsum(self._changes[:, : self._steps], axis=1) / self.traces
        if self._correct:
            self.accuracy = wilson(sum(self._correct), len(self._correct))
        if self._earlier:
            count = len(self._earlier)
            both, first, last = mean_intervals(list(np.array(self._earlier).T), resamples_for(count))
            self.boundary = BoundaryIndex(both, first, last, count)

    def data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "traces": self.traces,
            "boundary_first": None if self.boundary is None else self.boundary.data(),
            "accuracy": interval_data(self.accuracy),
            "probability": self.probability.tolist(),
        }

    def columns(self) -> dict[str, Numbers | Whole]:
        """One value per offset and step, for CSV."""
        offset, step = np.indices(self.probability.shape)
        return {"offset": offset.ravel(), "step": step.ravel(), "probability": self.probability.ravel()}


def _changes(row: TraceRow) -> tuple[Whole, Whole, Whole]:
    """Offsets, steps and signs: +1 where a mask was filled, -1 where a remasker put it back.

    Given tokens are there from the first step on. The stop rule fills the rest at the row's last step.
    """
    steps = row.commit_step.copy()
    steps[steps == GIVEN] = 0
    steps[steps == FILLED] = row.steps - 1
    offsets = np.arange(len(steps))
    if row.events is None:
        return offsets, steps, np.ones(len(steps), dtype=np.int64)
    event_steps, event_offsets, tokens = row.events.T
    rest = row.commit_step < 0
    return (
        np.concatenate([offsets[rest], event_offsets]),
        np.concatenate([steps[rest], event_steps]),
        np.concatenate([np.ones(int(rest.sum()), dtype=np.int64), np.where(tokens >= 0, 1, -1)]),
    )


def earlier_than_inner(commit_step: Whole) -> tuple[float, float, float] | None:
    """How much earlier than the inner half both outer quarters, the first and the last were written, as mean ranks.

    None for fewer than four offsets, and where a part has no written offset.
    """
    quarter = len(commit_step) // 4
    ranks = commit_ranks(commit_step)
    sides = ranks[:quarter], ranks[quarter : len(ranks) - quarter], ranks[len(ranks) - quarter :]
    if any(np.isnan(side).all() for side in sides):  # also if a side is empty
        return None
    first, inner, last = (float(np.nanmean(side)) for side in sides)
    return inner - (first + last) / 2, inner - first, inner - last
