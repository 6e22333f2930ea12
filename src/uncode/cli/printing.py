"""What verbs print: a message while they load, tables on standard output, and where work resumes after Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table

    from ..evals.report.table import TextTable

LOADING = "loading ..."
MAX_TABLE_WIDTH = 1000
NARROW_COLUMNS = 72
"""In a narrower terminal, a table of many columns is printed as a list."""


@contextmanager
def loading() -> Iterator[None]:
    """Show a message on standard error while torch and a model are loaded, which takes seconds; then erase it.

    Without a terminal, show nothing.
    """
    if not sys.stderr.isatty():
        yield
        return
    print(f"{LOADING}\r", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print(f"{' ' * len(LOADING)}\r", end="", file=sys.stderr, flush=True)


@contextmanager
def resumable(kept: Path, what: str = "answers") -> Iterator[None]:
    """On Ctrl-C, say where the work so far is kept."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"stopped; '{kept}' holds the {what} so far, and the same command resumes there", err=True)
        raise


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


def grid(
    titles: Sequence[str], rows: Iterable[Sequence[str]], left: Collection[int] = (), *, no_wrap: bool = False
) -> Table:
    """A table of text under bold titles. The columns in `left`, counted from 0, are left-aligned, all others right."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for number, title in enumerate(titles):
        is_left = number in left
        table.add_column(escape(title), justify="left" if is_left else "right", overflow="fold", no_wrap=no_wrap)
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def listing(entries: Iterable[tuple[str, Sequence[str]]]) -> Group:
    """Names, with indented lines below each, for a narrow terminal."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    lines: list[Text | Padding] = []
    for name, details in entries:
        lines += [Text(name, style="bold"), *(Padding(Text(line), (0, 0, 0, 2)) for line in details)]
    return Group(*lines)


def facts(rows: Iterable[tuple[str, str]], indent: int = 0) -> Table:
    """Names and values in two columns, without titles. A long value wraps; a name does not."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, indent))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, escape(value))
    return table


def print_whole(console: Console, table: Table) -> None:
    """Print a table in its full width. In a narrower terminal a long line wraps; it is not cut."""
    needed = console.measure(table, options=console.options.update(max_width=MAX_TABLE_WIDTH)).maximum
    console.width = max(console.width, needed)
    console.print(table, soft_wrap=True)


def print_table(console: Console, table: TextTable) -> None:
    """Print a table of text: names left-aligned, figures right-aligned."""
    print_whole(console, grid(table.titles, table.rows, range(table.labels), no_wrap=True))
