"""A message on the terminal while torch and a model are loaded, which takes seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

MESSAGE = "loading ..."


@contextmanager
def loading() -> Iterator[None]:
    """Show the message on standard error, and erase it afterwards. Without a terminal, show nothing."""
    if not sys.stderr.isatty():
        yield
        return
    print(f"{MESSAGE}\r", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print(f"{' ' * len(MESSAGE)}\r", end="", file=sys.stderr, flush=True)
