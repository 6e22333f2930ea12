"""Findings of the mini-suite in plain sentences. The numbers and their intervals decide the wording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, median
from typing import NamedTuple

from uncode.evals.report.table import TextTable
from uncode.evals.suite import report
from uncode.evals.suite.board import SIGNIFICANCE
from uncode.evals.suite.names import RATES, UNCODE, with_rate
from uncode.evals.suite.results import Results
from uncode.util.stats import Interval, corrected_tests

from ..agreement import best_average
from .claims import PLANNING, REASONING, sign_of

EASY_ACCURACY = 0.99
"""A family with this median accuracy or more does not distinguish the samplers."""
FIXED = frozenset(with_rate(rate) for rate in RATES)
"""Uncode at a fixed rate. These rows are compared with each other, not with the presets."""
IN_WORDS = {"left_to_right": "left to right", "semi_ar": "semi-AR", UNCODE: "Uncode with label-free rates"}
"""Names of samplers in a sentence, where they differ from the preset's name."""

Runs = Mapping[int, Results]
"""The results of each seed."""


class Finding(NamedTuple):
    """A claim in one sentence, and its figures."""

    text: str
    figures: TextTable

    def markdown(self) -> str:
        return f"**{self.text}**\n\n{self.figures.markdown()}"


def findings(runs: Runs) -> list[Finding]:
    """Four claims with their figures, a column for each seed: on reasoning, on planning, on average, the best row."""
    return [_on_reasoning(runs), _on_planning(runs), _on_average(runs), _best(runs)]


def _on_reasoning(runs: Runs) -> Finding:
    found = _differences(runs, "confidence", "left_to_right", REASONING)
    names = ("confidence", "left_to_right")
    begins = {name: [f"{_hasty(results, name):.0f}" for results in runs.values()] for name in names}
    return _finding(
        f"On reasoning, {_who('confidence', 'left_to_right', found)}",
        runs,
        {name: _accuracies(runs, name, REASONING) for name in names}
        | {"confidence minus left_to_right": list(map(report.points, found.values()))}
        | {f"{name}: EOS in the first quarter of the forwards": shares for name, shares in begins.items()},
    )


def _on_planning(runs: Runs) -> Finding:
    found = _differences(runs, "confidence", "semi_ar", PLANNING)
    names = ("confidence", "semi_ar", "left_to_right")
    return _finding(
        f"On planning, {_who('confidence', 'semi_ar', found)}",
        runs,
        {name: _accuracies(runs, name, PLANNING) for name in names}
        | {"confidence minus semi_ar": list(map(report.points, found.values()))},
    )


def _on_average(runs: Runs) -> Finding:
    others = ("confidence", "semi_ar")
    found = {other: _differences(runs, UNCODE, other) for other in others}
    who = [_who(UNCODE, other, one) for other, one in found.items()]
    rows = {name: _accuracies(runs, name) for name in (UNCODE, *others)}
    rows |= {f"{UNCODE} minus {other}": list(map(report.points, one.values())) for other, one in found.items()}
    first = next(iter(runs.values()))
    if first.entropies:
        rate = report.best_fixed(first)
        rows[f"{with_rate(rate)}, the best fixed rate, in hindsight"] = _accuracies(runs, with_rate(rate))
    return _finding(f"On average, {_both(*who)}", runs, rows)


def _best(runs: Runs) -> Finding:
    """The preset with the best average, and how many others are significantly worse with every seed."""
    averages = {
        name: [found.estimate for found in of if found]
        for name in next(iter(runs.values())).samplers()
        if name not in FIXED and all(of := [results.average(name) for results in runs.values()])
    }
    best = max(averages, key=lambda name: mean(averages[name]))
    worse = set.intersection(*(_worse(results, best) for results in runs.values())) & set(averages)
    forwards = [f"{results.forwards(best):.0f}" for results in runs.values()]
    return _finding(
        f"`{best}` has {best_average(averages)} of these presets, significantly better than {len(worse)} of "
        f"{len(averages) - 1} others",
        runs,
        {best: _accuracies(runs, best), f"{best}: forwards": forwards},
    )


def _finding(text: str, runs: Runs, rows: Mapping[str, Sequence[str]]) -> Finding:
    titles = ["% of the problems, or points", *(f"seed {seed}" for seed in runs)]
    return Finding(f"{text}.", TextTable(titles, [[name, *row] for name, row in rows.items()]))


def _differences(runs: Runs, a: str, b: str, families: Sequence[str] | None = None) -> dict[int, Interval]:
    """The paired difference of two samplers in the run of each seed."""
    found = {seed: results.difference(a, b, families) for seed, results in runs.items()}
    return {seed: difference for seed, difference in found.items() if difference is not None}


def _accuracies(runs: Runs, sampler: str, families: Sequence[str] | None = None) -> list[str]:
    """The accuracy in the run of each seed, in per cent."""
    found = [results.average(sampler, families) for results in runs.values()]
    return [report.percent(one) for one in found if one is not None]


def _who(a: str, b: str, found: Mapping[int, Interval]) -> str:
    """Which of two samplers solves more problems, as far as the intervals of all seeds show it."""
    first, second = (IN_WORDS.get(name, name) for name in (a, b))
    signs = {seed: sign_of(interval) for seed, interval in found.items()}
    claims = []
    for word, sign in (("more", 1), ("fewer", -1)):
        seeds = [seed for seed in signs if signs[seed] == sign]
        only = f" with seed {_joined(seeds)} only" if len(seeds) < len(signs) else ""
        claims += [f"{first} solves {word} problems than {second}{only}"] if seeds else []
    return ", and ".join(claims) or f"there is no significant difference between {first} and {second}"


def _both(first: str, second: str) -> str:
    """What holds against confidence and against semi-AR: one sentence if it is the same."""
    if first.replace("confidence", "semi-AR") != second:
        return f"{first}; {second}"
    return first.replace(
        " confidence",
        " confidence or semi-AR" if "no significant difference" in first else " confidence and than semi-AR",
    )


def _joined(values: Sequence[object]) -> str:
    """The values of all seeds; one if they are equal."""
    return " and ".join(dict.fromkeys(map(str, values)))


def _worse(results: Results, sampler: str) -> set[str]:
    """The presets that are significantly worse than this one on average."""
    marks = {name: solved for name in results.samplers() if (solved := results.solved(name)) is not None}
    others = [name for name in marks if name not in {sampler, *FIXED}]
    tests = corrected_tests({name: (marks[sampler], marks[name]) for name in others})
    return {name for name, test in tests.items() if test.p < SIGNIFICANCE and test.only_a > test.only_b}


def easy_families(results: Results) -> list[str]:
    """The families that hardly distinguish the samplers."""
    shares = {family: [cell.accuracy.estimate for cell in of.values()] for family, of in results.cells.items()}
    return [family for family, found in shares.items() if median(found) >= EASY_ACCURACY]


def _hasty(results: Results, sampler: str) -> float:
    """The share of the reasoning problems with an EOS token in the first quarter of the forwards, in per cent."""
    marks = "".join(cell.hasty for family in REASONING if (cell := results.cell(family, sampler)))
    return 100 * mean(mark == "1" for mark in marks)
