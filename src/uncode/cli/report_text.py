"""A report on the terminal. A table that is too wide is split into several, each with the names of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table as Grid

from ..evals.report.analysis import Choices, ModelAnalysis
from ..evals.report.published import published_tables
from ..evals.report.table import TextTable
from ..evals.report.tables import document
from .printing import printing

if TYPE_CHECKING:
    from rich.console import Console

    from ..evals.report.scores import RunResults

GAP = 2
"""Blanks between two columns."""


def print_document(results: RunResults, choices: Choices) -> None:
    """Print every table of the report."""
    made = document(results, choices)
    with printing() as console:
        console.print(f"[bold]{escape(made.title)}[/bold]")
        for section in made.sections:
            console.rule(escape(section.title), align="left")
            for note in section.notes:
                console.print(f"\n{escape(note)}")
            for table in section.tables:
                _print_table(console, table)
            console.print()


def print_published(results: RunResults) -> None:
    """Print our figures beside published ones, for the models of which a run names some."""
    with printing() as console:
        for model in results.models:
            for table in published_tables(ModelAnalysis(results, model, Choices())):
                console.rule(escape(model), align="left")
                _print_table(console, table)


def _print_table(console: Console, table: TextTable) -> None:
    console.print(f"\n[bold]{escape(table.caption)}[/bold]")
    for number, columns in enumerate(fitting(table, console.width)):
        console.print(*([""] if number else []), _grid(table, columns), sep="\n")
    for note in table.notes:
        console.print(f"[dim]{escape(note)}[/dim]")


def fitting(table: TextTable, width: int) -> Iterator[list[int]]:
    """The columns of each part: the labels, and as many other columns as fit into the width; at least one."""
    widths = [max(map(len, column)) + GAP for column in zip(table.titles, *table.rows, strict=True)]
    labels = list(range(table.labels))
    used, part = sum(widths[: table.labels]), list[int]()
    room = used
    for column in range(table.labels, len(widths)):
        if part and room + widths[column] > width + GAP:
            yield [*labels, *part]
            part, room = [], used
        part.append(column)
        room += widths[column]
    yield [*labels, *part]


def _grid(table: TextTable, columns: Sequence[int]) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="dim", padding=(0, GAP, 0, 0))
    for column in columns:
        is_label = column < table.labels
        title = escape(table.titles[column])
        grid.add_column(title, justify="left" if is_label else "right", overflow="fold", no_wrap=not is_label)
    before = ""
    for r, row in enumerate(table.rows):
        cells = [_cell(row[column], (r, column) in table.best) for column in columns]
        grid.add_row("" if row[0] == before else cells[0], *cells[1:])
        before = row[0]
    return grid


def _cell(text: str, is_best: bool) -> str:
    return f"[bold]{escape(text)}[/bold]" if is_best else escape(text)
