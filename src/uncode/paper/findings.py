"""What the paper found, what this model shows, and whether the two agree. Every sentence is made from an interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ..analysis import choose
from ..analysis.figures.sweeps import correlation
from ..analysis.measures.outcomes import ByTask, accuracy_gain, entropy_gain
from ..analysis.task_groups import PLANNING, REASONING, SUDOKU, of_group
from ..evals.suite.names import UNCODE
from ..util.stats import Interval, difference_of_intervals, mean_interval, mean_of_intervals
from .arrays import Arrays
from .config import LEFT_TO_RIGHT, SEMI_AR

BETTER, EARLIER, HIGHER = ("better", "worse"), ("earlier", "later"), ("higher", "lower")
"""Words for the sign of an effect: positive, negative."""
AGREES, DISAGREES, CANNOT_TELL = "agrees", "disagrees", "cannot tell"
STABLE = 0.02
"""Averages that differ by less are called stable: two points."""
FAST = 1.9
"""A speed-up that counts as twice as fast. The paper's smallest is 1.99."""


@dataclass(frozen=True)
class Finding:
    """One statement of the paper, and the number of this model that speaks for it (positive) or against it."""

    figure: str
    paper: str
    """What the paper found."""
    shown: str
    """What this model shows, with the number."""
    interval: Interval
    """Positive where it agrees with the paper."""

    @property
    def verdict(self) -> str:
        """`cannot tell` whenever the interval holds zero."""
        if self.interval.low > 0:
            return AGREES
        return DISAGREES if self.interval.high < 0 else CANNOT_TELL

    def data(self) -> dict[str, Any]:
        return {
            "figure": self.figure,
            "paper": self.paper,
            "shown": self.shown,
            "interval": self.interval.data(),
            "verdict": self.verdict,
        }


def findings(arrays: Arrays) -> list[Finding]:
    """All findings, in the order of the report."""
    finders = (
        _boundary, _planning, _trivial, _rejection, _anchors, _answers, _entropy, _hyperparameters, _rates, _priors,
        _corpora, _efficiency,
    )  # fmt: skip
    return [one for find in finders for one in find(arrays)]


def _effect(
    figure: str,
    paper: str,
    words: str,
    found: Interval,
    unit: str = "points",
    turn: tuple[str, str] = BETTER,
    digits: int = 3,
) -> Finding:
    """A finding about an effect. In its words, `{}` is the size of the effect with a word for its sign."""
    return Finding(figure, paper, words.format(f"{_size(found, unit, digits)} {turn[found.estimate < 0]}"), found)


def _size(effect: Interval, unit: str = "points", digits: int = 3) -> str:
    """An effect without its sign: -2.0 [-2.5, -1.5] is 2.0 [1.5, 2.5], which a word such as `worse` follows."""
    size = effect if effect.estimate >= 0 else _negated(effect)
    if unit == "points":
        return f"{100 * size.estimate:.1f} points {size.bounds('z.1f', 100)}"
    return f"{size.estimate:.{digits}f} {size.bounds(f'z.{digits}f')} {unit}"


def _negated(interval: Interval) -> Interval:
    return Interval(-interval.estimate, -interval.high, -interval.low)


def _gain(figure: str, paper: str, words: str, better: ByTask, than: ByTask, tasks: Iterable[str]) -> Finding:
    """A finding about the accuracies of two samplers on these tasks."""
    known = list(tasks)
    return _effect(
        figure, paper, words, accuracy_gain(*({t: of[t] for t in known if t in of} for of in (better, than)))
    )


def _boundary(arrays: Arrays) -> Iterator[Finding]:
    maps = [one.boundary for group, one in arrays["grid"].groups.items() if group.sampler == "confidence"]
    known = [one for one in maps if one is not None]
    if not known:
        return
    for name, part, found in (
        ("end", "last", mean_of_intervals([one.last for one in known])),
        ("beginning", "first", mean_of_intervals([one.first for one in known])),
    ):
        paper = f"Samplers by uncertainty write the {name} of an answer before its middle."
        words = f"Confidence writes the {part} quarter {{}} than the inner half."
        yield _effect("grid", paper, words, found, "ranks", EARLIER, digits=2)


