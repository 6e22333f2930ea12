"""What came of each trace: right or wrong, its forwards and its mean entropy. Bars and sweeps are drawn from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.errors import UncodeError, require
from ...core.trace.row_record import GIVEN
from ...util.stats import Interval, mean_of_intervals, newcombe, paired_bootstrap, wilson
from ..read_traces import Numbers, TraceRow, Whole
from ..sampler_settings import SamplerSettings
from .step_sums import mean_of_known, nullable, resamples_for


class Outcomes:
    """The outcomes of a group, one value per graded trace."""

    needs = ("correct", "mean_entropy")
    ids: tuple[str, ...]
    """Of the problems; empty text where a trace does not say."""
    correct: Whole
    """1 for a right answer, 0 for a wrong one."""
    forwards: Whole
    tokens: Whole
    """Tokens that were written."""
    entropy: Numbers
    """The mean predictive entropy of the decode, in nats; NaN unless the trace was recorded with `observe="span"`."""

    def __init__(self, parts: int | None) -> None:
        self.traces = 0
        """All traces, also those without a grade."""
        self.settings = SamplerSettings("")
        self.has_anchor = False
        """Whether a token was given inside the answers."""
        self._graded, self._source = list[tuple[str, bool, int, int, float]](), ""

    def add(self, row: TraceRow) -> None:
        self.traces += 1
        self._source, self.settings = row.source, row.settings
        self.has_anchor |= bool((row.commit_step == GIVEN).any())
        if row.correct is not None:
            written = int((row.commit_step >= 0).sum())
            self._graded.append((row.id, row.correct, row.forwards, written, _mean_entropy(row)))

    def finish(self) -> None:
        if not self._graded:
            raise UncodeError(f"'{self._source}' has no grades: decode again with `uncode eval --traces`.")
        self.ids, correct, *others = zip(*self._graded, strict=True)
        self.correct = np.array(correct, dtype=np.int64)
        self.forwards, self.tokens, self.entropy = map(np.array, others)

    @property
    def share(self) -> Interval:
        """Right answers, with Wilson's interval."""
        return wilson(int(self.correct.sum()), len(self.correct))

    @property
    def mean_entropy(self) -> Interval | None:
        return mean_of_known(self.entropy)

    @property
    def tokens_per_forward(self) -> float:
        return float(self.tokens.sum() / self.forwards.sum())

    def data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "traces": self.traces,
            "accuracy": self.share.data(),
            "tokens_per_forward": self.tokens_per_forward,
            "rate": self.settings.rate,
            "clip": self.settings.clip,
            "table": self.settings.table,
            "rejection": self.settings.rejection,
            "correct": self.correct.tolist(),
            "entropy": nullable(self.entropy),
        }

    def columns(self) -> dict[str, Numbers | Whole]:
        """One value per answer, for CSV."""
        count, settings = len(self.correct), self.settings
        return {
            "answer": np.arange(count),
            "correct": self.correct,
            "forwards": self.forwards,
            "tokens": self.tokens,
            "entropy": self.entropy,
            "rate": np.full(count, settings.rate),
            "clip": np.full(count, settings.clip),
            "rejection": np.full(count, settings.rejection),
        }


def _mean_entropy(row: TraceRow) -> float:
    """The mean over the steps of the mean entropy of the masks (the paper's H_seq)."""
    if row.observe != "span" or row.mean_entropy is None or bool(np.isnan(row.mean_entropy).all()):
        return float("nan")
    return float(np.nanmean(row.mean_entropy))


ByTask = Mapping[str, Outcomes]
"""The outcomes of one sampler on several tasks."""


def average(by_task: ByTask) -> Interval:
    """The unweighted mean of the accuracies."""
    return mean_of_intervals([one.share for one in by_task.values()])


def accuracy_gain(better: ByTask, than: ByTask) -> Interval:
    """How much larger the first average accuracy is, over the problems that both have on the same tasks."""
    return mean_of_intervals(
        [newcombe(*_paired(better[task], than[task], "correct")) for task in _shared(better, than)]
    )


def entropy_gain(larger: ByTask, than: ByTask) -> Interval:
    """How much larger the first mean entropy is, in nats, over the problems that both have."""
    found = [_paired(larger[task], than[task], "entropy") for task in _shared(larger, than)]
    return mean_of_intervals([paired_bootstrap(*pair, resamples=resamples_for(len(pair[0]))) for pair in found])


def _shared(one: ByTask, two: ByTask) -> list[str]:
    tasks = [task for task in one if task in two]
    require(len(tasks) > 0, "the two samplers have no task in common.")
    return tasks


def _paired(one: Outcomes, two: Outcomes, name: str) -> tuple[Numbers, Numbers]:
    """The values of the problems that both have, in the same order."""
    first, second = (dict(zip(side.ids, getattr(side, name), strict=True)) for side in (one, two))
    ids = [id for id in first if id in second]
    require(len(ids) > 0, "the two samplers have no problem in common.")
    return np.array([first[id] for id in ids], dtype=np.float64), np.array([second[id] for id in ids], dtype=np.float64)
