"""The tables of a report, from the numbers of each model."""

from __future__ import annotations

from collections.abc import Mapping

from ...util.stats import Interval
from ..paper import paper_tables
from ..paper.tables import AVERAGE
from .analysis import Choices, ModelAnalysis
from .constraints import constrained
from .published import published_tables
from .scores import RunResults
from .table import NONE, Document, Section, TextTable, number, p_value, percent, points, times

SIGNIFICANT = 0.05
DOUBT = "!"
"""Marks a doubtful figure of the paper."""
RULES = {"correct": "our grader", "paper": "the rule of the released code"}


def document(results: RunResults, choices: Choices) -> Document:
    """The whole report: one section per model."""
    titles = list(dict.fromkeys(info.title or info.config for info in results.infos))
    return Document("; ".join(titles), [_section(ModelAnalysis(results, model, choices)) for model in results.models])


def _section(one: ModelAnalysis) -> Section:
    tables = [accuracy(one), *published_tables(one)]
    if one.others:
        tables += [differences(one), tests(one)]
    tables += [constrained(one), costs(one)]
    if one.others:
        tables.append(speedups(one))
    if one.families:
        tables.append(parallelism(one))
    notes = [one.baseline_note] if one.baseline_note else []
    if one.choices.with_paper:
        beside = paper_table(one)
        tables += [] if beside is None else [beside]
        notes += [no_figures(one)] if beside is None else []
    return Section(one.model, [table for table in tables if table.rows], notes)


def accuracy(one: ModelAnalysis) -> TextTable:
    """The accuracy of every sampler on every task by each rule, and the average."""
    rows, best = [], frozenset[tuple[int, int]]()
    for metric in one.metrics:
        best |= _best(one, metric, len(one.metrics), one.metrics.index(metric))
    for sampler in one.samplers:
        for metric in one.metrics:
            cells = [_accuracy_cell(one, sampler, task, metric) for task in one.tasks]
            average = one.average(sampler, metric)
            rows.append([sampler, metric, *cells, percent(average) if average else NONE])
    rules = [f"'{metric}' is {RULES[metric]}" for metric in one.metrics if metric in RULES]
    notes = [
        f"{_sizes(one)}.",
        f"In brackets: 95 % Wilson intervals. {', '.join(rules)}." if rules else "In brackets: 95 % Wilson intervals.",
        "The average is the mean over the tasks; its interval adds the squares of theirs. There is none where a task "
        "is missing or incomplete (n of N).",
    ]
    titles = ["sampler", "rule", *one.tasks, "average"]
    return TextTable(titles, rows, "Accuracy, %", notes, best, labels=2)


def differences(one: ModelAnalysis) -> TextTable:
    """Each sampler minus the baseline, by the chosen metric."""
    rows = []
    for sampler in one.others:
        cells = [_difference_cell(one, sampler, task) for task in one.tasks]
        average = one.average_difference(sampler)
        rows.append([sampler, *cells, points(average) if average else NONE])
    notes = [
        "Over the examples that both have answered; in brackets: Newcombe's 95 % intervals for paired shares.",
        f"A star marks a p-value of McNemar's test below {SIGNIFICANT} after Holm's correction.",
    ]
    caption = f"Difference from {one.baseline}, points ({one.choices.metric})"
    return TextTable(["sampler", *one.tasks, "average"], rows, caption, notes)


def tests(one: ModelAnalysis) -> TextTable:
    """McNemar's test of each sampler against the baseline on each task."""
    rows = []
    for task in one.tasks:
        for sampler in one.others:
            if found := one.comparisons.get((sampler, task)):
                only_it, only_base, p = found.test
                counts = [str(value) for value in (found.pairs, only_it, only_base)]
                rows.append([task, sampler, *counts, points(found.difference), p_value(p), p_value(found.corrected)])
    titles = ["task", "sampler", "n", "only it right", "only baseline right", "difference, points", "p", "Holm p"]
    notes = [
        "n counts the examples that both have answered. Holm's correction is over the samplers that are listed for a "
        "task."
    ]
    return TextTable(titles, rows, f"Paired tests against {one.baseline} ({one.choices.metric})", notes, labels=2)


