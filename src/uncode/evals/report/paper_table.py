"""The paper's figures beside ours."""

from __future__ import annotations

from ...util.stats import Interval
from ..paper import Figure, paper_tables
from ..paper.tables import AVERAGE
from .analysis import Analysis
from .table import Table
from .text import NONE, times

DOUBT = "!"


def paper_table(one: Analysis) -> Table | None:
    """Ours, the paper's and the difference, for every sampler of which the paper has a figure; None if it has none."""
    columns = [*one.tasks, *([AVERAGE] if set(one.tasks) == set(paper_tables().sizes) else [])]
    known = [sampler for sampler in one.samplers if any(one.figure(sampler, column) for column in columns)]
    if not known:
        return None
    caption = f"Beside the paper's figures, % ({one.paper_model})"
    with_speed = bool(one.baseline) and any(one.paper_key(sampler) in paper_tables().speedups for sampler in known)
    rows = []
    for sampler in known:
        for metric in one.metrics:
            cells = [_cell(one, sampler, column, metric) for column in columns]
            rows.append([sampler, metric, *cells, *([_speed(one, sampler)] if with_speed else [])])
    titles = ["sampler", "rule", *columns, *(["speed-up"] if with_speed else [])]
    return Table(titles, rows, caption, _notes(one, known, columns), labels=2)


def no_figures(one: Analysis) -> str:
    """The sentence in place of the table, where nothing of ours has a counterpart in the paper."""
    tables, models = paper_tables().names, paper_tables().models
    ours = f"{', '.join(one.samplers)} on {', '.join(one.tasks)} by {one.paper_model}"
    other = "" if one.paper_model in models else ", and --paper-model ID names one of its models instead"
    return f"The paper has no figures of {ours}: its tables are {', '.join(tables)}{other}."


def _cell(one: Analysis, sampler: str, column: str, metric: str) -> str:
    """`ours (paper's, difference)`."""
    ours, figure = _ours(one, sampler, column, metric), one.figure(sampler, column)
    shown = NONE if ours is None else f"{100 * ours.estimate:z.1f}"
    if figure is not None:
        theirs = f"{figure.value:.1f}{DOUBT if figure.doubt else ''}"
        shown += f" ({theirs})" if ours is None else f" ({theirs}, {100 * ours.estimate - figure.value:+z.1f})"
    if column == AVERAGE:
        return shown
    score = one.score(sampler, column)
    is_partial = score is not None and not score.is_complete(metric)
    return f"{shown} ({len(score.right(metric))} of {score.total})" if score and is_partial else shown


def _ours(one: Analysis, sampler: str, column: str, metric: str) -> Interval | None:
    return one.average(sampler, metric) if column == AVERAGE else one.accuracy(sampler, column, metric)


def _speed(one: Analysis, sampler: str) -> str:
    """Our speed-up over the baseline, and the paper's."""
    key = one.paper_key(sampler)
    theirs = paper_tables().speedups.get(key) if key else None
    ours = one.speedup(sampler).seconds if sampler != one.baseline else 1.0
    return times(ours) if theirs is None else f"{times(ours)} ({times(theirs)})"


def _notes(one: Analysis, samplers: list[str], columns: list[str]) -> list[str]:
    notes = [
        "Ours, then in parentheses the paper's figure and ours minus the paper's.",
        f"Source: {paper_tables().paper}.",
        *_other_sizes(one),
    ]
    figures = [one.figure(sampler, column) for sampler in samplers for column in columns]
    doubts = [_doubt(figure) for figure in figures if figure and figure.doubt]
    if doubts:
        notes.append(f"{DOUBT} marks figures of the paper that cannot be right or are doubtful: {'; '.join(doubts)}.")
    return notes


def _doubt(figure: Figure) -> str:
    return f"{figure.sampler}, {figure.column}, {figure.value:.1f}: {figure.doubt}"


def _other_sizes(one: Analysis) -> list[str]:
    """A note on tasks of which we have another number of examples than the paper."""
    found = []
    for task, size in paper_tables().sizes.items():
        totals = {score.total for (_, name, _), score in one.results.scores.items() if name == task}
        if task in one.tasks and totals != {size}:
            found.append(f"{task} {max(totals)} against {size}")
    return [f"The numbers of examples differ from the paper's: {', '.join(found)}."] if found else []
