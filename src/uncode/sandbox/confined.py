"""Python processes of this package that confine themselves before they read what they do not trust."""

from __future__ import annotations

import os
import sys

_KEPT = ("LD_LIBRARY_PATH", "UNCODE_CACHE", "XDG_CACHE_HOME", "HOME")
"""Variables that such a process needs: to find libraries, and to read the cache folder."""


def confined_python(module: str, *words: str) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment of a process that runs a module of this package."""
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    environment |= {name: os.environ[name] for name in _KEPT if name in os.environ}
    return [sys.executable, "-P", "-m", module, *words], environment