def costs(one: ModelAnalysis) -> TextTable:
    """What an answer costs, over all tasks."""
    rows = []
    for sampler in one.samplers:
        cost = one.cost(sampler)
        if cost.answers:
            means = [number(cost.forwards / cost.answers), number(cost.seconds / cost.answers)]
            rows.append([sampler, str(cost.answers), number(cost.tokens_per_forward), *means, number(cost.seconds)])
    titles = ["sampler", "answers", "tokens per forward", "forwards", "seconds", "seconds in all"]
    notes = ["Means per answer, over all tasks. Tokens are those before the first EOS."]
    return TextTable(titles, rows, "Cost", notes)


def speedups(one: ModelAnalysis) -> TextTable:
    """The baseline's cost divided by each sampler's, in seconds and in forwards."""
    rows = []
    for sampler in one.others:
        for what in ("seconds", "forwards"):
            found = [one.speedup(sampler, task) for task in (*one.tasks, None)]
            values = [times(speed.seconds if what == "seconds" else speed.forwards) for speed in found]
            rows.append([sampler, what, *values, str(found[-1].pairs)])
    titles = ["sampler", "of", *one.tasks, "all", "n"]
    notes = ["Ratios of totals over the n examples that both have answered."]
    return TextTable(titles, rows, f"Speed-up over {one.baseline}", notes, labels=2)


def parallelism(one: ModelAnalysis) -> TextTable:
    """The AUP of samplers that were run at several budgets."""
    rows = []
    for family, members in one.families.items():
        found = [one.aup(family, task) for task in one.tasks]
        known = [value for value in found if value is not None]
        mean = sum(known) / len(known) if len(known) == len(found) else None
        rows.append([family, str(len(members)), *(number(value) for value in found), number(mean)])
    notes = [
        "Area under accuracy (%) against tokens per forward, as d3LLM defines it; complete cells only.",
    ]
    titles = ["sampler", "budgets", *one.tasks, "average"]
    return TextTable(titles, rows, f"Accuracy under parallelism ({one.choices.metric})", notes)


def paper_table(one: ModelAnalysis) -> TextTable | None:
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
            cells = [_paper_cell(one, sampler, column, metric) for column in columns]
            rows.append([sampler, metric, *cells, *([_paper_speed(one, sampler)] if with_speed else [])])
    titles = ["sampler", "rule", *columns, *(["speed-up"] if with_speed else [])]
    return TextTable(titles, rows, caption, _paper_notes(one, known, columns), labels=2)


def no_figures(one: ModelAnalysis) -> str:
    """The sentence in place of the table, where nothing of ours has a counterpart in the paper."""
    tables, models = paper_tables().names, paper_tables().models
    ours = f"{', '.join(one.samplers)} on {', '.join(one.tasks)} by {one.paper_model}"
    other = "" if one.paper_model in models else ", and --paper-model ID names one of its models instead"
    return f"The paper has no figures of {ours}: its tables are {', '.join(tables)}{other}."


def _paper_cell(one: ModelAnalysis, sampler: str, column: str, metric: str) -> str:
    """`ours (paper's, difference)`."""
    is_average, figure = column == AVERAGE, one.figure(sampler, column)
    ours = one.average(sampler, metric) if is_average else one.accuracy(sampler, column, metric)
    shown = NONE if ours is None else f"{100 * ours.estimate:z.1f}"
    if figure is not None:
        theirs = f"{figure.value:.1f}{DOUBT if figure.doubt else ''}"
        shown += f" ({theirs})" if ours is None else f" ({theirs}, {100 * ours.estimate - figure.value:+z.1f})"
    if is_average:
        return shown
    score = one.score(sampler, column)
    is_partial = score is not None and not score.is_complete(metric)
    return f"{shown} ({len(score.right(metric))} of {score.total})" if score and is_partial else shown


