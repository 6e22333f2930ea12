"""Progress bars on standard error, and checks made before work begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from ..core.errors import require


@contextmanager
def download(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for bytes that arrive; nothing where standard error is not a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole or None)


def writable(out: Path) -> None:
    """Raise, before any work is done, if a file cannot be written there."""
    require(out.parent.is_dir(), f"the folder '{out.parent}' does not exist.")
    require(not out.is_dir(), f"'{out}' is a folder; --out takes a file.")
