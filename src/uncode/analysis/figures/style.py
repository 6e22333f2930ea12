"""One style for all figures: colours that colour-blind readers can tell apart, few lines, no global state."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.errors import require
from ...util.extras import needed
from ...util.stats import Interval
from ...util.write import write_whole

FORMATS = {"png": "Software", "pdf": "Creator", "svg": "Creator"}
"""For each format, the field that names the program."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d", "#8c6d31")
"""Okabe and Ito's palette without yellow, which is too light for lines."""
GREY = "0.45"
RIGHT = "right, % (95 % interval)"
"""The label of an axis of accuracies."""
DPI = 160
STYLE = {"svg.hashsalt": "uncode", "font.size": 9, "axes.titlesize": 9.5}


def new_figure(width: float, height: float) -> Any:
    """An empty figure, in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def check_format(path: Path) -> str:
    """The format of a figure's file, from its name."""
    kind = path.suffix.lstrip(".").lower()
    require(kind in FORMATS, f"a figure is a .png, .pdf or .svg file, not '{path.name}'.")
    return kind


def style() -> Any:
    """A context in which figures have our style."""
    return needed("matplotlib", "plots", "a figure").rc_context(STYLE)


def picture(figure: Any, kind: str) -> bytes:
    """The figure as a file. The same figure gives the same bytes, so no date is kept."""
    content = io.BytesIO()
    date = {"Date": None} if kind == "svg" else {"CreationDate": None} if kind == "pdf" else {}
    figure.savefig(content, format=kind, metadata={FORMATS[kind]: "uncode", **date})
    return content.getvalue()


def save(figure: Any, path: Path) -> None:
    """Write a figure into a .png, .pdf or .svg file."""
    write_whole(path, picture(figure, check_format(path)))


def grid_of_panels(count: int, width: float, height: float) -> tuple[Any, list[Any]]:
    """A figure with this many panels of a size, at most three beside each other."""
    columns = min(3, count)
    lines = -(-count // columns)
    figure = new_figure(width * columns + 0.4, height * lines)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes in panels[count:]:
        axes.set_axis_off()
    return figure, list(panels[:count])


def share_legend(figure: Any, panels: list[Any]) -> None:
    """One legend below all panels, which must have the same lines."""
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)


def tidy(axes: Any) -> None:
    """Leave out what does not inform: two spines, and all but faint horizontal lines."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)


def bars(axes: Any, shares: Sequence[tuple[str, Interval | None]], label: str = RIGHT) -> None:
    """A horizontal bar for each name, from top to bottom: a share in per cent with its interval."""
    for number, (_, interval) in enumerate(shares):
        if interval is not None:
            share, low, high = (100 * value for value in interval)
            axes.barh([number], [share], height=0.6, color=COLOURS[number % len(COLOURS)], alpha=0.85)
            axes.errorbar([share], [number], xerr=[[share - low], [high - share]], fmt="none", color="0.2", capsize=2)
    axes.set_yticks(range(len(shares)), [name for name, _ in shares])
    axes.set_ylim(len(shares) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.set_xlabel(label)
    axes.spines[["top", "right"]].set_visible(False)


def points(axes: Any, places: Any, intervals: list[Interval], colour: str, label: str, marker: str = "o") -> None:
    """Shares in per cent as points with their intervals, joined by a line."""
    shares = [100 * one.estimate for one in intervals]
    below = [100 * (one.estimate - one.low) for one in intervals]
    above = [100 * (one.high - one.estimate) for one in intervals]
    axes.errorbar(
        places,
        shares,
        yerr=[below, above],
        color=colour,
        marker=marker,
        markersize=4,
        linewidth=1.2,
        capsize=2,
        label=label,
    )
