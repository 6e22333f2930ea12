"""Our accuracies beside the figures that others publish for the same settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...util.stats import Interval
from .analysis import ModelAnalysis
from .table import NONE, TextTable, percent

RULES = {
    "correct": "our grader",
    "paper": "released rule",
    "paper_strict": "strict",
}
"""The metrics that are shown, and their columns. On GSM8K the released rule is lm-eval's flexible-extract, and
`paper_strict` its strict-match."""
OUTSIDE = "*"


def published_tables(one: ModelAnalysis) -> list[TextTable]:
    """A table for each run that names published figures of samplers that this model was decoded with."""
    runs = [info.published for info in one.results.infos if info.published]
    tables = [_table(one, published) for published in runs]
    return [table for table in tables if table.rows]


def published_figures(published: Mapping[str, Any]) -> dict[tuple[str, str], list[tuple[str, float]]]:
    """By sampler and task, who measured what, in per cent."""
    figures = dict[tuple[str, str], list[tuple[str, float]]]()
    for row in published.get("rows", ()):
        for task, value in row["figures"].items():
            figures.setdefault((row["sampler"], task), []).append((row["by"], value))
    return figures


def shown_figures(found: list[tuple[str, float]]) -> str:
    return ", ".join(f"{value:.1f}" + (f" ({by})" if by else "") for by, value in found)


def _table(one: ModelAnalysis, published: Mapping[str, Any]) -> TextTable:
    figures = published_figures(published)
    known = {name: found for name, found in figures.items() if one.score(*name) is not None}
    metrics = [metric for metric in RULES if any(_accuracy(one, name, metric) for name in known)]
    rows = []
    for (sampler, task), found in known.items():
        cells = [_cell(one, (sampler, task), metric, [value for _, value in found]) for metric in metrics]
        rows.append([sampler, task, shown_figures(found), *cells])
    notes = [f"In brackets: our 95 % Wilson intervals. {OUTSIDE} marks one that holds no published figure of its row."]
    if "paper_strict" in metrics:
        notes.append("On gsm8k the released rule is lm-eval's flexible-extract, and strict its strict-match.")
    notes.append(f"Source: {published['source']}.")
    if published["differs"]:
        notes.append(f"What differs there: {published['differs']}")
    titles = ["sampler", "task", "published, %", *(f"ours, {RULES[metric]}" for metric in metrics)]
    return TextTable(titles, rows, "Beside the published figures, %", notes, labels=3)


def _cell(one: ModelAnalysis, name: tuple[str, str], metric: str, theirs: list[float]) -> str:
    ours, score = _accuracy(one, name, metric), one.score(*name)
    assert score is not None
    if ours is None:
        return NONE
    outside = not any(100 * ours.low <= value <= 100 * ours.high for value in theirs)
    count = "" if score.is_complete(metric) else f" ({len(score.right(metric))} of {score.total})"
    return percent(ours) + OUTSIDE * outside + count


def _accuracy(one: ModelAnalysis, name: tuple[str, str], metric: str) -> Interval | None:
    sampler, task = name
    return one.accuracy(sampler, task, metric)
