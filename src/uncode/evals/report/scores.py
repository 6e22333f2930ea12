"""The samples of one or several runs, by cell: accuracies and costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...core.errors import UncodeError, require
from ...util.stats import Interval, wilson
from ..names import TASK_NAMES
from ..run.folder import RunFolder, RunInfo
from ..run.sample import CellName, RunSample


@dataclass(frozen=True)
class CellScore:
    """The samples of one cell."""

    samples: Mapping[str, RunSample]
    """By the example's id."""
    total: int
    """The examples of the task."""

    def right(self, metric: str) -> dict[str, bool]:
        """Whether each example is right. Samples without this metric are left out."""
        return {id: s.grades[metric].correct for id, s in self.samples.items() if metric in s.grades}

    def accuracy(self, metric: str) -> Interval | None:
        """The share of right answers with its 95 % Wilson interval; None if no sample has the metric."""
        right = self.right(metric)
        return wilson(sum(right.values()), len(right)) if right else None

    def is_complete(self, metric: str) -> bool:
        return 0 < self.total == len(self.right(metric))


class Cost(NamedTuple):
    """What some answers cost together."""

    answers: int
    tokens: int
    forwards: int
    seconds: float

    @classmethod
    def of(cls, samples: Iterable[RunSample]) -> Cost:
        found = list(samples)
        tokens, forwards = sum(s.tokens for s in found), sum(s.forwards for s in found)
        return cls(len(found), tokens, forwards, math.fsum(s.seconds for s in found))

    @property
    def tokens_per_forward(self) -> float | None:
        return self.tokens / self.forwards if self.forwards else None


@dataclass(frozen=True)
class RunResults:
    """All cells of the runs."""

    infos: tuple[RunInfo, ...]
    scores: Mapping[CellName, CellScore]
    papers: Mapping[CellName, str]
    """The paper's table that the run of a cell names; empty if it names none."""

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(model for model, _, _ in self.scores))

    @property
    def metrics(self) -> list[str]:
        """Every metric of any sample. Our grader comes first, the released rule second."""
        found = {metric for score in self.scores.values() for s in score.samples.values() for metric in s.grades}
        return sorted(found, key=lambda metric: (metric != "correct", metric != "paper", metric))

    def tasks(self, model: str) -> list[str]:
        """The tasks of a model, in the paper's order; others after them."""
        found = list(dict.fromkeys(task for one, task, _ in self.scores if one == model))
        order = [*TASK_NAMES, *found]
        return sorted(found, key=order.index)

    def samplers(self, model: str | None = None) -> list[str]:
        return list(dict.fromkeys(sampler for one, _, sampler in self.scores if model in (None, one)))

    def answered_samplers(self, model: str | None = None) -> list[str]:
        """The samplers with at least one answer. A run that has just begun has samplers without."""
        names = [name for name, score in self.scores.items() if score.samples]
        return list(dict.fromkeys(sampler for one, _, sampler in names if model in (None, one)))

    def total(self, task: str) -> int:
        """The examples of a task."""
        return max((score.total for (_, name, _), score in self.scores.items() if name == task), default=0)


def read_runs(paths: Sequence[Path]) -> RunResults:
    """The cells of several runs together. The same cell in two of them is an error.

    The examples of a task are those that were asked for, or those that any cell has answered if these are more.
    """
    infos, samples, papers = [], dict[CellName, dict[str, RunSample]](), dict[CellName, str]()
    homes = dict[CellName, Path]()
    for path in paths:
        folder = RunFolder.existing(path)
        info = folder.info()
        infos.append(info)
        found = {cell.name: dict[str, RunSample]() for cell in info.cells}
        for sample in folder.samples():
            found.setdefault(sample.cell, {})[sample.id] = sample
        for name in [name for name in found if name in homes]:
            require(homes[name].resolve() != path.resolve(), f"'{path}' is given twice: name each run once.")
            model, task, label = name
            both = f"'{label}' on {task} by {model} is in '{homes[name]}' and in '{path}'"
            raise UncodeError(f"{both}: give only one of the two runs.")
        homes |= dict.fromkeys(found, path)
        samples |= found
        papers |= dict.fromkeys(found, info.paper)
    require(bool(samples), f"'{paths[0]}' holds no cells yet: fill it with `uncode eval` first.")
    ids = dict[str, set[str]]()
    for (_, task, _), rows in samples.items():
        ids.setdefault(task, set()).update(rows)
    asked = {task: max(info.examples.get(task, 0) for info in infos) for task in ids}
    scores = {name: CellScore(rows, max(asked[name[1]], len(ids[name[1]]))) for name, rows in samples.items()}
    return RunResults(tuple(infos), scores, papers)
