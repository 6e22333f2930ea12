"""Results of the mini-suite: right or wrong on every problem, for each sampler and family, in one small file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import UncodeError, require
from ...util.paths import require_file
from ...util.stats import Interval, newcombe, wilson
from ...util.write import write_whole
from .names import UNCODE, with_rate

RESULTS = "results.json"
MARKS = ("right", "hasty", "sound")
"""The fields of a cell that hold a mark for each problem."""


@dataclass
class CellResults:
    """The results of one sampler on one family."""

    right: str
    """For each problem 1 if it was solved, else 0."""
    hasty: str
    """For each problem 1 if an EOS token was written in the first quarter of the forwards, else 0."""
    forwards: float
    """The mean number of forwards."""
    tokens: float
    """The mean number of tokens before the first EOS token."""
    sound: str | None = None
    """For each problem 1 if every equation of the answer holds and follows, else 0; None if it was not measured."""
    columns: float | None = None
    """The mean number of columns that the forwards of an answer computed; None if it was not measured."""

    @property
    def solved(self) -> np.ndarray:
        return _as_numbers(self.right)

    @property
    def reasoned(self) -> np.ndarray | None:
        """Sound (1) or not (0) on each problem; None if it was not measured."""
        return None if self.sound is None else _as_numbers(self.sound)

    @property
    def accuracy(self) -> Interval:
        return wilson(self.right.count("1"), len(self.right))


@dataclass
class Results:
    """The results of a run: all cells, the entropies that choose the rates, and the biases."""

    about: dict[str, Any]
    """The model, the seed, the precision, the number of problems."""
    cells: dict[str, dict[str, CellResults]]
    """The cells by family, then by sampler."""
    entropies: dict[str, dict[str, float]]
    """The entropies by family, then by rate."""
    biases: dict[str, Any]

    def rate(self, family: str) -> float:
        """The rate with the smallest mean predictive entropy; of equal ones, the smallest rate."""
        require(family in self.entropies, f"no rate was chosen for {family}: run `uncode mini` without --quick first.")
        return best_rate(self.entropies[family])

    def cell(self, family: str, sampler: str) -> CellResults | None:
        """The cell of a sampler. "uncode" without a rate is Uncode with the family's chosen rate."""
        cells = self.cells.get(family, {})
        if sampler == UNCODE and UNCODE not in cells and family in self.entropies:
            sampler = with_rate(self.rate(family))
        return cells.get(sampler)

    def samplers(self) -> list[str]:
        """All samplers with a cell, in the order they were run. "uncode" without a rate comes before other Uncodes."""
        names = list(dict.fromkeys(name for cells in self.cells.values() for name in cells))
        own = [name for name in names if name.startswith(UNCODE)]
        others = [name for name in names if name not in own]
        return others + ([UNCODE] if UNCODE not in own and self.entropies else []) + own

    def solved(self, sampler: str, families: Sequence[str] | None = None) -> np.ndarray | None:
        """Right (1) or wrong (0) on the problems of these families, or of all; None if a cell is missing."""
        cells = [self.cell(family, sampler) for family in (self.cells if families is None else families)]
        return None if None in cells or not cells else np.concatenate([c.solved for c in cells if c])

    @property
    def families_with_reasoning(self) -> list[str]:
        """The families on which soundness was measured of a sampler or more."""
        return [family for family, cells in self.cells.items() if any(cell.sound for cell in cells.values())]

    def reasoned(self, sampler: str, families: Sequence[str]) -> np.ndarray | None:
        """Sound (1) or not (0) on the problems of these families; None if a cell is missing or it was not measured."""
        cells = [self.cell(family, sampler) for family in families]
        marks = [cell.reasoned for cell in cells if cell is not None]
        known = [one for one in marks if one is not None]
        return np.concatenate(known) if known and len(known) == len(cells) else None

    def lucky(self, sampler: str) -> np.ndarray | None:
        """Right but not sound (1), or not (0), on the problems of the families where soundness was measured."""
        families = self.families_with_reasoning
        right, sound = self.solved(sampler, families), self.reasoned(sampler, families)
        return None if right is None or sound is None else right * (1 - sound)

    def average(self, sampler: str, families: Sequence[str] | None = None) -> Interval | None:
        """The accuracy on the problems of these families, or of all, with Wilson's interval."""
        solved = self.solved(sampler, families)
        return None if solved is None else wilson(int(solved.sum()), len(solved))

    def difference(self, a: str, b: str, families: Sequence[str] | None = None) -> Interval | None:
        """The accuracy of `a` minus that of `b` on the same problems; None if a cell is missing.

        Like the average, it pools the families. So McNemar's test and the interval are about the same four counts.
        """
        first, second = self.solved(a, families), self.solved(b, families)
        return None if first is None or second is None else newcombe(first, second)

    def forwards(self, sampler: str) -> float | None:
        """The mean number of forwards over all families; None if a cell is missing."""
        cells = [self.cell(family, sampler) for family in self.cells]
        return None if None in cells else float(np.mean([cell.forwards for cell in cells if cell]))

    def save(self, path: Path) -> None:
        data = asdict(self)
        for of in data["cells"].values():
            for sampler, cell in of.items():
                packed = {name: _packed(cell[name]) for name in MARKS if cell[name] is not None}
                of[sampler] = {name: value for name, value in (cell | packed).items() if value is not None}
        write_whole(path, json.dumps(data, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Results:
        require_file(path)
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            cells = {
                family: {
                    sampler: CellResults(**cell | {name: _unpacked(cell[name]) for name in MARKS if cell.get(name)})
                    for sampler, cell in of.items()
                }
                for family, of in data["cells"].items()
            }
            return cls(**data | {"cells": cells})
        except (OSError, TypeError, KeyError, AttributeError, ValueError) as error:
            raise UncodeError(f"'{path}' is not a file of results ({error}).") from error


def best_rate(entropies: Mapping[str, float]) -> float:
    """The rate with the smallest entropy; of equal ones, the smallest rate."""
    return float(min(entropies, key=lambda rate: (entropies[rate], float(rate))))


def _as_numbers(marks: str) -> np.ndarray:
    return np.asarray(np.frombuffer(marks.encode(), np.uint8) == ord("1"), dtype=float)


def _packed(marks: str) -> str:
    """Marks as a hexadecimal number. A leading 1 keeps the zeros before the first mark."""
    return f"0x{int(f'1{marks}', 2):x}"


def _unpacked(marks: str) -> str:
    if not marks.startswith("0x"):
        raise ValueError(f"'{marks[:9]}' are no packed marks")
    return f"{int(marks, 16):b}"[1:]