def _planning(arrays: Arrays) -> Iterator[Finding]:
    groups = arrays["planning"].groups
    confidence, blocks = choose.by_label(groups, "confidence"), choose.by_label(groups, SEMI_AR)
    for kind, better, worse, ours, theirs in (
        (REASONING, SEMI_AR, "confidence", blocks, confidence),
        (PLANNING, "confidence", SEMI_AR, confidence, blocks),
    ):
        if tasks := of_group(kind, arrays.tasks):
            paper, words = f"On {kind}, {better} is better than {worse}.", f"On {kind}, {better} is {{}} than {worse}."
            yield _gain("planning", paper, words, ours, theirs, tasks)


def _trivial(arrays: Arrays) -> Iterator[Finding]:
    analysis = arrays["trivial"]
    pairs = [
        (one, reference[1])
        for group, one in analysis.groups.items()
        if group.sampler == "confidence" and (reference := analysis.reference_of(group)) and one.overall and one.early
    ]
    if not pairs:
        return
    words = "The share of trivial tokens {} is {{}} than that of {}, which stands in for an autoregressive model."
    for paper, where, found in (
        (
            "Confidence writes more trivial tokens, at every step, than an autoregressive model.",
            "of all the text that confidence writes",
            [difference_of_intervals(one.overall, other) for one, other in pairs],
        ),
        (
            "Trivial tokens come first.",
            "of the first quarter of it",
            [difference_of_intervals(one.early, other) for one, other in pairs],
        ),
    ):
        shown = words.format(where, LEFT_TO_RIGHT)
        yield _effect("trivial", paper, shown, mean_of_intervals(found), turn=("larger", "smaller"))


def _rejection(arrays: Arrays) -> Iterator[Finding]:
    found = choose.varied(arrays["rejection"].groups, "rejection", "confidence")
    tasks = arrays.reasoning or list(arrays.tasks)
    words = f"Rejecting every trivial token makes confidence {{}} ({', '.join(tasks)})."
    yield _gain("rejection", "Accuracy grows when trivial tokens are rejected.", words, found[1.0], found[0.0], tasks)


def _anchors(arrays: Arrays) -> Iterator[Finding]:
    groups = arrays["anchors"].groups
    anchored = [pair for pairs in choose.anchored(groups).values() for pair in pairs]
    near = [one.spread(choose.control_of(groups, group)).near for group, one in anchored]
    yield _effect(
        "anchors",
        "A token given in the middle becomes an anchor: decoding spreads from it.",
        "The eight positions on either side of the anchor are written {} than without it.",
        mean_of_intervals(near),
        "ranks",
        EARLIER,
    )


def _answers(arrays: Arrays) -> Iterator[Finding]:
    ours, theirs = (
        {group.task: one for group, one in arrays["answers"].groups.items() if group.sampler == name}
        for name in (UNCODE, "confidence")
    )
    pairs = [(theirs[task], ours[task]) for task in theirs if task in ours]
    early = [difference_of_intervals(one.early, two.early) for one, two in pairs if one.early and two.early]
    if early:
        yield _effect(
            "answers",
            "Confidence commits answers before the reasoning; Uncode waits.",
            "Confidence commits {} of its answers before half of the reasoning than Uncode.",
            mean_of_intervals(early),
            turn=("more", "fewer"),
        )
    entropies = [
        difference_of_intervals(one.mean_entropy, two.mean_entropy)
        for one, two in pairs
        if one.mean_entropy is not None and two.mean_entropy is not None
    ]
    if entropies:
        yield _effect(
            "answers",
            "Confidence commits answers while they are uncertain.",
            "The answer's entropy at commit is {} under confidence than under Uncode.",
            mean_of_intervals(entropies),
            "nats",
            HIGHER,
        )


def _entropy(arrays: Arrays) -> Iterator[Finding]:
    groups = arrays["planning"].groups
    yield _effect(
        "entropy",
        "The masks that are left stay more uncertain under confidence than under Uncode.",
        "Their mean entropy is {} under confidence.",
        entropy_gain(choose.by_label(groups, "confidence"), choose.by_label(groups, UNCODE)),
        "nats",
        HIGHER,
    )


