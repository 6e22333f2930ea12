"""The figure of the card: average accuracy against the mean number of forwards, for every preset and both seeds."""

from __future__ import annotations

from collections.abc import Mapping

from .. import report
from ..names import UNCODE
from ..results import Results
from ..scatter import Point, Scatter, draw_scatter


def draw_accuracy(runs: Mapping[int, Results], kind: str = "svg") -> bytes:
    """The figure as the content of an .svg or .png file. Uncode and its variants are highlighted."""
    points, first = _points(runs), next(iter(runs.values()))
    labels = {name: _short_label(first, name) for name in points}
    return draw_scatter(Scatter(points, labels, [name for name in points if name.startswith(UNCODE)], [UNCODE]), kind)


def _points(runs: Mapping[int, Results]) -> dict[str, dict[int, Point]]:
    """For each preset of the main table its point in the run of each seed."""
    found = dict[str, dict[int, Point]]()
    for name in report.main_samplers(next(iter(runs.values()))):
        for seed, results in runs.items():
            average, forwards = results.average(name), results.forwards(name)
            if average is not None and forwards is not None:
                found.setdefault(name, {})[seed] = Point(forwards, 100 * average.estimate)
    return found


def _short_label(first: Results, name: str) -> str:
    """The names of the main table; the best fixed rate is one of Uncode's."""
    return f"{name} (best fixed)" if report.label(first, name) != name and name != UNCODE else name
