"""The figure of a calibration: mean predictive entropy, and accuracy where it is known, against the rate."""

from __future__ import annotations

import io
from pathlib import Path

from ...core.errors import require
from ...core.support.write import write_whole
from ...extras import needed
from .calibrate import RateChoice, accuracies

FORMATS = {"png": "Software", "pdf": "Creator", "svg": "Creator"}
"""For each format, the field that names the program."""
BLUE, RED = "#1f5fa8", "#c0392b"


def draw_rates(choice: RateChoice, title: str, path: Path) -> None:
    """Draw the figure into a .png, .pdf or .svg file."""
    needed("matplotlib", "plots", "a figure")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.2), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    rates = sorted(choice.entropies)
    places = range(len(rates))  # the candidates are not evenly spaced
    axes.plot(places, [choice.entropies[rate] for rate in rates], "o-", color=BLUE)
    axes.set_ylabel("mean predictive entropy, nats", color=BLUE)
    axes.set_xlabel("rate")
    axes.set_xticks(places, [f"{rate:g}" for rate in rates])
    axes.axvline(rates.index(choice.rate), color="0.8", zorder=0)
    axes.set_title(f"{title}: rate {choice.rate:g} is chosen", fontsize=10)
    if all(sample.grades for samples in choice.samples.values() for sample in samples):
        found = accuracies(choice)
        beside = axes.twinx()
        beside.plot(places, [100 * found[rate].estimate for rate in rates], "s--", color=RED)
        low = [100 * (found[rate].estimate - found[rate].low) for rate in rates]
        high = [100 * (found[rate].high - found[rate].estimate) for rate in rates]
        beside.errorbar(
            places, [100 * found[rate].estimate for rate in rates], yerr=[low, high], fmt="none", color=RED, alpha=0.4
        )
        beside.set_ylabel("accuracy, %", color=RED)
    content = io.BytesIO()
    kind = path.suffix.lstrip(".").lower()
    require(kind in FORMATS, f"a figure is a .png, .pdf or .svg file, not '{path.name}'.")
    figure.savefig(content, format=kind, metadata={FORMATS[kind]: "uncode"})
    write_whole(path, content.getvalue())
