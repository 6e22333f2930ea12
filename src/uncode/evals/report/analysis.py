"""Everything that a report says about one model, as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ...core.errors import UncodeError, require, suggest
from ...util.stats import Interval, McNemar, corrected_tests, mcnemar, mean_of_intervals, newcombe
from ..paper import Figure, paper_tables
from ..paper.tables import AVERAGE
from ..run.sample import RunSample
from .aup import BudgetPoint, aup, families
from .scores import CellScore, Cost, RunResults


@dataclass(frozen=True)
class Choices:
    """What the caller chose for the whole report."""

    metric: str = "correct"
    baseline: str = ""
    """The label of the sampler that others are compared with; empty: no comparison."""
    with_paper: bool = False
    paper_model: str = ""
    """The paper's model for models that the paper does not have, such as a local folder."""

    @property
    def metrics(self) -> list[str]:
        """The metrics that are shown side by side; the chosen one first."""
        return list(dict.fromkeys([self.metric, "correct", "paper"]))


def check_choices(results: RunResults, metric: str, baseline: str | None, paper_model: str) -> str:
    """Raise if a name is unknown. Returns the baseline: the given one, else the one that the runs name."""
    known = results.metrics
    require(not known or metric in known, f"no sample has the metric '{metric}': {suggest(metric, known)}")
    models = paper_tables().models
    require(paper_model in ("", *models), f"the paper has no model '{paper_model}': {suggest(paper_model, models)}")
    if baseline is not None:
        labels, answered = results.samplers(), results.answered_samplers()
        require(baseline in labels, f"no run has the sampler '{baseline}': {suggest(baseline, answered or labels)}")
        return baseline
    named = {info.baseline for info in results.infos if info.baseline}
    if len(named) > 1:
        raise UncodeError(f"the runs name different baselines ({', '.join(sorted(named))}): choose one by `baseline=`.")
    return "".join(named)


class PairedComparison(NamedTuple):
    """A sampler minus the baseline on one task."""

    pairs: int
    """The examples that both have answered."""
    difference: Interval
    """Of the accuracies, with Newcombe's 95 % interval."""
    test: McNemar
    """`only_a` counts the examples that only the sampler has right, `only_b` those that only the baseline has right."""
    corrected: float
    """McNemar's p-value after Holm's correction over the samplers that are compared on this task."""


class Speedup(NamedTuple):
    """The baseline's cost divided by the sampler's, over the examples that both have answered."""

    pairs: int
    seconds: float | None
    forwards: float | None