def _hyperparameters(arrays: Arrays) -> Iterator[Finding]:
    groups = arrays["hyperparameters"].groups
    rates = choose.varied(groups, "rate", UNCODE)
    none, quarter = rates[0.0], rates[0.25]
    rest, sudoku = [task for task in arrays.tasks if task not in SUDOKU], [t for t in arrays.tasks if t in SUDOKU]
    if rest:
        paper = "All tasks but Sudoku need the positional prior."
        yield _gain("hyperparameters", paper, "There, rate 0.25 is {} than rate 0.", quarter, none, rest)
    if sudoku:
        paper = "Sudoku is best without the positional prior."
        yield _gain("hyperparameters", paper, "On Sudoku, rate 0 is {} than rate 0.25.", none, quarter, sudoku)
    clips = {f"clip {value:g}": one for value, one in choose.varied(groups, "clip", UNCODE).items()}
    yield _stability("hyperparameters", "The clip hardly matters.", clips)


def _stability(figure: str, paper: str, found: Mapping[str, ByTask]) -> Finding:
    """Whether averages differ by less than two points: the two that differ most decide."""
    gaps = {(one, two): accuracy_gain(found[one], found[two]) for one, two in combinations(found, 2)}
    (one, two), gap = max(gaps.items(), key=lambda item: abs(item[1].estimate))
    largest = max(abs(gap.low), abs(gap.high))
    smallest = 0.0 if gap.low <= 0 <= gap.high else min(abs(gap.low), abs(gap.high))
    room = Interval(STABLE - abs(gap.estimate), STABLE - largest, STABLE - smallest)
    shown = f"{one} and {two} differ most, by {_size(gap)}; {100 * STABLE:.0f} points or less count as stable."
    return Finding(figure, paper, shown[0].upper() + shown[1:], room)


def _rates(arrays: Arrays) -> Iterator[Finding]:
    found = choose.varied(arrays["rates"].groups, "rate", UNCODE)
    known = {
        task: r
        for task in arrays.tasks
        if (r := correlation({value: one[task] for value, one in found.items() if task in one})) is not None
    }
    if known:
        mean = mean_of_intervals(list(known.values()))
        each = ", ".join(f"{task} {r.estimate:.2f}" for task, r in known.items())
        yield Finding(
            "rates",
            "The lower the mean predictive entropy, the better the rate (r about -0.99).",
            f"Over the rates, Pearson's r of entropy and accuracy is {mean:z.2f} on average ({each}).",
            _negated(mean),
        )


def _priors(arrays: Arrays) -> Iterator[Finding]:
    none, alone, position, both = choose.priors(arrays["priors"].groups).values()
    for name, without in (("positional", alone), ("informativeness", position)):
        words = f"With the {name} prior, Uncode is {{}} than without it."
        yield _gain("priors", f"The {name} prior helps.", words, both, without, both)
    yield _gain(
        "priors", "Uncode is better than confidence.", "On average, Uncode is {} than confidence.", both, none, both
    )


def _corpora(arrays: Arrays) -> Iterator[Finding]:
    if "corpora" in arrays.figures:
        found = choose.varied(arrays["corpora"].groups, "table", UNCODE)
        tables = {f"the table {name}": one for name, one in found.items()}
        yield _stability("corpora", "Uncode is robust to the corpus of its frequency table.", tables)


def _efficiency(arrays: Arrays) -> Iterator[Finding]:
    found = choose.efficient(arrays["efficiency"].groups)
    for name, partner in choose.EFFICIENT.items():
        if name in found and partner in found:
            paper, words = f"Uncode's order makes {name} better.", f"{partner} is {{}} than {name}."
            yield _gain("efficiency", paper, words, found[partner], found[name], found[partner])
    for name, partner in choose.EFFICIENT.items():
        if partner in found:
            speed = _speed(found[partner], found[choose.BASE])
            yield Finding(
                "efficiency",
                f"With Uncode's order, {name} is still twice as fast as one token a forward, or faster.",
                f"{partner} needs {math.exp(speed.estimate):.1f} times fewer forwards than {choose.BASE} "
                f"{Interval(*map(math.exp, speed)).bounds('.1f')}.",
                Interval(*(value - math.log(FAST) for value in speed)),
            )


def _speed(sampler: ByTask, than: ByTask) -> Interval:
    """The logarithm of the speed-up in forwards: the mean over the tasks of the mean over the problems."""
    tasks = [task for task in sampler if task in than]
    logs = [np.log(than[task].forwards.mean() / sampler[task].forwards) for task in tasks]
    return mean_of_intervals([mean_interval(one) for one in logs])
