"""Findings of the mini-suite in plain sentences. The numbers and their intervals decide the wording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, median

from ....util.stats import Interval, holm, mcnemar
from .. import report
from ..names import PLANNING, RATES, REASONING, UNCODE, with_rate
from ..results import Results
from .agreement import SIGNIFICANCE
from .claims import sign_of

EASY_ACCURACY = 0.99
"""A family with this median accuracy or more does not distinguish the samplers."""
FIXED = frozenset(with_rate(rate) for rate in RATES)
"""Uncode at a fixed rate. These rows are compared with each other, not with the presets."""
IN_WORDS = {"left_to_right": "left to right", "semi_ar": "semi-AR", UNCODE: "Uncode with label-free rates"}
"""Names of samplers in a sentence, where they differ from the preset's name."""
NO_DIFFERENCE = "there is no significant difference"

Runs = Mapping[int, Results]
"""The results of each seed."""


def findings(runs: Runs) -> list[str]:
    """At most three findings: on reasoning, on planning, on average. Two numbers are of two seeds, in their order.

    A finding is left out if one of its samplers was not run.
    """
    found = [_on_reasoning(runs), _on_planning(runs), _on_average(runs)]
    return [text for text in found if text]


def _on_reasoning(runs: Runs) -> str:
    found = _differences(runs, "confidence", "left_to_right", REASONING)
    if not found:
        return ""
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
    if not found:
        return ""
    ordered = _accuracies(runs, "left_to_right", PLANNING)
    return (
        f"**On planning, {_who('confidence', 'semi_ar', found)}.** Confidence solves "
        f"{_accuracies(runs, 'confidence', PLANNING)} % of the problems, semi-AR "
        f"{_accuracies(runs, 'semi_ar', PLANNING)} % (difference {_points(found)} points)"
        + (f", left to right {ordered} %." if ordered else ".")
    )


def _on_average(runs: Runs) -> str:
    others = ("confidence", "semi_ar")
    found = [_differences(runs, UNCODE, other) for other in others]
    if not all(found):
        return ""
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
    hindsight = "in hindsight" + (f" with seed {seed}" if len(runs) > 1 else "")
    return (
        f" With the rate {rate:g} for all families, the best {hindsight}, Uncode solves "
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
    below = [_shown_below(results, best) for results in runs.values()]
    forwards = _joined([f"{results.forwards(best):.0f}" for results in runs.values()])
    below_with_all = set.intersection(*below) & set(averages)
    return (
        f" Fixed rates aside, `{best}` has {report.best_average(averages)} of these presets: {_accuracies(runs, best)} "
        f"% in {forwards} forwards, and {len(below_with_all)} of the {len(averages) - 1} others are significantly "
        f"worse (exact McNemar test with Holm's correction over them{', with both seeds' if len(runs) > 1 else ''}; "
        "the leaderboard corrects over more rows)."
    )


def _differences(runs: Runs, a: str, b: str, families: Sequence[str] | None = None) -> dict[int, Interval]:
    """The paired difference of two samplers in the run of each seed. Empty if one of them was not run."""
    found = {seed: results.difference(a, b, _known(results, families)) for seed, results in runs.items()}
    whole = {seed: difference for seed, difference in found.items() if difference is not None}
    return whole if len(whole) == len(found) else {}


def _accuracies(runs: Runs, sampler: str, families: Sequence[str] | None = None) -> str:
    """The accuracy in the run of each seed, in per cent."""
    found = [results.average(sampler, _known(results, families)) for results in runs.values()]
    return " and ".join(report.percent(one) for one in found if one is not None)


def _points(found: Mapping[int, Interval]) -> str:
    return " and ".join(report.points([100 * value for value in one]) for one in found.values())


def _who(a: str, b: str, found: Mapping[int, Interval]) -> str:
    """Which of two samplers solves more problems, as far as the intervals of all seeds show it."""
    first, second = (IN_WORDS.get(name, name) for name in (a, b))
    signs = {seed: sign_of(interval) for seed, interval in found.items()}
    claims = []
    for word, sign in (("more", 1), ("fewer", -1)):
        seeds = [seed for seed in signs if signs[seed] == sign]
        only = f" with seed {_joined(seeds)} only" if len(seeds) < len(signs) else ""
        claims += [f"{first} solves {word} problems than {second}{only}"] if seeds else []
    return ", and ".join(claims) or f"{NO_DIFFERENCE} between {first} and {second}"


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


def _shown_below(results: Results, sampler: str) -> set[str]:
    """The presets that are significantly worse than this one on average."""
    marks = {name: solved for name in results.samplers() if (solved := results.solved(name)) is not None}
    tests = {name: mcnemar(marks[sampler], theirs) for name, theirs in marks.items() if name not in {sampler, *FIXED}}
    corrected = holm([test.p for test in tests.values()])
    pairs = zip(tests.items(), corrected, strict=True)
    return {name for (name, test), p in pairs if p < SIGNIFICANCE and test.only_a > test.only_b}


def easy_families(results: Results) -> list[str]:
    """The families that hardly distinguish the samplers."""
    shares = {family: [cell.accuracy.estimate for cell in of.values()] for family, of in results.cells.items()}
    return [family for family, found in shares.items() if median(found) >= EASY_ACCURACY]


def _hasty(results: Results, sampler: str) -> float:
    """The share of the reasoning problems with an EOS token in the first quarter of the forwards, in per cent."""
    cells = [results.cell(family, sampler) for family in _known(results, REASONING)]
    marks = "".join(cell.hasty for cell in cells if cell)
    return 100 * mean(mark == "1" for mark in marks) if marks else 0.0


def _known(results: Results, families: Sequence[str] | None) -> list[str]:
    """Those of the families that the results have; all for None."""
    return [name for name in results.cells if families is None or name in families]
