"""Printing what rich lays out, without the blanks it pads lines with where the output is piped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

NARROW = 72
"""Columns of a terminal below which a table of many columns is hard to read."""


def print_trimmed(console: Console, *what: Any, **options: Any) -> None:
    """Print as :meth:`rich.console.Console.print` does; no line of a pipe or a file ends in blanks."""
    if console.is_terminal:
        console.print(*what, **options)
        return
    with console.capture() as printed:
        console.print(*what, **options)
    typer.echo("\n".join(line.rstrip() for line in printed.get().split("\n")), nl=False)
