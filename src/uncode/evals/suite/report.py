"""The mini-suite's tables as rows of text, for the terminal and for the model card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

import numpy as np

from ...util.stats import Interval
from ..report.table import Table
from .names import RATES, UNCODE, UNSEEN, with_rate
from .results import Results


def short(family: str) -> str:
    return family.removeprefix("mini_")


def overview(runs: Mapping[int, Results]) -> Table:
    """One line for each preset: the accuracy on each family in the first run, and the average in the run of each seed.

    The best average comes first. Of Uncode's fixed rates, only the best has a line.
    """
    first = next(iter(runs.values()))
    rows = []
    for name in main_samplers(first):
        averages = [results.average(name) for results in runs.values()]
        cells = [first.cell(family, name) for family in first.cells]
        rows.append(
            [
                label(first, name),
                *("" if cell is None else percent(cell.accuracy) for cell in cells),
                *("" if one is None else percent(one, whole=not n) for n, one in enumerate(averages)),
                f"{first.forwards(name):.0f}",
            ]
        )
    seeds = (f"average, seed {seed}" for seed in runs)
    return Table(["preset", *map(short, first.cells), *seeds, "forwards"], rows)


def main_samplers(results: Results) -> list[str]:
    """The samplers of the main table, by their average, the best first."""
    best = with_rate(best_fixed(results)) if results.entropies else ""
    fixed = {with_rate(rate) for rate in RATES} - {best}
    averages = {name: mean for name in results.samplers() if name not in fixed and (mean := results.average(name))}
    return sorted(averages, key=lambda name: -averages[name].estimate)


def accuracy(results: Results, intervals: bool = False) -> Table:
    """The accuracy of every sampler on every family, the average, and Uncode's lead over the sampler."""
    families = list(results.cells)
    rows = []
    for name in _ordered(results):
        cells = [results.cell(family, name) for family in families]
        cells_text = ["" if c is None else percent(c.accuracy, whole=intervals) for c in cells]
        average = results.average(name)
        mean = "" if average is None else percent(average, whole=True)
        lead = "" if name == UNCODE or name not in results.gaps else points([100 * x for x in results.gaps[name]])
        forwards = [cell.forwards for cell in cells if cell is not None]
        rows.append([label(results, name), *cells_text, mean, lead, f"{np.mean(forwards):.0f}"])
    titles = ["sampler", *(short(f) for f in families), "average", f"{UNCODE} minus it", "forwards"]
    return Table(titles, rows)


def rates(results: Results) -> Table:
    """The mean predictive entropy and the accuracy at every candidate rate."""
    rows = []
    for family, found in results.entropies.items():
        for what in ("entropy", "right, %"):
            cells = [results.cell(family, with_rate(float(rate))) for rate in found]
            values = list(found.values()) if what == "entropy" else [c and 100 * c.accuracy.estimate for c in cells]
            shown = ["" if v is None else f"{v:.3f}" if what == "entropy" else f"{v:.1f}" for v in values]
            chosen = f"{results.rate(family):g}" if what == "entropy" else ""
            rows.append([short(family) if what == "entropy" else "", what, *shown, chosen])
    return Table(["family", "", *(f"{rate:g}" for rate in RATES), "chosen"], rows)


def biases(results: Results) -> Table:
    """When the confidence sampler writes boundary tokens and trivial tokens."""
    boundary = ("first_before_middle", "last_before_middle", "ends_before_middle")
    trivial = ("trivial_early", "trivial_early_left_to_right", "trivial_excess")
    rows = [
        [short(name), *(_interval(of[key]) for key in (*boundary, *trivial))] for name, of in results.biases.items()
    ]
    titles = ["family", "first tenth before the middle", "last tenth before it", "mean of the two"]
    return Table([*titles, "trivial, first quarter", "the same, left to right", "difference"], rows)


def times(results: Results) -> Table:
    """When the confidence sampler writes each tenth of the answer's span."""
    rows = [[short(name), *(_interval(part) for part in of["when"])] for name, of in results.biases.items()]
    parts = len(next(iter(results.biases.values()))["when"])
    return Table(["family", *(f"tenth {n}" for n in range(1, parts + 1))], rows)


def best_average(averages: Mapping[str, Sequence[float]]) -> str:
    """What the sampler with the best mean has, in words: it need not have the best average with every seed."""
    best = max(averages.values(), key=mean)
    is_best = all(value <= most for other in averages.values() for value, most in zip(other, best, strict=True))
    return "the best average" if is_best else "the best mean of the two averages"


def best_fixed(results: Results) -> float:
    """The rate with the best average accuracy, found with the labels."""

    def mean(rate: float) -> float:
        solved = results.solved(with_rate(rate))
        return -1.0 if solved is None else float(solved.mean())

    return max(RATES, key=mean)


def _ordered(results: Results) -> list[str]:
    """The rows in order: baselines, Uncode with chosen rates, with the best fixed rate, other presets, other rates."""
    names = results.samplers()
    if not results.entropies:
        return names
    best = with_rate(best_fixed(results))
    fixed = [with_rate(rate) for rate in RATES if with_rate(rate) != best and with_rate(rate) in names]
    return (
        [name for name in names if name not in (best, UNCODE, *fixed) and not name.startswith(UNCODE)]
        + [name for name in (UNCODE, best) if name in names]
        + [name for name in names if name == UNSEEN or name.startswith(f"{UNCODE}_")]
        + fixed
    )


def label(results: Results, name: str) -> str:
    """The name of a sampler in the tables."""
    if name == UNCODE and results.entropies:
        return f"{UNCODE}, label-free rates"
    if results.entropies and name == with_rate(best_fixed(results)):
        return f"{name}, best fixed rate"
    return name


def percent(interval: Sequence[float], whole: bool = False) -> str:
    """An accuracy in per cent, with its interval if `whole`."""
    estimate, low, high = (100 * value for value in interval)
    return f"{estimate:z.1f} [{low:z.1f}, {high:z.1f}]" if whole else f"{estimate:z.1f}"


def points(interval: Sequence[float]) -> str:
    """A difference in points, or another measure in hundredths, with its interval."""
    return f"{Interval(*interval):+z.1f}"


def _interval(values: Sequence[float | None]) -> str:
    return f"{Interval.read(values):z.2f}"
