"""What the mini-suite found: a file a family, written anew after every cell, so that nothing finished is lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import UncodeError, require
from ...core.support.paths import require_file
from ...core.support.write import write_whole
from ...stats import Interval, paired_bootstraps, wilson
from .names import UNCODE, with_rate


@dataclass
class Cell:
    """One sampler on one family."""

    right: str
    """A 1 for each problem that is solved, a 0 for each other."""
    hasty: str
    """A 1 for each problem where an end token was written in the first quarter of the forwards."""
    forwards: float
    """The mean number of forwards."""
    tokens: float
    """The mean number of tokens before the end token."""

    @property
    def solved(self) -> np.ndarray:
        return np.array([mark == "1" for mark in self.right], dtype=float)

    @property
    def accuracy(self) -> Interval:
        return wilson(self.right.count("1"), len(self.right))


@dataclass
class Part:
    """One family."""

    about: dict[str, Any]
    """The model, the seed, the precision, the number of problems."""
    cells: dict[str, Cell] = field(default_factory=dict)
    """By sampler."""
    entropies: dict[str, float] = field(default_factory=dict)
    """By rate: the mean predictive entropy on problems without labels."""
    orders: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By sampler: what was written when, for each problem."""
    seconds: float = 0.0

    def save(self, path: Path) -> None:
        write_whole(path, json.dumps(asdict(self)) + "\n")

    @classmethod
    def load(cls, path: Path) -> Part:
        data = _read(path)
        try:
            return cls(**data | {"cells": {name: Cell(**cell) for name, cell in data["cells"].items()}})
        except (TypeError, KeyError, AttributeError) as error:
            raise UncodeError(f"'{path}' is no file of results ({error}).") from error


@dataclass
class Results:
    """All cells of a run, the rates that were chosen, and the biases of the model."""

    about: dict[str, Any]
    cells: dict[str, dict[str, Cell]]
    """By family, then by sampler."""
    entropies: dict[str, dict[str, float]]
    """By family, then by rate."""
    biases: dict[str, Any]

    @classmethod
    def of(cls, parts: Mapping[str, Part], biases: dict[str, Any]) -> Results:
        return cls(
            about=dict(next(iter(parts.values())).about),
            cells={name: part.cells for name, part in parts.items()},
            entropies={name: part.entropies for name, part in parts.items() if part.entropies},
            biases=biases,
        )

    def rate(self, family: str) -> float:
        """The rate with the least mean predictive entropy; of equals, the smallest."""
        require(family in self.entropies, f"no rate was chosen for {family}: run `uncode mini` without --quick first.")
        return least(self.entropies[family])

    def cell(self, family: str, sampler: str) -> Cell | None:
        """A cell; Uncode without a rate is the one at the family's own."""
        cells = self.cells.get(family, {})
        if sampler == UNCODE and UNCODE not in cells and family in self.entropies:
            sampler = with_rate(self.rate(family))
        return cells.get(sampler)

    def samplers(self) -> list[str]:
        """Every sampler that has a cell, in the order they were run; Uncode without a rate first among its own."""
        names = list(dict.fromkeys(name for cells in self.cells.values() for name in cells))
        own = [name for name in names if name.startswith(UNCODE)]
        others = [name for name in names if name not in own]
        return others + ([UNCODE] if UNCODE not in own and self.entropies else []) + own

    def solved(self, sampler: str) -> np.ndarray | None:
        """Right or wrong on all problems of all families, which have equally many; None where a cell is missing."""
        cells = [self.cell(family, sampler) for family in self.cells]
        return None if any(cell is None for cell in cells) else np.concatenate([c.solved for c in cells if c])

    def average(self, sampler: str) -> Interval | None:
        """The share that is right, of all problems of all families, with Wilson's interval."""
        solved = self.solved(sampler)
        return None if solved is None else wilson(int(solved.sum()), len(solved))

    @cached_property
    def gaps(self) -> dict[str, Interval]:
        """How far Uncode is ahead of each sampler that has every family, by the paired bootstrap; made once."""
        ours, solved = self.solved(UNCODE), {name: self.solved(name) for name in self.samplers()}
        theirs = {name: marks for name, marks in solved.items() if marks is not None}
        if ours is None or not theirs:
            return {}
        found = paired_bootstraps(ours, list(theirs.values()), groups=self.sizes())
        return dict(zip(theirs, found, strict=True))

    def sizes(self) -> list[int]:
        """How many problems each family has: they are resampled within it."""
        return [len(next(iter(cells.values())).right) for cells in self.cells.values()]

    def save(self, path: Path) -> None:
        write_whole(path, json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Results:
        data = _read(path)
        require("orders" not in data, f"'{path}' holds one family: show the results.json beside it.")
        try:
            cells = {f: {s: Cell(**cell) for s, cell in of.items()} for f, of in data["cells"].items()}
            return cls(**data | {"cells": cells})
        except (TypeError, KeyError, AttributeError) as error:
            raise UncodeError(f"'{path}' is no file of results ({error}).") from error


def least(entropies: Mapping[str, float]) -> float:
    """The rate with the least entropy; of equals, the smallest."""
    return float(min(entropies, key=lambda rate: (entropies[rate], float(rate))))


def _read(path: Path) -> dict[str, Any]:
    require_file(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UncodeError(f"'{path}' is no file of results ({error}).") from error
    require(isinstance(data, dict), f"'{path}' is no file of results.")
    return dict(data)
