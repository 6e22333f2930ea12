"""The tie of a guest process to the process that started it."""

from __future__ import annotations

import ctypes
import sys

_DEATH_SIGNAL, _SIGKILL = 1, 9


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, _SIGKILL)
