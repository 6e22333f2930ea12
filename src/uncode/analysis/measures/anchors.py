"""The anchor intervention: how much earlier the neighbours of a given token are written than without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.errors import require
from ...core.trace.row_record import GIVEN
from ...util.stats import Interval
from ..read_traces import Numbers, TraceRow, Whole
from .order import commit_ranks
from .step_sums import mean_over, nullable, ratios

NEAR = 8
"""Offsets on either side that count as neighbours."""
FAR = 24
"""Offsets on either side that the curve shows."""


class AnchorRanks:
    """The ranks of a group: when each offset was written, from 0 (first) to 1 (last). It keeps one number per offset
    and trace."""

    needs = ("generated_texts",)
    ranks: Numbers
    """`[N, S]`; NaN at the anchor."""

    def __init__(self, parts: int | None) -> None:
        self.traces = 0
        self.anchor: int | None = None
        """The offset of the given token; None for the control."""
        self.text = ""
        """The given token's."""
        self.ids: list[str] = []
        self._rows: list[Numbers] = []

    def add(self, row: TraceRow) -> None:
        given = np.flatnonzero(row.commit_step == GIVEN)
        require(len(given) <= 1, f"'{row.source}' has traces with {len(given)} given tokens: an anchor is one token.")
        anchor = int(given[0]) if len(given) else None
        require(self.traces == 0 or anchor == self.anchor, f"'{row.source}' mixes anchors: give each its own label.")
        self.anchor = anchor
        self.text = row.texts[anchor] if anchor is not None and row.texts else ""
        self.traces += 1
        self.ids.append(row.id)
        self._rows.append(commit_ranks(row.commit_step).astype(np.float32))

    def finish(self) -> None:
        self.ranks = np.array(self._rows)

    def data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        mean = nullable(self.mean)
        return {"traces": self.traces, "anchor": self.anchor, "text": self.text, "mean_rank": mean}

    def columns(self) -> dict[str, Numbers | Whole]:
        """One value per offset, for CSV."""
        return {"offset": np.arange(self.ranks.shape[1]), "mean_rank": self.mean}

    @property
    def mean(self) -> Numbers:
        """Over the traces, `[S]`."""
        return ratios(np.nansum(self.ranks, axis=0), (~np.isnan(self.ranks)).sum(axis=0))

    def spread(self, control: AnchorRanks) -> Spread:
        """How much earlier than in the control each offset near the anchor was written, over the same problems."""
        assert self.anchor is not None
        known = dict(zip(control.ids, control.ranks, strict=True))
        pairs = [(known[id], row) for id, row in zip(self.ids, self.ranks, strict=True) if id in known]
        require(len(pairs) > 0, "the traces with an anchor and those without have no problem in common.")
        earlier = np.array([without - given for without, given in pairs])
        distances = np.arange(earlier.shape[1]) - self.anchor
        near = (np.abs(distances) <= NEAR) & (distances != 0)
        shown = (np.abs(distances) <= FAR) & (distances != 0)
        return Spread(distances[shown], earlier[:, shown].mean(axis=0), mean_over(earlier[:, near].mean(axis=1)))


@dataclass(frozen=True, eq=False)
class Spread:
    """How much earlier offsets are written because of an anchor, in ranks."""

    distance: Whole
    """From the anchor; negative in front of it."""
    earlier: Numbers
    """At each distance, the mean over the problems."""
    near: Interval
    """The mean over the nearest offsets, with an interval over the problems."""
