"""Output with rich, without trailing blanks when it is piped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ..evals.report.table import Table as TextTable

MAX_TABLE_WIDTH = 1000
NARROW_COLUMNS = 72
"""In a narrower terminal, a table of many columns is printed as a list."""


@contextmanager
def printing() -> Iterator[Console]:
    """A console for standard output. In a pipe or a file, no line ends in blanks."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal:
        yield console
        return
    with console.capture() as printed:
        yield console
    typer.echo("\n".join(line.rstrip(" ") for line in printed.get().split("\n")), nl=False)


def print_whole(console: Console, table: Table) -> None:
    """Print a table in its full width. In a narrower terminal a long line wraps; it is not cut."""
    needed = console.measure(table, options=console.options.update(max_width=MAX_TABLE_WIDTH)).maximum
    console.width = max(console.width, needed)
    console.print(table, soft_wrap=True)


def print_table(console: Console, table: TextTable) -> None:
    """Print a table of text: names left-aligned, figures right-aligned."""
    from rich.markup import escape
    from rich.table import Table as Grid

    shown = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for number, title in enumerate(table.titles):
        shown.add_column(escape(title), justify="right" if number >= table.labels else "left", no_wrap=True)
    for row in table.rows:
        shown.add_row(*map(escape, row))
    print_whole(console, shown)
