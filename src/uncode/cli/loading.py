"""A word on a terminal while torch and a model are loaded: that takes seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

WORD = "loading ..."


@contextmanager
def loading() -> Iterator[None]:
    """Show the word on standard error, and wipe it out afterwards. Nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield
        return
    print(f"{WORD}\r", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print(f"{' ' * len(WORD)}\r", end="", file=sys.stderr, flush=True)
