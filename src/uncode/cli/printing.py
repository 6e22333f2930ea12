"""Standard output by rich, without the blanks that it pads lines with where the output is piped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

NARROW = 72
"""Columns of a terminal below which a table of many columns is hard to read."""


@contextmanager
def printing() -> Iterator[Console]:
    """A console for standard output. No line of a pipe or a file ends in blanks."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal:
        yield console
        return
    with console.capture() as printed:
        yield console
    typer.echo("\n".join(line.rstrip(" ") for line in printed.get().split("\n")), nl=False)
