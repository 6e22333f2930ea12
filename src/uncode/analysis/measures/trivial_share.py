"""The share of trivial tokens among the tokens that each step commits."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ...core.errors import UncodeError
from ...core.trace.texts import is_trivial
from ...util.stats import Interval
from ..read_traces import Flags, Numbers, TraceRow, Whole
from .step_sums import StepSums, interval_data, mean_over, nullable, ratios


class TrivialShare:
    """Trivial tokens among the text tokens that were committed. EOS is in neither number.

    It keeps two counts per step and two numbers per trace.
    """

    needs = ("generated_texts",)
    share: Numbers
    """Per step, or per part of the decode; NaN where no text was committed."""
    commits: Whole
    """Text tokens that were committed per step, over all traces."""
    overall: Interval | None
    """The mean over the traces of the share in the whole text; None if there is no text."""
    early: Interval | None
    """The same of the first quarter of the text that was written."""

    def __init__(self, parts: int | None) -> None:
        self.parts, self.traces = parts, 0
        self._trivial, self._text = StepSums(), StepSums()
        self._shares: list[float] = []
        self._early: list[float] = []

    def add(self, row: TraceRow) -> None:
        trivial = trivial_tokens(row)
        written = (row.commit_step >= 0) & ~row.is_eos
        steps = row.commit_step if self.parts is None else row.commit_step * self.parts // row.steps
        length = self.parts or row.steps
        self._text.add(np.bincount(steps[written], minlength=length))
        self._trivial.add(np.bincount(steps[written & trivial], minlength=length))
        self.traces += 1
        if written.any():
            self._shares.append(float(trivial[written].mean()))
            in_order = trivial[written][row.commit_step[written].argsort(kind="stable")]
            self._early.append(float(in_order[: -(-len(in_order) // 4)].mean()))

    def finish(self) -> None:
        text, trivial = self._text.sums, self._trivial.sums
        self.share, self.commits = ratios(trivial, text), text.astype(np.int64)
        self.overall, self.early = (mean_over(values) if values else None for values in (self._shares, self._early))

    def data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "traces": self.traces,
            "overall": interval_data(self.overall),
            "early": interval_data(self.early),
            "share": nullable(self.share),
            "commits": self.commits.tolist(),
        }

    def columns(self) -> dict[str, Numbers | Whole]:
        """One value per step, for CSV."""
        return {"step": np.arange(len(self.share)), "share": self.share, "commits": self.commits}


_is_trivial = lru_cache(1 << 17)(is_trivial)  # traces repeat the same few texts


def trivial_tokens(row: TraceRow) -> Flags:
    """Which tokens are trivial, `[S]`. A line without texts is an error."""
    return np.fromiter(map(_is_trivial, texts_of(row)), np.bool_, len(row))


def texts_of(row: TraceRow) -> list[str]:
    """The texts of the tokens; a line without them is an error."""
    if row.texts is None:
        raise UncodeError(
            f"'{row.source}' has no texts: decode again with `uncode eval --traces` or `uncode decode --trace`, or "
            "save the trace with its tokenizer."
        )
    return row.texts


def reference_share(share: TrivialShare) -> Interval:
    """The share of trivial tokens in the reference traces."""
    if share.overall is None:
        raise UncodeError("the reference traces hold no text, only EOS tokens: give other traces.")
    return share.overall
