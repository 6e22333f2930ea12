"""Uncertainty over time: the mean predictive entropy of the masked positions at each step."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import require
from ..read_traces import Numbers, TraceRow, Whole
from .step_sums import StepSums, nullable, part_means, ratios

Z95 = 1.959963984540054
"""The normal quantile of a 95 % interval."""


class StepEntropy:
    """The mean over the traces of the entropy of all masked positions, in nats, with a 95 % band. It keeps three sums
    per step."""

    needs = ("mean_entropy",)
    mean: Numbers
    """Per step, or per part of the decode; NaN where every trace has ended."""
    half_width: Numbers
    """Of the normal interval of the mean; NaN for fewer than two traces."""
    running: Whole
    """Traces that still had masks, per step."""

    def __init__(self, parts: int | None) -> None:
        self.parts, self.traces = parts, 0
        self._sum, self._squares, self._number = StepSums(), StepSums(), StepSums()

    def add(self, row: TraceRow) -> None:
        require(
            row.observe == "span",
            f"'{row.source}' has the entropy of the open block alone (observe='open'): decode again with "
            "observe='span', or run `uncode eval` with --traces --observe-span.",
        )
        assert row.mean_entropy is not None, "the schema requires it"
        values = row.mean_entropy if self.parts is None else part_means(row.mean_entropy, self.parts)
        is_number = ~np.isnan(values)
        known = np.where(is_number, values, 0.0)
        self._sum.add(known)
        self._squares.add(known**2)
        self._number.add(is_number)
        self.traces += 1

    def finish(self) -> None:
        number = self._number.sums
        mean, half = ratios(self._sum.sums, number), np.full(len(number), np.nan)
        several = number > 1
        spread = np.maximum(self._squares.sums[several] - number[several] * mean[several] ** 2, 0.0)
        half[several] = Z95 * np.sqrt(spread / (number[several] - 1) / number[several])
        self.mean, self.half_width, self.running = mean, half, number.astype(np.int64)

    def data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        band = {"low": nullable(self.mean - self.half_width), "high": nullable(self.mean + self.half_width)}
        return {"traces": self.traces, "mean": nullable(self.mean), **band, "running": self.running.tolist()}

    def columns(self) -> dict[str, Numbers | Whole]:
        """One value per step, for CSV."""
        low, high = self.mean - self.half_width, self.mean + self.half_width
        step = np.arange(len(self.mean))
        return {"step": step, "mean": self.mean, "low": low, "high": high, "running": self.running}
