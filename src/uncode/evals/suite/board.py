"""The standing of every preset: average, forwards, Pareto front, and paired differences from two references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import mean
from typing import NamedTuple

import numpy as np

from ...core.errors import require
from ...samplers.catalog import catalog
from ...util.stats import Interval, corrected_tests, newcombe
from .every_preset import entries_by_label
from .names import RATES, UNCODE, with_rate
from .results import Results

SIGNIFICANCE = 0.05
LEFT_TO_RIGHT = "left_to_right"
NOT_RUN = "not run on every family and with every seed."


class Difference(NamedTuple):
    """A preset minus a reference, on the same problems."""

    difference: Interval
    p: float
    """McNemar's exact p-value after Holm's correction over all presets that are compared with this reference."""


class Standing(NamedTuple):
    """A preset in the run of one seed."""

    average: Interval
    forwards: float

    def dominates(self, other: Standing) -> bool:
        """Whether this is at least as good in both respects, and better in one."""
        gain, saving = self.average.estimate - other.average.estimate, other.forwards - self.forwards
        return gain >= 0 and saving >= 0 and gain + saving > 0


@dataclass(frozen=True)
class Board:
    """The leaderboard of one or two runs. A preset has a row if every run has its results for every family."""

    runs: Mapping[int, Results]
    """The results of each training seed."""

    def __post_init__(self) -> None:
        problems = {(run.about.get("held_out"), run.about["problems"]) for run in self.runs.values()}
        require(len(problems) == 1, "the runs of the two seeds have other problems: run both with the same options.")
        require(bool(self.names), "no sampler has results for every family and seed: finish the run first.")

    @classmethod
    def of(cls, results: Sequence[Results]) -> Board:
        """The leaderboard of these runs, each under the seed that its model was trained with."""
        known = [int(seed) for run in results if (seed := run.about.get("training_seed")) is not None]
        seeds = known if len(known) == len(results) else list(range(len(results)))
        require(len(set(seeds)) == len(results), f"both models were trained with seed {seeds[0]}: give another one.")
        return cls(dict(zip(seeds, results, strict=True)))

    @cached_property
    def names(self) -> list[str]:
        """The samplers with a row, the best mean of the seeds' averages first; of equals, the one with fewer forwards.

        Of Uncode's fixed rates only the best has one. It is chosen with the labels, so it takes no part in the rest.
        """
        complete = [n for n in self.first.samplers() if all(run.solved(n) is not None for run in self.runs.values())]
        fixed = [name for rate in RATES if (name := with_rate(rate)) in complete]
        hindsight = max(fixed, key=self._mean, default="")
        shown = [name for name in complete if name not in fixed or name == hindsight]
        return sorted(shown, key=lambda name: (-self._mean(name), self._forwards(name)))

    @property
    def first(self) -> Results:
        return next(iter(self.runs.values()))

    @cached_property
    def hindsight(self) -> str:
        """Uncode at the fixed rate that is best on these problems; empty if no fixed rate was run."""
        fixed = {with_rate(rate) for rate in RATES}
        return next((name for name in self.names if name in fixed), "")

    @property
    def ranked(self) -> list[str]:
        """The rows that chose nothing with labels."""
        return [name for name in self.names if name != self.hindsight] or self.names

    @property
    def best(self) -> str:
        return self.ranked[0]

    @property
    def references(self) -> list[str]:
        """What the others are compared with: the best, and left to right."""
        return list(dict.fromkeys(name for name in (self.best, LEFT_TO_RIGHT) if name in self.names))

    def label(self, name: str) -> str:
        """The name of a row."""
        if name == UNCODE and any(run.entropies for run in self.runs.values()):
            return f"{UNCODE}, label-free rates"
        return f"{name}, best fixed rate" if name == self.hindsight else name

    @cached_property
    def standings(self) -> dict[str, dict[int, Standing]]:
        """By name, then by seed."""
        return {name: {seed: _standing(run, name) for seed, run in self.runs.items()} for name in self.names}

    @cached_property
    def fronts(self) -> dict[int, list[str]]:
        """For each seed the Pareto front, from the fewest forwards to the most: no other row dominates these."""
        return {seed: self._front(seed) for seed in self.runs}

    def _front(self, seed: int) -> list[str]:
        known = {name: self.standings[name][seed] for name in self.ranked}
        found = [name for name, one in known.items() if not any(other.dominates(one) for other in known.values())]
        return sorted(found, key=lambda name: known[name].forwards)

    def differences(self, reference: str, seed: int) -> dict[str, Difference]:
        """Every other row minus the reference, in the run of a seed."""
        marks = self.marks[seed]
        others = [name for name in self.names if name != reference]
        tests = corrected_tests({name: (marks[name], marks[reference]) for name in others})
        return {name: Difference(newcombe(marks[name], marks[reference]), tests[name].p) for name in others}

    @cached_property
    def marks(self) -> dict[int, dict[str, np.ndarray]]:
        """Right (1) or wrong (0) on every problem, by seed, then by name."""
        return {
            seed: {name: marks for name in self.names if (marks := run.solved(name)) is not None}
            for seed, run in self.runs.items()
        }

    @cached_property
    def without_row(self) -> dict[str, str]:
        """Every preset and every sampler file that has no row, and why."""
        presets = {label: entry.preset for label, entry in entries_by_label().items()}
        shown = {presets.get(name, name) for name in self.names}
        left_out = [pair for run in self.runs.values() for pair in run.about.get("left_out", {}).items()]
        reasons = {presets.get(name, name): why for name, why in left_out}
        known = [name for name in catalog() if not name.startswith("legacy.")]
        missing = [name for name in dict.fromkeys([*known, *reasons]) if name not in shown]
        return {name: reasons.get(name, NOT_RUN) for name in missing}

    def _mean(self, name: str) -> float:
        averages = [run.average(name) for run in self.runs.values()]
        return mean(one.estimate for one in averages if one is not None)

    def _forwards(self, name: str) -> float:
        return mean(run.forwards(name) or 0.0 for run in self.runs.values())


def _standing(run: Results, name: str) -> Standing:
    average, forwards = run.average(name), run.forwards(name)
    assert average is not None and forwards is not None, "rows are complete"
    return Standing(average, forwards)
