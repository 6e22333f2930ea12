"""The figure of a calibration: mean predictive entropy, and accuracy where it is known, against the rate."""

from __future__ import annotations

from pathlib import Path

from ...analysis.figures.style import COLOURS, check_format, new_figure, points, save, style
from .calibrate import RateChoice, accuracies

ENTROPY, ACCURACY = COLOURS[:2]


def draw_rates(choice: RateChoice, title: str, path: Path) -> None:
    """Draw the figure into a .png, .pdf or .svg file."""
    check_format(path)
    with style():
        figure = new_figure(5, 3.2)
        axes = figure.add_subplot()
        rates = sorted(choice.entropies)
        places = range(len(rates))  # the candidates are not evenly spaced
        axes.plot(places, [choice.entropies[rate] for rate in rates], "o-", color=ENTROPY)
        axes.set_ylabel("mean predictive entropy, nats", color=ENTROPY)
        axes.set_xlabel("rate")
        axes.set_xticks(places, [f"{rate:g}" for rate in rates])
        axes.axvline(rates.index(choice.rate), color="0.8", zorder=0)
        axes.set_title(f"{title}: rate {choice.rate:g} is chosen")
        if all(sample.grades for samples in choice.samples.values() for sample in samples):
            found, beside = accuracies(choice), axes.twinx()
            points(beside, places, [found[rate] for rate in rates], ACCURACY, "accuracy", "s")
            beside.set_ylabel("accuracy, %", color=ACCURACY)
        save(figure, path)
