"""A figure of samplers: average accuracy against the mean number of forwards, a mark for each seed.

The leaderboard is drawn so, and so is any other choice of samplers, as a `Scatter`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import cos, hypot, pi, sin
from typing import Any, NamedTuple

import numpy as np

from ...analysis.figures.style import picture
from ...util.extras import needed
from .board import Board

BLUE, GREY = "#1f5fa8", "#6b6b6b"
"""Highlighted samplers; all others."""
FRONT_STYLES = ("-", "--")
"""The lines of the Pareto fronts, by seed."""
LETTERS_PER_INCH = 10
"""Of the note under the plot, with room for the legend beside it."""
LINE_HEIGHT = 0.16
"""Of a line of the note, in inches."""
FAR_BELOW = 3
"""A preset that is this many interquartile ranges below the first quartile is named below the plot instead."""
LABEL_DISTANCES = (7, 10, 14, 20, 27, 35, 45, 57, 70)
"""Distances of a label from its mark that are tried in turn, in pixels at 100 dpi."""
LABEL_ANGLES = [k * pi / 12 for k in (0, 24, 3, 21, 6, 18, 12, 9, 15, 1, 23, 11, 13, 4, 20, 8, 16, 5, 19, 7, 17)]
"""Directions that are tried in turn: to the right, above, below, to the left, then those between."""
LINE_POINTS = 64
MAX_PLAIN_DISTANCE = 12
"""A label that is further away gets a line to its mark."""
BOARD_SIZE = (11, 7)
"""In inches; a leaderboard has more names than other figures."""


class Point(NamedTuple):
    """A preset in one run."""

    forwards: float
    accuracy: float
    """In per cent."""


Points = Mapping[str, Mapping[int, Point]]
"""By sampler, then by seed."""


class Box(NamedTuple):
    """A rectangle in pixels."""

    x0: float
    y0: float
    x1: float
    y1: float

    def overlaps(self, other: Box) -> bool:
        return self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1

    def is_inside(self, other: Box) -> bool:
        return other.x0 <= self.x0 and self.x1 <= other.x1 and other.y0 <= self.y0 and self.y1 <= other.y1


@dataclass(frozen=True)
class Scatter:
    """What the figure shows."""

    points: Points
    """Names are placed in this order."""
    labels: Mapping[str, str]
    """The text beside the mark of a sampler."""
    highlighted: Collection[str]
    bold: Collection[str] = ()
    fronts: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """The Pareto front of each seed, from the fewest forwards to the most."""
    size: tuple[float, float] = (9, 5.4)
    """In inches."""

    def color(self, name: str) -> str:
        return BLUE if name in self.highlighted else GREY

    @property
    def seeds(self) -> list[int]:
        return list(dict.fromkeys(seed for of in self.points.values() for seed in of))


def draw_board(board: Board, kind: str = "svg") -> bytes:
    """The leaderboard's figure: rows on the Pareto front of any seed are highlighted, and each front is drawn."""
    points = {
        name: {seed: Point(one.forwards, 100 * one.average.estimate) for seed, one in of.items()}
        for name, of in board.standings.items()
    }
    on_front = {name for front in board.fronts.values() for name in front}
    labels = {name: f"{name} (best fixed)" if name == board.hindsight else name for name in points}
    return draw_scatter(Scatter(points, labels, on_front, on_front, board.fronts, BOARD_SIZE), kind)


def draw_scatter(scatter: Scatter, kind: str = "svg") -> bytes:
    """The figure as the content of an .svg or .png file. The same points give the same bytes."""
    matplotlib = needed("matplotlib", "plots", "the figure")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["svg.hashsalt"] = "uncode"
        return picture(_figure(scatter), kind)


