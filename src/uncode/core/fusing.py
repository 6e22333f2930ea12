"""Whether fused kernels can be made here."""

from __future__ import annotations

import os
import shutil
from functools import cache
from importlib.util import find_spec


@cache
def lacking() -> str | None:
    """What fused kernels need that is not here; None where nothing is missing."""
    if find_spec("triton") is None:  # torch brings it along where it has GPUs, but not everywhere
        return "triton is not installed"
    if not (os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")):
        return "triton finds no C compiler (gcc, clang or CC) to start kernels with"
    return None


def fuses() -> bool:
    """Whether kernels are fused on a GPU."""
    return lacking() is None
