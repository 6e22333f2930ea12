"""Answers with a constraint beside those of the same sampler without: does forcing the format cost accuracy?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...util.stats import mean_of_intervals, newcombe
from ..run.folder import RunCell
from ..run.sample import RunSample
from .analysis import ModelAnalysis
from .table import TextTable, number, points

Test = Callable[[RunSample], bool]


@dataclass(frozen=True)
class ConstrainedPair:
    """A sampler on a task, without and with a constraint, on the examples that both have answered."""

    task: str
    sampler: str
    """The label of the row with the constraint."""
    free: Sequence[RunSample]
    constrained: Sequence[RunSample]
    is_right: Test
    is_valid: Test
    """Whether the constraint accepts an answer."""


def constrained_pairs(one: ModelAnalysis) -> Iterator[ConstrainedPair]:
    """Every cell with a constraint, beside the cell that differs from it by nothing else."""
    cells = [cell for info in one.results.infos for cell in info.cells if cell.model == one.model]
    for cell in (cell for cell in cells if "constraint" in cell.definition):
        found = (_pair(one, free, cell) for free in cells if _is_twin(free, cell))
        yield from [pair for pair in found if pair is not None][:1]


def _is_twin(free: RunCell, cell: RunCell) -> bool:
    bare = {name: value for name, value in cell.definition.items() if name != "constraint"}
    facts = [(c.task, c.fingerprint, c.length, c.seed) for c in (free, cell)]
    return facts[0] == facts[1] and free.definition == bare


def _pair(one: ModelAnalysis, free: RunCell, cell: RunCell) -> ConstrainedPair | None:
    """None where no prompt was answered by both."""
    from ...constraints.constraint import TextConstraint  # it imports torch

    rule, metric = TextConstraint.from_dict(cell.definition["constraint"]), one.choices.metric
    scores = [one.score(c.sampler, c.task) for c in (free, cell)]
    a, b = (
        {(id, s.prompt_sha256): s for id, s in score.samples.items() if metric in s.grades} if score else {}
        for score in scores
    )
    both = sorted(a.keys() & b.keys())
    tests: tuple[Test, Test] = (lambda s: s.grades[metric].correct, lambda s: rule.accepts(s.text))
    found = ConstrainedPair(cell.task, cell.sampler, [a[key] for key in both], [b[key] for key in both], *tests)
    return found if both else None


def constrained(one: ModelAnalysis) -> TextTable:
    """Accuracy, validity and forwards, without and with the constraint."""
    pairs = list(constrained_pairs(one))
    rows = [[pair.task, pair.sampler, *_cells([pair])] for pair in pairs]
    for sampler in dict.fromkeys(pair.sampler for pair in pairs):
        several = [pair for pair in pairs if pair.sampler == sampler]
        rows += [["mean", sampler, *_cells(several)]] if len(several) > 1 else []
    titles = ["task", "sampler", "n", "accuracy, %", "constrained", "difference, points"]
    titles += ["valid, %", "constrained", "difference, points", "forwards", "constrained"]
    notes = [
        "Each sampler without and with its constraint, on the examples that both have answered. An answer is valid if "
        "the constraint accepts it. In brackets: Newcombe's 95 % intervals for paired shares.",
    ]
    return TextTable(titles, rows, f"Without and with a constraint ({one.choices.metric})", notes, labels=2)


def _cells(pairs: Sequence[ConstrainedPair]) -> list[str]:
    """The figures of one pair, or the means of several."""
    found = [str(sum(len(pair.free) for pair in pairs))]
    for tested in ([pair.is_right for pair in pairs], [pair.is_valid for pair in pairs]):
        free, with_it = (
            [[test(sample) for sample in samples] for test, samples in zip(tested, side, strict=True)]
            for side in ([pair.free for pair in pairs], [pair.constrained for pair in pairs])
        )
        found += [f"{100 * _mean([_mean(of) for of in side]):.1f}" for side in (free, with_it)]
        found.append(points(mean_of_intervals([newcombe(a, b) for a, b in zip(with_it, free, strict=True)])))
    for side in ([pair.free for pair in pairs], [pair.constrained for pair in pairs]):
        found.append(number(_mean([_mean([sample.forwards for sample in samples]) for samples in side])))
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
