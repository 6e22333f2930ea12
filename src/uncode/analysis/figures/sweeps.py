"""Figures of accuracy against a setting of the sampler: rejection, rate, clip, priors, corpora, speed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.errors import UncodeError
from ...util.stats import Interval, pearson
from .. import choose
from ..analyze import Analysis
from ..measures.outcomes import ByTask, Outcomes, average
from ..task_groups import PLANNING, REASONING, SUDOKU, of_group
from .style import COLOURS, RIGHT, bars, grid_of_panels, new_figure, points, tidy

SUBSETS = {"all tasks but Sudoku": False, "Sudoku": True}


def planning(analysis: Analysis) -> Any:
    """Accuracy on reasoning and on planning, one bar for each sampler."""
    groups = analysis.groups
    figure = new_figure(8.2, 0.36 * len(_labels(groups)) + 1.1)
    for axes, kind in zip(figure.subplots(1, 2), (REASONING, PLANNING), strict=True):
        tasks = of_group(kind, dict.fromkeys(group.task for group in groups))
        if not tasks:
            raise UncodeError(f"the traces hold no task of {kind}: decode one too.")
        labels = [label for label in _labels(groups) if any(task in choose.by_label(groups, label) for task in tasks)]
        ours = {label: choose.by_label(groups, label) for label in labels}
        bars(axes, [(name, average({task: one[task] for task in tasks if task in one})) for name, one in ours.items()])
        axes.set_title(f"{kind}: {', '.join(tasks)}")
    return figure


def rejection(analysis: Analysis) -> Any:
    """Accuracy against the probability with which trivial tokens are rejected, one line for each task."""
    found = choose.varied(analysis.groups, "rejection", choose.BASE)
    figure = new_figure(5.4, 3.6)
    axes = figure.subplots()
    for number, task in enumerate(_tasks(found)):
        values = [value for value in found if task in found[value]]
        shares = [found[value][task].share for value in values]
        points(axes, values, shares, COLOURS[number % len(COLOURS)], task)
    axes.set_xlabel("probability p of rejecting a trivial token")
    axes.set_xticks([float(str(value)) for value in found])
    _finish(axes)
    return figure


def hyperparameters(analysis: Analysis) -> Any:
    """Accuracy against rate and clip, with Sudoku apart."""
    figure = new_figure(8.6, 3.5)
    for axes, setting in zip(figure.subplots(1, 2, sharey=True), ("rate", "clip"), strict=True):
        found = choose.varied(analysis.groups, setting, choose.UNCODE)
        values = list(found)
        for number, (name, is_sudoku) in enumerate(SUBSETS.items()):
            complete = [value for value in values if _subset(found[value], is_sudoku)]
            shares = [average(_subset(found[value], is_sudoku)) for value in complete]
            places = [values.index(value) for value in complete]
            if complete:
                points(axes, places, shares, COLOURS[number], name, "os"[number])
        axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
        axes.set_xlabel("rate of the positional prior" if setting == "rate" else "clip of the informativeness prior")
        _finish(axes)
    return figure


def rates(analysis: Analysis) -> Any:
    """Mean predictive entropy and accuracy over the rates, one panel for each task."""
    found = choose.varied(analysis.groups, "rate", choose.UNCODE)
    tasks = _tasks(found)
    figure, panels = grid_of_panels(len(tasks), 3.9, 2.8)
    for axes, task in zip(panels, tasks, strict=True):
        _draw_rates(axes, task, {value: found[value][task] for value in found if task in found[value]})
    return figure


def _draw_rates(axes: Any, task: str, outcomes: Mapping[Any, Outcomes]) -> None:
    entropies = [one.mean_entropy for one in outcomes.values()]
    known = [one.estimate for one in entropies if one is not None]
    if len(known) < len(entropies):
        raise UncodeError(f"the traces of {task} have no entropy of all masks: decode again with --observe-span.")
    shares = [one.share for one in outcomes.values()]
    places = range(len(outcomes))
    axes.plot(places, known, color=COLOURS[0], marker="o", markersize=3.5, linewidth=1.2)
    axes.set_ylabel("mean entropy, nats", color=COLOURS[0])
    axes.set_xticks(places, [f"{value:g}" for value in outcomes])
    axes.set_xlabel("rate")
    other = axes.twinx()
    points(other, places, shares, COLOURS[1], "right", "s")
    other.set_ylabel("right, %", color=COLOURS[1])
    axes.spines["top"].set_visible(False)
    other.spines["top"].set_visible(False)
    r = correlation(outcomes)
    axes.set_title(task if r is None else f"{task}: r = {r.estimate:.2f}")


def correlation(outcomes: Mapping[Any, Outcomes]) -> Interval | None:
    """Pearson's r of mean entropy and accuracy over the rates; None if one of them does not vary."""
    entropies = [one.mean_entropy for one in outcomes.values()]
    known = [one.estimate for one in entropies if one is not None]
    if len(known) < len(entropies):
        return None
    try:
        return pearson(known, [one.share.estimate for one in outcomes.values()])
    except UncodeError:
        return None


