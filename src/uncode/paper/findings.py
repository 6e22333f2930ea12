"""What the paper found, what this model shows, and whether the two agree. Every sentence is made from an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..analysis import choose
from ..analysis.figures.sweeps import correlation
from ..analysis.measures.outcomes import ByTask, accuracy_gain, entropy_gain
from ..analysis.task_groups import PLANNING, REASONING, SUDOKU, of_group
from ..util.stats import Interval, difference_of_intervals, mean_interval, mean_of_intervals
from .arrays import Arrays
from .config import LEFT_TO_RIGHT, SEMI_AR, UNCODE

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
    return [one for find in _FINDERS for one in find(arrays)]


def _points(interval: Interval) -> str:
    """A difference of accuracies without its sign, with the interval of what the word after it says."""
    return f"{100 * abs(interval.estimate):.1f} points {_positive(interval).bounds('z.1f', 100)}"


def _size(interval: Interval, digits: int = 2) -> str:
    return f"{abs(interval.estimate):.{digits}f} {_positive(interval).bounds(f'z.{digits}f')}"


def _positive(interval: Interval) -> Interval:
    """Of the size: a difference of -2.0 [-2.5, -1.5] is 2.0 [1.5, 2.5] worse."""
    return interval if interval.estimate >= 0 else _negated(interval)


def _negated(interval: Interval) -> Interval:
    return Interval(-interval.estimate, -interval.high, -interval.low)


def _turn(interval: Interval, more: str, less: str) -> str:
    """The word that fits the sign of an estimate."""
    return more if interval.estimate >= 0 else less


def _only(by_task: ByTask, tasks: Iterable[str]) -> ByTask:
    return {task: by_task[task] for task in tasks if task in by_task}


def _boundary(arrays: Arrays) -> Iterator[Finding]:
    maps = [one.boundary for group, one in arrays["grid"].groups.items() if group.sampler == "confidence"]
    known = [one for one in maps if one is not None]
    if not known:
        return
    for name, part in (("end", "last"), ("beginning", "first")):
        found = mean_of_intervals([getattr(one, part) for one in known])
        earlier = _turn(found, "earlier", "later")
        yield Finding(
            "grid",
            f"Samplers by uncertainty write the {name} of an answer before its middle.",
            f"Confidence writes the {part} quarter {_size(found)} ranks {earlier} than the inner half.",
            found,
        )


def _planning(arrays: Arrays) -> Iterator[Finding]:
    groups = arrays["planning"].groups
    confidence, blocks = choose.by_label(groups, "confidence"), choose.by_label(groups, SEMI_AR)
    for kind, better, worse in (
        (REASONING, (SEMI_AR, blocks), ("confidence", confidence)),
        (PLANNING, ("confidence", confidence), (SEMI_AR, blocks)),
    ):
        tasks = of_group(kind, arrays.tasks)
        if tasks:
            gain = accuracy_gain(_only(better[1], tasks), _only(worse[1], tasks))
            yield Finding(
                "planning",
                f"On {kind}, {better[0]} is better than {worse[0]}.",
                f"On {kind}, {better[0]} is {_points(gain)} {_turn(gain, 'better', 'worse')} than {worse[0]}.",
                gain,
            )


def _trivial(arrays: Arrays) -> Iterator[Finding]:
    analysis = arrays["trivial"]
    pairs = [
        (one, reference[1])
        for group, one in analysis.groups.items()
        if group.sampler == "confidence" and (reference := analysis.reference_of(group)) and one.overall and one.early
    ]
    if not pairs:
        return
    for part, name in (("overall", "of all the text that confidence writes"), ("early", "of the first quarter of it")):
        found = mean_of_intervals([difference_of_intervals(getattr(one, part), other) for one, other in pairs])
        yield Finding(
            "trivial",
            "Confidence writes more trivial tokens, at every step, than an autoregressive model."
            if part == "overall"
            else "Trivial tokens come first.",
            f"The share of trivial tokens {name} is {_points(found)} {_turn(found, 'larger', 'smaller')} than that of "
            f"{LEFT_TO_RIGHT}, which stands in for an autoregressive model.",
            found,
        )


def _rejection(arrays: Arrays) -> Iterator[Finding]:
    found = choose.varied(arrays["rejection"].groups, "rejection", "confidence")
    tasks = arrays.reasoning or list(arrays.tasks)
    gain = accuracy_gain(_only(found[1.0], tasks), _only(found[0.0], tasks))
    yield Finding(
        "rejection",
        "Accuracy grows when trivial tokens are rejected.",
        f"Rejecting every trivial token makes confidence {_points(gain)} {_turn(gain, 'better', 'worse')} "
        f"({', '.join(tasks)}).",
        gain,
    )


def _anchors(arrays: Arrays) -> Iterator[Finding]:
    groups = arrays["anchors"].groups
    anchored = [pair for pairs in choose.anchored(groups).values() for pair in pairs]
    near = [one.spread(choose.control_of(groups, group)).near for group, one in anchored]
    found = mean_of_intervals(near)
    yield Finding(
        "anchors",
        "A token given in the middle becomes an anchor: decoding spreads from it.",
        f"The eight positions on either side of the anchor are written {_size(found, 3)} ranks "
        f"{_turn(found, 'earlier', 'later')} than without it.",
        found,
    )


def _answers(arrays: Arrays) -> Iterator[Finding]:
    ours, theirs = (
        {group.task: one for group, one in arrays["answers"].groups.items() if group.sampler == name}
        for name in (UNCODE, "confidence")
    )
    tasks = [task for task in theirs if task in ours]
    early = [(theirs[task].early, ours[task].early) for task in tasks if theirs[task].early and ours[task].early]
    if early:
        found = mean_of_intervals([difference_of_intervals(one, two) for one, two in early])
        yield Finding(
            "answers",
            "Confidence commits answers before the reasoning; Uncode waits.",
            f"Confidence commits {_points(found)} {_turn(found, 'more', 'fewer')} of its answers before half of the "
            "reasoning than Uncode.",
            found,
        )
    entropies = [(theirs[task].mean_entropy, ours[task].mean_entropy) for task in tasks]
    known = [difference_of_intervals(one, two) for one, two in entropies if one is not None and two is not None]
    if known:
        found = mean_of_intervals(known)
        yield Finding(
            "answers",
            "Confidence commits answers while they are uncertain.",
            f"The answer's entropy at commit is {_size(found, 3)} nats {_turn(found, 'higher', 'lower')} under "
            "confidence than under Uncode.",
            found,
        )


def _entropy(arrays: Arrays) -> Iterator[Finding]:
    groups = arrays["planning"].groups
    found = entropy_gain(choose.by_label(groups, "confidence"), choose.by_label(groups, UNCODE))
    yield Finding(
        "entropy",
        "The masks that are left stay more uncertain under confidence than under Uncode.",
        f"Their mean entropy is {_size(found, 3)} nats {_turn(found, 'higher', 'lower')} under confidence.",
        found,
    )


def _hyperparameters(arrays: Arrays) -> Iterator[Finding]:
    groups = arrays["hyperparameters"].groups
    found = choose.varied(groups, "rate", UNCODE)
    rest, sudoku = [task for task in arrays.tasks if task not in SUDOKU], [t for t in arrays.tasks if t in SUDOKU]
    if rest:
        gain = accuracy_gain(_only(found[0.25], rest), _only(found[0.0], rest))
        yield Finding(
            "hyperparameters",
            "All tasks but Sudoku need the positional prior.",
            f"There, rate 0.25 is {_points(gain)} {_turn(gain, 'better', 'worse')} than rate 0.",
            gain,
        )
    if sudoku:
        gain = accuracy_gain(_only(found[0.0], sudoku), _only(found[0.25], sudoku))
        yield Finding(
            "hyperparameters",
            "Sudoku is best without the positional prior.",
            f"On Sudoku, rate 0 is {_points(gain)} {_turn(gain, 'better', 'worse')} than rate 0.25.",
            gain,
        )
    clips = choose.varied(groups, "clip", UNCODE)
    yield _stability(
        "hyperparameters", "The clip hardly matters.", {f"clip {key:g}": one for key, one in clips.items()}
    )


def _stability(figure: str, paper: str, found: Mapping[str, ByTask]) -> Finding:
    """Whether averages differ by less than two points: the two that differ most decide."""
    names = list(found)
    gaps = {
        (one, two): accuracy_gain(found[one], found[two]) for at, one in enumerate(names) for two in names[at + 1 :]
    }
    (one, two), gap = max(gaps.items(), key=lambda item: abs(item[1].estimate))
    largest = max(abs(gap.low), abs(gap.high))
    smallest = 0.0 if gap.low <= 0 <= gap.high else min(abs(gap.low), abs(gap.high))
    room = Interval(STABLE - abs(gap.estimate), STABLE - largest, STABLE - smallest)
    shown = f"{one} and {two} differ most, by {_points(gap)}; {100 * STABLE:.0f} points or less count as stable."
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
        gain = accuracy_gain(both, without)
        yield Finding(
            "priors",
            f"The {name} prior helps.",
            f"With the {name} prior, Uncode is {_points(gain)} {_turn(gain, 'better', 'worse')} than without it.",
            gain,
        )
    gain = accuracy_gain(both, none)
    yield Finding(
        "priors",
        "Uncode is better than confidence.",
        f"On average, Uncode is {_points(gain)} {_turn(gain, 'better', 'worse')} than confidence.",
        gain,
    )


def _corpora(arrays: Arrays) -> Iterator[Finding]:
    if "corpora" in arrays.figures:
        found = choose.varied(arrays["corpora"].groups, "table", UNCODE)
        tables = {f"the table {name}": one for name, one in found.items()}
        yield _stability("corpora", "Uncode is robust to the corpus of its frequency table.", tables)


def _efficiency(arrays: Arrays) -> Iterator[Finding]:
    found = choose.efficient(arrays["efficiency"].groups)
    base = found[choose.BASE]
    for name, partner in choose.EFFICIENT.items():
        if name in found and partner in found:
            gain = accuracy_gain(found[partner], found[name])
            yield Finding(
                "efficiency",
                f"Uncode's order makes {name} better.",
                f"{partner} is {_points(gain)} {_turn(gain, 'better', 'worse')} than {name}.",
                gain,
            )
    for name, partner in choose.EFFICIENT.items():
        if partner in found:
            speed = _speed(found[partner], base)
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


_FINDERS: tuple[Callable[[Arrays], Iterator[Finding]], ...] = (
    _boundary,
    _planning,
    _trivial,
    _rejection,
    _anchors,
    _answers,
    _entropy,
    _hyperparameters,
    _rates,
    _priors,
    _corpora,
    _efficiency,
)
