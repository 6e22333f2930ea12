"""Findings of the mini-suite in plain sentences. The numbers and their intervals decide the wording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, median

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


def findings(runs: Runs) -> list[str]:
    """Three findings: on reasoning, on planning, on average. Two numbers are of two seeds, in their order."""
    return [_on_reasoning(runs), _on_planning(runs), _on_average(runs)]


def _on_reasoning(runs: Runs) -> str:
    found = _differences(runs, "confidence", "left_to_right", REASONING)
    hasty = {name: [_hasty(results, name) for results in runs.values()] for name in ("confidence", "left_to_right")}
    begins = "begins" if min(hasty["confidence"]) > 50 else "does not begin"
    ours, ordered = (_joined([f"{share:.0f}" for share in shares]) for shares in hasty.values())
    return (
        f"**On reasoning, {_who('confidence', 'left_to_right', found)}.** Confidence solves "
        f"{_accuracies(runs, 'confidence', REASONING)} % of the problems, left to right "
        f"{_accuracies(runs, 'left_to_right', REASONING)} % (difference {_points(found)} points). Confidence {begins} "
        f"at the end of the span: on {ours} % of the problems it writes an EOS token in the first quarter of its "
        f"forwards, left to right on {ordered} %."
    )


def _on_planning(runs: Runs) -> str:
    found = _differences(runs, "confidence", "semi_ar", PLANNING)
    return (
        f"**On planning, {_who('confidence', 'semi_ar', found)}.** Confidence solves "
        f"{_accuracies(runs, 'confidence', PLANNING)} % of the problems, semi-AR "
        f"{_accuracies(runs, 'semi_ar', PLANNING)} % (difference {_points(found)} points), left to right "
        f"{_accuracies(runs, 'left_to_right', PLANNING)} %."
    )


def _on_average(runs: Runs) -> str:
    others = ("confidence", "semi_ar")
    found = [_differences(runs, UNCODE, other) for other in others]
    who = [_who(UNCODE, other, one) for other, one in zip(others, found, strict=True)]
    return (
        f"**On average, {_both(*who)}.** Uncode solves {_accuracies(runs, UNCODE)} % of the problems, confidence "
        f"{_accuracies(runs, 'confidence')} % (difference {_points(found[0])} points) and semi-AR "
        f"{_accuracies(runs, 'semi_ar')} % ({_points(found[1])})."
        f"{_best_rate(runs)}{_best(runs)}"
    )


def _best_rate(runs: Runs) -> str:
    """How many problems Uncode solves with the one rate that is best with the first seed."""
    seed, first = next(iter(runs.items()))
    if not first.entropies:
        return ""
    rate = report.best_fixed(first)
    return (
        f" With the rate {rate:g} for all families, the best in hindsight with seed {seed}, Uncode solves "
        f"{_accuracies(runs, with_rate(rate))} %."
    )


def _best(runs: Runs) -> str:
    """The preset with the best average, and how many others are significantly worse with every seed."""
    averages = {
        name: [found.estimate for found in of if found]
        for name in next(iter(runs.values())).samplers()
        if name not in FIXED and all(of := [results.average(name) for results in runs.values()])
    }
    best = max(averages, key=lambda name: mean(averages[name]))
    worse = set.intersection(*(_worse(results, best) for results in runs.values())) & set(averages)
    forwards = _joined([f"{results.forwards(best):.0f}" for results in runs.values()])
    return (
        f" Fixed rates aside, `{best}` has {best_average(averages)} of these presets: {_accuracies(runs, best)} "
        f"% in {forwards} forwards, and {len(worse)} of the {len(averages) - 1} others are significantly "
        "worse (exact McNemar test with Holm's correction over them, with both seeds; "
        "the leaderboard corrects over more rows)."
    )


def _differences(runs: Runs, a: str, b: str, families: Sequence[str] | None = None) -> dict[int, Interval]:
    """The paired difference of two samplers in the run of each seed."""
    found = {seed: results.difference(a, b, families) for seed, results in runs.items()}
    return {seed: difference for seed, difference in found.items() if difference is not None}


def _accuracies(runs: Runs, sampler: str, families: Sequence[str] | None = None) -> str:
    """The accuracy in the run of each seed, in per cent."""
    found = [results.average(sampler, families) for results in runs.values()]
    return " and ".join(report.percent(one) for one in found if one is not None)


def _points(found: Mapping[int, Interval]) -> str:
    return " and ".join(map(report.points, found.values()))


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