def priors(analysis: Analysis) -> Any:
    """Average accuracy without a prior, with each, and with both."""
    return _averages(choose.priors(analysis.groups), "average over {} tasks")


def corpora(analysis: Analysis) -> Any:
    """Average accuracy of Uncode with each frequency table."""
    found = choose.varied(analysis.groups, "table", choose.UNCODE)
    return _averages({f"table {value}": one for value, one in found.items()}, "Uncode, average over {} tasks")


def _averages(found: Mapping[str, ByTask], title: str) -> Any:
    figure = new_figure(5.6, 0.4 * len(found) + 1.0)
    axes = figure.subplots()
    bars(axes, [(name, average(by_task)) for name, by_task in found.items()])
    axes.set_title(title.format(len(next(iter(found.values())))))
    return figure


def efficiency(analysis: Analysis) -> Any:
    """Average accuracy against the speed-up in forwards; an arrow leads from each sampler to the same with Uncode."""
    found = choose.efficient(analysis.groups)
    base = found[choose.BASE]
    places = {name: (choose.speed_up(one, base), average(one)) for name, one in found.items()}
    figure = new_figure(5.8, 3.8)
    axes = figure.subplots()
    partners = {theirs: ours for ours, theirs in choose.EFFICIENT.items()}
    for number, (name, (speed, share)) in enumerate(places.items()):
        colour = COLOURS[list(places).index(partners[name]) % len(COLOURS)] if partners.get(name) in places else ""
        points(axes, [speed], [share], colour or COLOURS[number % len(COLOURS)], name, "s" if name in partners else "o")
    for name, partner in choose.EFFICIENT.items():
        if name in places and partner in places:
            (x, one), (other_x, two) = places[name], places[partner]
            ends = {"xytext": (x, 100 * one.estimate), "xy": (other_x, 100 * two.estimate)}
            axes.annotate("", **ends, arrowprops={"arrowstyle": "->", "color": "0.5", "shrinkA": 6, "shrinkB": 6})
    axes.set_xscale("log", base=2)
    ticks = [2**n for n in range(8) if 2**n <= 2 * max(speed for speed, _ in places.values())]
    axes.set_xticks(ticks, [f"{tick}x" for tick in ticks])
    axes.set_xlabel(f"speed-up in forwards over {choose.BASE}")
    axes.set_title(f"average over {len(base)} tasks")
    _finish(axes)
    return figure


def _finish(axes: Any) -> None:
    axes.set_ylabel(RIGHT)
    lowest = axes.get_ylim()[0]
    axes.set_ylim(max(0, 10 * (lowest // 10)), 102)
    tidy(axes)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def _labels(groups: Mapping[Any, Outcomes]) -> list[str]:
    return list(dict.fromkeys(group.sampler for group in groups))


def _tasks(found: Mapping[Any, ByTask]) -> list[str]:
    return list(dict.fromkeys(task for by_task in found.values() for task in by_task))


def _subset(by_task: ByTask, is_sudoku: bool) -> dict[str, Outcomes]:
    return {task: one for task, one in by_task.items() if (task in SUDOKU) == is_sudoku}