def _paper_speed(one: ModelAnalysis, sampler: str) -> str:
    """Our speed-up over the baseline, and the paper's."""
    key = one.paper_key(sampler)
    theirs = paper_tables().speedups.get(key) if key else None
    ours = one.speedup(sampler).seconds if sampler != one.baseline else 1.0
    return times(ours) if theirs is None else f"{times(ours)} ({times(theirs)})"


def _paper_notes(one: ModelAnalysis, samplers: list[str], columns: list[str]) -> list[str]:
    notes = [
        "Ours, then in parentheses the paper's figure and ours minus the paper's.",
        f"Source: {paper_tables().paper}.",
    ]
    others = []
    for task, size in paper_tables().sizes.items():
        totals = {score.total for (_, name, _), score in one.results.scores.items() if name == task}
        if task in one.tasks and totals != {size}:
            others.append(f"{task} {max(totals)} against {size}")
    if others:
        notes.append(f"The numbers of examples differ from the paper's: {', '.join(others)}.")
    figures = [one.figure(sampler, column) for sampler in samplers for column in columns]
    marked = [figure for figure in figures if figure and figure.doubt]
    doubts = [f"{figure.sampler}, {figure.column}, {figure.value:.1f}: {figure.doubt}" for figure in marked]
    if doubts:
        notes.append(f"{DOUBT} marks figures of the paper that cannot be right or are doubtful: {'; '.join(doubts)}.")
    return notes


def _accuracy_cell(one: ModelAnalysis, sampler: str, task: str, metric: str) -> str:
    score = one.score(sampler, task)
    if score is None:
        return NONE
    found = score.accuracy(metric)
    count = "" if score.is_complete(metric) else f"({len(score.right(metric))} of {score.total})"
    return f"{percent(found)} {count}".strip() if found else count


def _difference_cell(one: ModelAnalysis, sampler: str, task: str) -> str:
    found = one.comparisons.get((sampler, task))
    if found is None:
        return NONE
    score = one.score(sampler, task)
    assert score is not None
    mark = "*" if found.corrected < SIGNIFICANT else ""
    count = "" if found.pairs == score.total else f" (n {found.pairs})"
    return f"{points(found.difference, mark)}{count}"


def _best(one: ModelAnalysis, metric: str, stride: int, offset: int) -> frozenset[tuple[int, int]]:
    """The cells with the best accuracy of a metric, among the complete ones of each column; none if all are equal."""
    if len(one.samplers) < 2:
        return frozenset()
    columns: list[Mapping[str, Interval | None]] = [
        {s: one.accuracy(s, task, metric) for s in one.samplers if one.is_complete(s, task, metric)}
        for task in one.tasks
    ]
    columns.append({sampler: one.average(sampler, metric) for sampler in one.samplers})
    found = set()
    for position, column in enumerate(columns):
        estimates = {sampler: value.estimate for sampler, value in column.items() if value}
        top = max(estimates.values(), default=0.0)
        are_tied = len(estimates) > 1 and len(set(estimates.values())) == 1
        best = [] if are_tied else [sampler for sampler, value in estimates.items() if value == top > 0]
        rows = [one.samplers.index(sampler) for sampler in best]
        found |= {(row * stride + offset, position + 2) for row in rows}
    return frozenset(found)


def _sizes(one: ModelAnalysis) -> str:
    """The number of examples of each task, and of its benchmark if that has more."""
    sizes = paper_tables().sizes
    parts = []
    for task in one.tasks:
        total = one.results.total(task)
        whole = sizes.get(task, total)
        parts.append(f"{task} {total}" + (f" of {whole}" if whole > total else ""))
    return "Examples: " + ", ".join(parts)
