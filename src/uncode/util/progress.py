"""Progress bars on standard error, if it is a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

OnAmount = Callable[[int, int], None]
"""Called with what is done and the total; a total of 0 is not known yet."""


def download_bar(what: str) -> AbstractContextManager[OnAmount]:
    """A bar for a download."""
    return _amount_bar(what, DownloadColumn())


def item_bar(what: str) -> AbstractContextManager[OnAmount]:
    """A bar for a number of items."""
    return _amount_bar(what, MofNCompleteColumn())


def reading_bar(what: str) -> AbstractContextManager[OnAmount]:
    """A bar for the bytes of files that are read, once that takes two seconds."""
    return _amount_bar(what, DownloadColumn(), after_seconds=2.0)


@contextmanager
def _amount_bar(what: str, amount: ProgressColumn, after_seconds: float = 0.0) -> Iterator[OnAmount]:
    console, began = Console(stderr=True), time.monotonic()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), amount, TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(what, total=None)

    def on_amount(done: int, total: int) -> None:
        if time.monotonic() - began >= after_seconds:
            bar.start()
        bar.update(task, completed=done, total=total or None)

    try:
        if not after_seconds:
            bar.start()
        yield on_amount
    finally:
        bar.stop()
