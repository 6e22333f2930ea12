"""The numbers of a report as flat records, for CSV and JSON: one per model, sampler, task and metric.

Accuracies, differences and the paper's figures are shares from 0 to 1. AUP is in per cent, as d3LLM has it, and so are
the published figures of a run's config, a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...util.stats import Interval
from ..paper import Figure
from ..paper.tables import AVERAGE
from .analysis import Choices, ModelAnalysis
from .published import published_figures, shown_figures
from .scores import RunResults

FIELDS = (
    *("model", "sampler", "task", "metric", "n", "total", "right", "accuracy", "low", "high"),
    *("baseline", "pairs", "difference", "difference_low", "difference_high"),
    *("only_sampler", "only_baseline", "mcnemar_p", "holm_p"),
    *("tokens_per_forward", "forwards", "seconds", "speedup", "forwards_ratio"),
    *("aup", "paper", "paper_difference", "paper_doubt", "published"),
)
Record = dict[str, Any]


def records(results: RunResults, choices: Choices) -> list[Record]:
    """All records, every one with all fields. A value that does not exist is None."""
    found = []
    for model in results.models:
        one = ModelAnalysis(results, model, choices)
        found += [*_cells(one), *_averages(one), *_parallelism(one)]
    return [dict.fromkeys(FIELDS) | record for record in found]


def _cells(one: ModelAnalysis) -> Iterator[Record]:
    published = {k: v for info in one.results.infos for k, v in published_figures(info.published).items()}
    for sampler in one.samplers:
        for task in one.tasks:
            score = one.score(sampler, task)
            for metric in one.metrics if score else ():
                assert score is not None
                right, accuracy = score.right(metric), score.accuracy(metric)
                record = _name(one, sampler, task, metric) | {"n": len(right), "total": score.total}
                record |= {"right": sum(right.values())} | _interval(accuracy, "accuracy", "low", "high")
                if theirs := published.get((sampler, task)):
                    record["published"] = shown_figures(theirs)
                record |= _costs(one, sampler, task) | _paper(one.figure(sampler, task), accuracy, one)
                yield record | (_comparison(one, sampler, task) if metric == one.choices.metric else {})


def _averages(one: ModelAnalysis) -> Iterator[Record]:
    for sampler in one.samplers:
        for metric in one.metrics:
            accuracy = one.average(sampler, metric)
            record = _name(one, sampler, AVERAGE, metric) | _interval(accuracy, "accuracy", "low", "high")
            record |= _costs(one, sampler, None) | _paper(one.figure(sampler, AVERAGE), accuracy, one)
            if metric == one.choices.metric and sampler in one.others:
                difference = one.average_difference(sampler)
                record |= {"baseline": one.baseline} | _interval(difference, *FIELDS[12:15])
            yield record


def _parallelism(one: ModelAnalysis) -> Iterator[Record]:
    for family in one.families:
        for task in one.tasks:
            yield _name(one, family, task, one.choices.metric) | {"aup": one.aup(family, task)}


def _name(one: ModelAnalysis, sampler: str, task: str, metric: str) -> Record:
    return {"model": one.model, "sampler": sampler, "task": task, "metric": metric}


def _interval(value: Interval | None, estimate: str, low: str, high: str) -> Record:
    return {} if value is None else dict(zip((estimate, low, high), value, strict=True))


def _comparison(one: ModelAnalysis, sampler: str, task: str) -> Record:
    found = one.comparisons.get((sampler, task))
    if found is None:
        return {}
    only_it, only_base, p = found.test
    record = {"baseline": one.baseline, "pairs": found.pairs, "only_sampler": only_it, "only_baseline": only_base}
    tests = {"mcnemar_p": p, "holm_p": found.corrected}
    return record | tests | _interval(found.difference, *FIELDS[12:15])


def _costs(one: ModelAnalysis, sampler: str, task: str | None) -> Record:
    """The means per answer, and the speed-up over the baseline."""
    cost = one.cost(sampler, task)
    if not cost.answers:
        return {}
    means = {"forwards": cost.forwards / cost.answers, "seconds": cost.seconds / cost.answers}
    record = {"tokens_per_forward": cost.tokens_per_forward} | means
    if sampler in one.others:
        speed = one.speedup(sampler, task)
        record |= {"speedup": speed.seconds, "forwards_ratio": speed.forwards}
    return record


def _paper(figure: Figure | None, ours: Interval | None, one: ModelAnalysis) -> Record:
    if figure is None or not one.choices.with_paper:
        return {}
    value = figure.value / 100
    difference = None if ours is None else ours.estimate - value
    return {"paper": value, "paper_difference": difference, "paper_doubt": figure.doubt or None}