@dataclass(frozen=True)
class ModelAnalysis:
    """One model of the results."""

    results: RunResults
    model: str
    choices: Choices

    @cached_property
    def tasks(self) -> list[str]:
        return self.results.tasks(self.model)

    @cached_property
    def samplers(self) -> list[str]:
        return self.results.samplers(self.model)

    @cached_property
    def metrics(self) -> list[str]:
        """The chosen metrics that this model's samples have."""
        found = [score for task in self.tasks for score in self._scores(task).values()]
        return [metric for metric in self.choices.metrics if any(score.right(metric) for score in found)]

    @property
    def baseline(self) -> str:
        """The baseline, if this model has answers of it; else empty."""
        return self.choices.baseline if self.choices.baseline in self.results.answered_samplers(self.model) else ""

    @property
    def others(self) -> list[str]:
        """The samplers that are compared with the baseline."""
        return [label for label in self.samplers if self.baseline and label != self.baseline]

    @property
    def baseline_note(self) -> str:
        """A sentence if the baseline has answered nothing or not everything; else empty."""
        name, metric = self.choices.baseline, self.choices.metric
        if not name or len(self.samplers) < 2 or not self.results.answered_samplers(self.model):
            return ""
        if not self.baseline:
            return (
                f"No sampler is compared, because {self.model} has no answers of the baseline {name}: --baseline LABEL "
                "names another one."
            )
        scores = {task: self.score(name, task) for task in self.tasks}
        parts = [
            f"{task} {len(score.right(metric)) if score else 0} of {self.results.total(task)}"
            for task, score in scores.items()
            if score is None or not score.is_complete(metric)
        ]
        if not parts:
            return ""
        return (
            f"The baseline {name} has not answered all examples ({', '.join(parts)}): samplers are compared on those "
            "that both have answered."
        )

    def score(self, sampler: str, task: str) -> CellScore | None:
        return self.results.scores.get((self.model, task, sampler))

    def accuracy(self, sampler: str, task: str, metric: str) -> Interval | None:
        score = self.score(sampler, task)
        return score.accuracy(metric) if score else None

    def is_complete(self, sampler: str, task: str, metric: str) -> bool:
        score = self.score(sampler, task)
        return score is not None and score.is_complete(metric)

    def average(self, sampler: str, metric: str) -> Interval | None:
        """The mean over all tasks; None if one of them is missing or incomplete."""
        if not self._has_all(sampler, metric):
            return None
        found = [self.accuracy(sampler, task, metric) for task in self.tasks]
        return mean_of_intervals([one for one in found if one is not None])

    @cached_property
    def comparisons(self) -> dict[tuple[str, str], PairedComparison]:
        """By sampler and task, for the chosen metric. Samplers without a common example are left out."""
        found = dict[tuple[str, str], PairedComparison]()
        for task in self.tasks:
            scores = self._scores(task)
            base = scores[self.baseline].right(self.choices.metric) if self.baseline in scores else {}
            pairs = dict[str, tuple[list[bool], list[bool]]]()
            for label in self.others:
                right = scores[label].right(self.choices.metric) if label in scores else {}
                if common := right.keys() & base.keys():
                    pairs[label] = [right[id] for id in common], [base[id] for id in common]
            corrected = corrected_tests(pairs)
            for label, pair in pairs.items():
                difference, test = newcombe(*pair), mcnemar(*pair)
                found[label, task] = PairedComparison(len(pair[0]), difference, test, corrected[label].p)
        return found

    def average_difference(self, sampler: str) -> Interval | None:
        """The mean difference over all tasks; None if one of them is missing or incomplete."""
        metric = self.choices.metric
        if not (self._has_all(sampler, metric) and self._has_all(self.baseline, metric)):
            return None
        return mean_of_intervals([self.comparisons[sampler, task].difference for task in self.tasks])

    def cost(self, sampler: str, task: str | None = None) -> Cost:
        """Of one task, or of all."""
        scores = [self.score(sampler, one) for one in (self.tasks if task is None else [task])]
        return Cost.of(sample for score in scores if score for sample in score.samples.values())

    def speedup(self, sampler: str, task: str | None = None) -> Speedup:
        """Over the baseline on one task, or on all of them together."""
        ours, theirs = list[RunSample](), list[RunSample]()
        for one in self.tasks if task is None else [task]:
            score, base = self.score(sampler, one), self.score(self.baseline, one)
            if score and base:
                common = sorted(score.samples.keys() & base.samples.keys())
                ours += [score.samples[id] for id in common]
                theirs += [base.samples[id] for id in common]
        cost, before = Cost.of(ours), Cost.of(theirs)
        seconds = before.seconds / cost.seconds if before.seconds and cost.seconds else None
        forwards = before.forwards / cost.forwards if before.forwards and cost.forwards else None
        return Speedup(len(ours), seconds, forwards)

    @cached_property
    def families(self) -> dict[str, list[str]]:
        return families(self.samplers)

    def aup(self, family: str, task: str) -> float | None:
        """The AUP of a family on a task, from its complete cells."""
        metric = self.choices.metric
        complete = [label for label in self.samplers if self.is_complete(label, task, metric)]
        accuracies = {one: self.accuracy(one, task, metric) for one in complete}
        best = max((100 * one.estimate for one in accuracies.values() if one), default=0.0)
        points = []
        for label in self.families[family]:
            parallelism, accuracy = self.cost(label, task).tokens_per_forward, accuracies.get(label)
            if accuracy and parallelism is not None:
                points.append(BudgetPoint(parallelism, 100 * accuracy.estimate))
        return aup(points, best)

    @property
    def paper_model(self) -> str:
        """The model whose rows of the paper are shown."""
        return self.model if self.model in paper_tables().models else self.choices.paper_model or self.model

    def paper_key(self, sampler: str) -> tuple[str, str, str] | None:
        """The row of the paper for a sampler."""
        names = [(self.model, task, sampler) for task in self.tasks]
        table = next((self.results.papers[name] for name in names if name in self.results.papers), "")
        return paper_tables().find(self.paper_model, sampler, table)

    def figure(self, sampler: str, column: str) -> Figure | None:
        """The paper's figure. Its average is given only beside ours of the same tasks."""
        key = self.paper_key(sampler)
        if key is None or (column == AVERAGE and set(self.tasks) != set(paper_tables().sizes)):
            return None
        return paper_tables().figure(key, column)

    def _scores(self, task: str) -> dict[str, CellScore]:
        return {label: score for label in self.samplers if (score := self.score(label, task)) is not None}

    def _has_all(self, sampler: str, metric: str) -> bool:
        return all(self.is_complete(sampler, task, metric) for task in self.tasks)