def _figure(scatter: Scatter) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown, hidden = _split(scatter.points)
    figure = Figure(figsize=scatter.size, dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    note = _named_below(hidden, round(LETTERS_PER_INCH * scatter.size[0])) if hidden else []
    bottom = 0.1 + len(note) * LINE_HEIGHT / scatter.size[1]
    axes = figure.add_axes((0.07, bottom, 0.91, 0.98 - bottom))
    axes.set_xscale("log")
    axes.set_xlabel("mean forwards per answer (log scale)", fontsize=9)
    axes.set_ylabel("average accuracy, %", fontsize=9)
    axes.tick_params(labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.93", zorder=0)
    for name, of in shown.items():
        color = scatter.color(name)
        axes.plot(*zip(*of.values(), strict=True), color=color, alpha=0.35, linewidth=0.8, zorder=2)
        for number, point in enumerate(of.values()):
            face = "white" if number else color
            axes.plot(*point, "o", markersize=6, markerfacecolor=face, markeredgecolor=color, zorder=3)
    _set_limits(axes, shown)
    _set_ticks(axes)
    _add_labels(axes, shown, scatter, _add_fronts(axes, scatter, shown))
    _add_legend(figure, axes, scatter.seeds)
    if note:
        figure.text(0.07, 0.015, "\n".join(note), fontsize=8, color="0.25")
    return figure


def _add_fronts(axes: Any, scatter: Scatter, shown: Points) -> list[Box]:
    """A staircase for each seed: the accuracy that so many forwards can buy. Returns where no other name may stand."""
    right, taken = axes.get_xlim()[1], list[Box]()
    for style, (seed, names) in zip(FRONT_STYLES, scatter.fronts.items(), strict=False):
        points = [shown[name][seed] for name in names if name in shown]
        if not points:
            continue
        corners = [points[0]]
        for point in (*points[1:], Point(right, points[-1].accuracy)):
            corners += [Point(point.forwards, corners[-1].accuracy), point]
        axes.plot(*zip(*corners, strict=True), color=BLUE, linewidth=1, linestyle=style, zorder=2, alpha=0.6)
        text = axes.annotate(
            f"Pareto front, seed {seed}", corners[-1], (-4, 3), textcoords="offset points", ha="right", va="bottom",
            fontsize=8, color=BLUE,
        )  # fmt: skip
        taken.append(Box(*text.get_window_extent(axes.figure.canvas.get_renderer()).extents))
        places = axes.transData.transform(corners)
        for start, end in pairwise(places):
            low, high = np.minimum(start, end), np.maximum(start, end)
            taken.append(Box(*(low - 1), *(high + 1)))
    return taken


def _split(points: Points) -> tuple[Points, Points]:
    """The presets that the plot shows, and those far below all others, which would compress it."""
    values = [point.accuracy for of in points.values() for point in of.values()]
    low, high = np.quantile(values, [0.25, 0.75])
    floor = low - FAR_BELOW * (high - low)
    lowest = {name: min(point.accuracy for point in of.values()) for name, of in points.items()}
    hidden = {name: of for name, of in points.items() if lowest[name] < floor}
    return {name: of for name, of in points.items() if name not in hidden}, hidden


def _named_below(hidden: Points, width: int) -> list[str]:
    """The presets that the plot does not show, in lines that end before the legend."""
    texts = [
        f"{name}, {' and '.join(f'{p.accuracy:.1f} % at {p.forwards:.0f} forwards' for p in of.values())}"
        for name, of in hidden.items()
    ]
    return textwrap.wrap(f"Below the plot: {'; '.join(texts)}.", width)


def _set_limits(axes: Any, shown: Points) -> None:
    points = [point for of in shown.values() for point in of.values()]
    low, high = min(p.accuracy for p in points), max(p.accuracy for p in points)
    room = max(1.0, 0.1 * (high - low))
    axes.set_ylim(low - room, min(high + room, 100.5))
    axes.set_xlim(0.85 * min(p.forwards for p in points), 1.45 * max(p.forwards for p in points))


def _set_ticks(axes: Any) -> None:
    low, high = axes.get_xlim()
    ticks = [value for power in (1, 10, 100) for n in (1, 2, 3, 5, 7) if low <= (value := n * power) <= high]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)


def _add_legend(figure: Any, axes: Any, seeds: list[int]) -> None:
    """The marks of the seeds, beside the title of the horizontal axis, where no point can be."""
    faces = ["white" if number else "0.25" for number in range(len(seeds))]
    marks = [axes.plot([], [], "o", markerfacecolor=face, markeredgecolor="0.25")[0] for face in faces]
    names = [f"seed {seed}" for seed in seeds]
    figure.legend(marks, names, loc="lower right", ncols=len(seeds), fontsize=9, frameon=False, handletextpad=0.2)


def _add_labels(axes: Any, shown: Points, scatter: Scatter, elsewhere: list[Box]) -> None:
    """Write each name near its first mark, where it covers no mark, no line, no other name and no box of `elsewhere`.

    Names are placed from the best preset to the worst. Each takes the first free place of a fixed list of distances and
    directions. If none is free, the name stands to the right of its mark.
    """
    renderer, pixels = axes.figure.canvas.get_renderer(), axes.transData
    inside = Box(*axes.get_window_extent().extents)
    marks = [pixels.transform(list(of.values())) for of in shown.values()]
    taken = [Box(x - 5, y - 5, x + 5, y + 5) for of in marks for x, y in of]
    taken += [Box(x - 1, y - 1, x + 1, y + 1) for of in marks for x, y in _along(of)]
    taken += elsewhere
    for name, of in shown.items():
        point = next(iter(of.values()))
        x, y = pixels.transform(point)
        color, weight = scatter.color(name), "bold" if name in scatter.bold else "normal"
        text = axes.text(*point, scatter.labels[name], fontsize=8, color=color, fontweight=weight, zorder=4)
        extent = text.get_window_extent(renderer)
        box = _free_place(x, y, extent.width, extent.height, taken, inside)
        taken.append(box)
        text.set_position(pixels.inverted().transform((box.x0, box.y0 + (y - extent.y0))))
        _add_line(axes, (x, y), box, color)


def _along(marks: Any) -> Any:
    """Points on the line between the marks of a preset [seeds, 2], close enough that no name fits between them."""
    return np.linspace(marks[0], marks[-1], LINE_POINTS)


def _free_place(x: float, y: float, width: float, height: float, taken: list[Box], inside: Box) -> Box:
    places = [_place(x, y, width, height, *one) for one in product(LABEL_DISTANCES, LABEL_ANGLES)]
    free = (box for box in places if box.is_inside(inside) and not any(box.overlaps(other) for other in taken))
    return next(free, places[0])


def _place(x: float, y: float, width: float, height: float, distance: float, angle: float) -> Box:
    """The box of a label whose nearest edge lies at a distance from its mark, in a direction."""
    centre_x = x + cos(angle) * (distance + width / 2)
    centre_y = y + sin(angle) * (distance + height / 2)
    return Box(centre_x - width / 2, centre_y - height / 2, centre_x + width / 2, centre_y + height / 2)


def _add_line(axes: Any, mark: tuple[float, float], box: Box, color: str) -> None:
    x, y = mark
    near = (min(max(x, box.x0), box.x1), min(max(y, box.y0), box.y1))
    if hypot(near[0] - x, near[1] - y) > MAX_PLAIN_DISTANCE:
        ends = axes.transData.inverted().transform([mark, near])
        axes.plot(*ends.T, color=color, alpha=0.5, linewidth=0.5, zorder=1)
