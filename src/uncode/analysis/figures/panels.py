"""Figures with one panel for each model and task: heat maps, trivial tokens, answers, accuracy, entropy, anchors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.support.reprs import counted
from .. import choose
from ..analyze import Analysis
from ..measures.heat_map import HeatMap
from ..read_traces import Group
from .style import COLOURS, GREY, bars, grid_of_panels, new_figure, share_legend, tidy

MAX_COLUMNS = 4
"""Heat maps beside each other."""
MAX_SCATTER = 400
"""Answers of a group that are drawn as points; the means are of all."""


def _panels(analysis: Analysis) -> list[list[tuple[Group, Any]]]:
    """The groups of each model and task."""
    found: dict[tuple[str, str], list[tuple[Group, Any]]] = {}
    for group, one in analysis.groups.items():
        found.setdefault(group[:2], []).append((group, one))
    return list(found.values())


def _title(analysis: Analysis, group: Group) -> str:
    """The task and, where several are shown, the model."""
    several = len({one.model for one in analysis.groups}) > 1
    words = [group.task, group.model if several or not group.task else ""]
    return ", ".join(filter(None, words))


def heat_maps(analysis: Analysis) -> Any:
    """One map for each group, at most four beside each other, and the accuracies beside them."""
    panels = [panel[at : at + MAX_COLUMNS] for panel in _panels(analysis) for at in range(0, len(panel), MAX_COLUMNS)]
    columns = max(map(len, panels))
    has_bars = any(one.accuracy is not None for one in analysis.groups.values())
    figure = new_figure(2.9 * (columns + has_bars) + 0.9, 2.9 * len(panels) + 0.3)
    all_axes = figure.subplots(len(panels), columns + has_bars, squeeze=False)
    image = None
    for line, panel in zip(all_axes, panels, strict=True):
        for axes in line[len(panel) : columns]:
            axes.set_axis_off()
        for axes, (group, one) in zip(line, panel, strict=False):
            image = heat_map(axes, one)
            axes.set_title(_map_title(group, one))
        steps = "part of the decode" if analysis.parts else "step"
        names = _title(analysis, panel[0][0])
        line[0].set_ylabel(f"{names}\n{steps}" if names else steps)
        if has_bars:
            bars(line[columns], [(group.sampler, one.accuracy) for group, one in panel])
    for axes in all_axes[-1][:columns]:
        axes.set_xlabel("part of the span" if analysis.parts else "position in the span")
    size = {"shrink": 0.8, "aspect": 22 * len(panels)}
    figure.colorbar(image, ax=all_axes[:, :columns], label="probability of being unmasked", **size)
    return figure


def heat_map(axes: Any, one: HeatMap) -> Any:
    """Draw one map, positions from left to right and steps upwards. Returns the image, for a colour bar."""
    positions, steps = one.probability.shape
    extent = (0, 1, 0, 1) if one.parts else (-0.5, positions - 0.5, -0.5, steps - 0.5)
    look = {"origin": "lower", "aspect": "auto", "cmap": "Blues", "interpolation": "nearest"}
    return axes.imshow(one.probability.T, vmin=0, vmax=1, extent=extent, **look)


def _map_title(group: Group, one: HeatMap) -> str:
    title = f"{group.sampler} ({counted(one.traces, 'trace')})"
    return title if one.boundary is None else f"{title}\nboundary first {one.boundary.index:z.2f}"


def accuracy(analysis: Analysis) -> Any:
    """One panel for each model and task, one bar for each sampler."""
    panels = _panels(analysis)
    figure = new_figure(3.3 * len(panels) + 0.6, 0.42 * max(map(len, panels)) + 1.1)
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        bars(axes, [(group.sampler, one.share) for group, one in panel])
        axes.set_title(f"{_title(analysis, panel[0][0])} ({counted(panel[0][1].traces, 'trace')} each)")
    return figure


def _lines(analysis: Analysis, label: str, draw_line: Callable[[Any, Any, Any, str, str], None]) -> Any:
    """One panel for each model and task, one line for each sampler. Several panels share one legend."""
    panels = _panels(analysis)
    figure, all_axes = grid_of_panels(len(panels), 4.6, 3.4)
    for axes, panel in zip(all_axes, panels, strict=True):
        for number, (group, one) in enumerate(panel):
            steps = len(one.columns()["step"])
            places = (np.arange(steps) + 0.5) / steps if analysis.parts else np.arange(steps)
            name = group.sampler if len(panels) > 1 else f"{group.sampler} ({counted(one.traces, 'trace')})"
            draw_line(axes, places, one, name, COLOURS[number % len(COLOURS)])
        axes.set_title(_title(analysis, panel[0][0]))
        axes.set_xlabel("part of the decode" if analysis.parts else "step")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        tidy(axes)
        _draw_reference(analysis, panel[0][0], axes)
    if len(panels) == 1:
        all_axes[0].legend(frameon=False, fontsize=8)
    else:
        share_legend(figure, all_axes)
    return figure


def _draw_reference(analysis: Analysis, group: Group, axes: Any) -> None:
    """The line of the reference traces, if there are any."""
    found = analysis.reference_of(group)
    if found is not None:
        name = f"{found[0].sampler} overall (stands in for an autoregressive model)"
        axes.axhline(100 * found[1].estimate, color=GREY, linestyle="--", linewidth=1, label=name)


def trivial(analysis: Analysis) -> Any:
    """The share of trivial tokens over the decode."""
    is_alone = len(_panels(analysis)) == 1

    def line(axes: Any, places: Any, one: Any, name: str, colour: str) -> None:
        overall = f", overall {one.overall.percent(0)}" if one.overall is not None and is_alone else ""
        axes.plot(places, 100 * one.share, color=colour, linewidth=1.2, label=name + overall)

    return _lines(analysis, "trivial tokens, % of the text committed", line)


def entropy(analysis: Analysis) -> Any:
    def line(axes: Any, places: Any, one: Any, name: str, colour: str) -> None:
        axes.plot(places, one.mean, color=colour, linewidth=1.2, label=name)
        axes.fill_between(
            places, one.mean - one.half_width, one.mean + one.half_width, color=colour, alpha=0.18, linewidth=0
        )

    return _lines(analysis, "entropy of the masks, nats (95 % band)", line)


def answers(analysis: Analysis) -> Any:
    """For each model and task: time and entropy of every answer, and the share of early answers."""
    panels = _panels(analysis)
    figure = new_figure(8.6, 3.3 * len(panels) + 0.2)
    rows = figure.subplots(len(panels), 2, squeeze=False, width_ratios=(1.25, 1))
    for (points, shares), panel in zip(rows, panels, strict=True):
        for number, (group, one) in enumerate(panel):
            _draw_answers(points, COLOURS[number % len(COLOURS)], group, one)
        points.set_xlim(-0.02, 1.02)
        points.set_ylim(bottom=0)
        points.set_xlabel("time of the answer's commit (0 first step, 1 last)")
        points.set_ylabel("entropy at commit, nats")
        points.set_title(f"{_title(analysis, panel[0][0])}: when the answer is committed")
        points.legend(frameon=False, fontsize=8)
        tidy(points)
        early = [(f"{group.sampler}\n{counted(len(one.step), 'answer')}", one.early) for group, one in panel]
        bars(shares, early, "answers committed before half of the reasoning, %")
        shares.set_title("answer before reasoning (95 % interval)")
    return figure


def _draw_answers(points: Any, colour: str, group: Group, one: Any) -> None:
    shown = np.linspace(0, len(one.time) - 1, min(len(one.time), MAX_SCATTER)).astype(int)
    points.scatter(one.time[shown], one.entropy[shown], s=9, color=colour, alpha=0.3, linewidths=0)
    time, entropy = one.mean_time, one.mean_entropy
    if entropy is not None:
        name = f"{group.sampler}: mean step {one.mean_step.estimate:.1f}, {entropy.estimate:.2f} nats"
        points.plot([time.estimate], [entropy.estimate], "o", color=colour, markeredgecolor="white", label=name)


def anchors(analysis: Analysis) -> Any:
    """For each place of the anchor: when each offset is written, and how much earlier than without the anchor."""
    places = choose.anchored(analysis.groups)
    figure = new_figure(8.6, 2.9 * len(places) + 0.3)
    for (ranks, spread), (place, found) in zip(
        figure.subplots(len(places), 2, squeeze=False), places.items(), strict=True
    ):
        control = choose.control_of(analysis.groups, found[0][0])
        ranks.plot(control.mean, color="0.55", linestyle="--", linewidth=1, label="no anchor")
        for number, (_, one) in enumerate(found):
            colour, earlier = COLOURS[number % len(COLOURS)], one.spread(control)
            ranks.plot(one.mean, color=colour, linewidth=1.2, label=f"anchor {one.text!r}")
            spread.plot(earlier.distance, earlier.earlier, color=colour, linewidth=1.2, label=f"anchor {one.text!r}")
        ranks.axvline(place, color="0.8", linewidth=1)
        ranks.set_xlabel("position in the span")
        ranks.set_ylabel("mean rank (0 first, 1 last)")
        ranks.set_title(f"{found[0][0].task}: anchor at position {place}")
        spread.axhline(0, color="0.7", linewidth=1)
        spread.set_xlabel("distance from the anchor")
        spread.set_ylabel("earlier than without, ranks")
        spread.set_title("what the anchor changes around it")
        for axes in (ranks, spread):
            tidy(axes)
            axes.legend(frameon=False, fontsize=8)
    return figure
