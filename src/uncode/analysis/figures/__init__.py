"""The figures, drawn with matplotlib and without the global state of pyplot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..analyze import Analysis
from . import panels, sweeps
from .style import check_format, save, style


def draw(analysis: Analysis, path: Path) -> None:
    """Draw the figure of an analysis into a .png, .pdf or .svg file."""
    check_format(path)
    with style():
        save(figure_of(analysis), path)


def figure_of(analysis: Analysis) -> Any:
    """The matplotlib figure of an analysis, to change or to save."""
    return _DRAWN[analysis.kind](analysis)


_DRAWN: dict[str, Callable[[Analysis], Any]] = {
    "heatmap": panels.heat_maps,
    "planning": sweeps.planning,
    "trivial": panels.trivial,
    "rejection": sweeps.rejection,
    "anchors": panels.anchors,
    "answers": panels.answers,
    "entropy": panels.entropy,
    "accuracy": panels.accuracy,
    "hyperparameters": sweeps.hyperparameters,
    "rates": sweeps.rates,
    "priors": sweeps.priors,
    "corpora": sweeps.corpora,
    "efficiency": sweeps.efficiency,
}
