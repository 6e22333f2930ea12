"""The paper's claims, each as a number of one run with its interval, and whether it holds in every run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from uncode.analysis import task_groups
from uncode.evals.suite.names import UNCODE
from uncode.evals.suite.results import Results
from uncode.util.stats import Interval

REASONING, PLANNING, PROGRAMS = (
    tuple(task for task in task_groups.GROUPS[kind] if task.startswith("mini_"))
    for kind in (task_groups.REASONING, task_groups.PLANNING, task_groups.PROGRAMS)
)
GROUPS = {"programs": PROGRAMS, "reasoning": REASONING, "planning": PLANNING}
"""Every family is in one group. The paper's claims are about reasoning and planning."""


class Claim(NamedTuple):
    """A claim, what is measured for it, and the measure. The claim holds if the measure is above 0."""

    text: str
    measure: str
    find: Callable[[Results], Interval | None]
    """A share: of the problems, or of the decode. None if the results do not have it."""


def _bias(key: str) -> Callable[[Results], Interval | None]:
    return lambda results: Interval.read(results.biases["all"][key]) if results.biases else None


def _lead(a: str, b: str, families: Sequence[str] | None = None) -> Callable[[Results], Interval | None]:
    return lambda results: results.difference(a, b, families)


EARLIER = "earlier than the middle, in % of the decode"
TRIVIAL = "their share in the first quarter of the text, minus left to right's, in points"
CLAIMS = (
    Claim("Confidence writes the two ends first, taken together", f"ends {EARLIER}", _bias("ends_before_middle")),
    Claim("… the last tenth of the span", f"last tenth {EARLIER}", _bias("last_before_middle")),
    Claim("… the first tenth of the span", f"first tenth {EARLIER}", _bias("first_before_middle")),
    Claim("Confidence writes trivial tokens first", TRIVIAL, _bias("trivial_excess")),
    Claim(
        "Confidence is below semi-AR on reasoning",
        "semi_ar minus confidence, in points",
        _lead("semi_ar", "confidence", REASONING),
    ),
    Claim(
        "Confidence is above semi-AR on planning",
        "confidence minus semi_ar, in points",
        _lead("confidence", "semi_ar", PLANNING),
    ),
    Claim(
        "Confidence is above left to right on countdown",
        "confidence minus left_to_right, in points",
        _lead("confidence", "left_to_right", ["mini_countdown"]),
    ),
    Claim(
        "Confidence is above left to right on sudoku",
        "confidence minus left_to_right, in points",
        _lead("confidence", "left_to_right", ["mini_sudoku"]),
    ),
    Claim("Uncode is above confidence on average", "uncode minus confidence, in points", _lead(UNCODE, "confidence")),
    Claim("Uncode is above semi-AR on average", "uncode minus semi_ar, in points", _lead(UNCODE, "semi_ar")),
)


HOLDS = "holds"
"""The verdict on a claim whose measure is above 0 in every run."""


def sign_of(interval: Interval) -> int:
    """1 if the whole interval is above 0, -1 if it is below, else 0."""
    return 1 if interval.low > 0 else -1 if interval.high < 0 else 0


def verdict(found: Mapping[int, Interval]) -> str:
    """Whether a claim holds, given its measure in the run of each seed."""
    signs = {seed: sign_of(interval) for seed, interval in found.items()}
    holding, contrary = ([seed for seed, sign in signs.items() if sign == wanted] for wanted in (1, -1))
    if len(holding) == len(signs):
        return HOLDS
    if len(contrary) == len(signs):
        return "does not hold: the opposite does"
    if not any(signs.values()):
        return "does not hold: the difference is not significant"
    if not holding:
        return "does not hold"
    opposite = f"; the opposite with seed {' and '.join(map(str, contrary))}" if contrary else ""
    return f"only with seed {' and '.join(map(str, holding))}{opposite}"
