"""When the answer is committed, how uncertain the model is then, and whether the reasoning is there yet."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.errors import UncodeError
from ...util.stats import Interval, wilson
from ..read_traces import Flags, Numbers, TraceRow
from .step_sums import interval_data, mean_of_known, mean_over, nullable
from .trivial_share import texts_of


class Timing(NamedTuple):
    """One answer."""

    step: float
    """The mean step at which its tokens were committed."""
    time: float
    """The same from 0 to 1: the steps before it, divided by the row's steps."""
    entropy: float
    """The mean entropy of its tokens at commit, in nats; NaN if none was recorded."""
    is_early: bool | None
    """Whether it was complete before half of the text in front of it; None if there is no such text."""


class AnswerTiming:
    """The answers of a group, one value per answer."""

    needs = ("generated_texts", "answer_span", "entropy")
    step: Numbers
    time: Numbers
    entropy: Numbers
    is_early: Numbers
    """1, 0, or NaN where no text stands before the answer."""

    def __init__(self, parts: int | None) -> None:
        self.traces = 0
        """Traces in all, with those in which no answer was found."""
        self._found, self._source = list[Timing](), ""

    def add(self, row: TraceRow) -> None:
        self.traces += 1
        self._source = row.source
        found = timing_of(row)
        if found is not None:
            self._found.append(found)

    def finish(self) -> None:
        if not self._found:
            raise UncodeError(
                f"'{self._source}' marks no answer: `uncode eval --traces` notes where the grader found one, for tasks "
                "whose answer is a part of the text."
            )
        self.step, self.time, self.entropy, self.is_early = np.array(self._found, dtype=np.float64).T

    @property
    def mean_step(self) -> Interval:
        return mean_over(self.step)

    @property
    def mean_time(self) -> Interval:
        return mean_over(self.time)

    @property
    def mean_entropy(self) -> Interval | None:
        return mean_of_known(self.entropy)

    @property
    def early(self) -> Interval | None:
        """The share of early answers among those with text before them, with Wilson's interval."""
        known = self.is_early[~np.isnan(self.is_early)]
        return wilson(int(known.sum()), len(known)) if len(known) else None

    def data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "traces": self.traces,
            "answers": len(self.step),
            "step": self.mean_step.data(),
            "time": self.mean_time.data(),
            "entropy": interval_data(self.mean_entropy),
            "early": interval_data(self.early),
            "each": {name: nullable(values) for name, values in self.columns().items()},
        }

    def columns(self) -> dict[str, Numbers]:
        """One value per answer, for CSV."""
        return {"step": self.step, "time": self.time, "entropy": self.entropy, "early": self.is_early}


def timing_of(row: TraceRow) -> Timing | None:
    """The timing of a row's answer; None if no grader has marked one, or if its tokens were not decoded."""
    if row.answer_span is None:
        return None
    answer = tokens_of(texts_of(row), row.answer_span)
    written = answer & (row.commit_step >= 0)
    if not written.any():
        return None
    steps = row.commit_step[written]
    entropies = np.full(1, np.nan) if row.entropy is None else row.entropy[written]
    known = entropies[~np.isnan(entropies)]
    return Timing(
        step=float(steps.mean()),
        time=float(steps.mean() / row.steps),
        entropy=float(known.mean()) if len(known) else float("nan"),
        is_early=_is_early(row, int(answer.argmax()), int(steps.max())),
    )


def _is_early(row: TraceRow, first_offset: int, last_step: int) -> bool | None:
    before = row.commit_step[:first_offset][~row.is_eos[:first_offset]]
    before = before[before >= 0]
    return bool((before > last_step).sum() * 2 >= len(before)) if len(before) else None


def tokens_of(texts: list[str], span: tuple[int, int]) -> Flags:
    """Which tokens hold a character of a span of the text, `[S]`."""
    ends = np.cumsum([len(text) for text in texts])
    starts = np.concatenate([[0], ends[:-1]])
    return np.asarray((starts < span[1]) & (ends > span[0]) & (ends > starts))
