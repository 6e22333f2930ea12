"""The paper's tables, read from `tables.toml`, and the arithmetic that finds figures which cannot be right."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ...core.errors import require, suggest

AVERAGE = "average"
ROUNDING = 0.055
"""Per cent. Figures have one decimal. Some were rounded to two decimals before (28.049 is printed as 28.1)."""


@dataclass(frozen=True)
class Figure:
    """One figure of the paper."""

    table: str
    model: str
    sampler: str
    column: str
    """A task, or `average`."""
    value: float
    """In per cent."""
    doubt: str = ""
    """Why it cannot be right, or is doubtful; empty if nothing speaks against it."""


@dataclass(frozen=True)
class PaperTables:
    """All tables: rows by table, model and the sampler's label."""

    paper: str
    sizes: Mapping[str, int]
    """The examples of each task, as the paper states them."""
    rows: Mapping[tuple[str, str, str], Mapping[str, float]]
    """The figures of a row by column, in per cent."""
    speedups: Mapping[tuple[str, str, str], float]
    doubts: Mapping[tuple[str, str, str, str], str]
    """The doubts that no arithmetic finds, by table, model, sampler and column."""

    @property
    def names(self) -> list[str]:
        """The names of the tables."""
        return list(dict.fromkeys(table for table, _, _ in self.rows))

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(model for _, model, _ in self.rows))

    def find(self, model: str, sampler: str, table: str = "") -> tuple[str, str, str] | None:
        """The key of a sampler's row: in the named table if it is there, else in the first table that has it."""
        require(table in ("", *self.names), f"the paper has no table '{table}': {suggest(table, self.names)}")
        keys = [(name, model, sampler) for name in (table, *self.names)]
        return next((key for key in keys if key in self.rows), None)

    def figure(self, key: tuple[str, str, str], column: str) -> Figure | None:
        """One figure of a row, with the reason to doubt it; None if the paper does not give it."""
        value = self.rows[key].get(column)
        if value is None:
            return None
        return Figure(*key, column, value, self._doubt(key, column, value))

    def figures(self) -> Iterator[Figure]:
        """Every figure of every table."""
        for key, row in self.rows.items():
            for column in row:
                figure = self.figure(key, column)
                assert figure is not None
                yield figure

    def _doubt(self, key: tuple[str, str, str], column: str, value: float) -> str:
        if known := self.doubts.get((*key, column)):
            return known
        if column == AVERAGE:
            mean = mean_of(self.rows[key])
            is_wrong = mean is not None and abs(mean - value) > 2 * ROUNDING
            return f"the mean of the row is {mean:.1f}" if is_wrong else ""
        size = self.sizes[column]
        return "" if is_possible(value, size) else f"no number of {size} examples gives it"


def mean_of(row: Mapping[str, float]) -> float | None:
    """The mean of a row's tasks; None for a row that has an average alone."""
    tasks = [value for column, value in row.items() if column != AVERAGE]
    return sum(tasks) / len(tasks) if tasks else None


def is_possible(percent: float, size: int) -> bool:
    """Whether some whole number of `size` examples is this percentage, rounded."""
    nearest = round(percent * size / 100)
    return abs(100 * nearest / size - percent) <= ROUNDING


@cache
def paper_tables() -> PaperTables:
    """The tables of `tables.toml`."""
    data = tomllib.loads((files(__package__) / "tables.toml").read_text(encoding="utf-8"))
    rows = {key: _row(row, data["columns"]) for key, row in _flat(data["tables"])}
    doubts = {(d["table"], d["model"], d["sampler"], d["column"]): d["reason"] for d in data["doubts"]}
    return PaperTables(data["paper"], data["sizes"], rows, dict(_flat(data["speedups"])), doubts)


def _row(figures: Any, columns: list[str]) -> Mapping[str, float]:
    return figures if isinstance(figures, dict) else dict(zip(columns, figures, strict=True))


def _flat(tables: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, str], Any]]:
    for table, models in tables.items():
        for model, samplers in models.items():
            for sampler, value in samplers.items():
                yield (table, model, sampler), value
