"""Whether fused kernels can be made here."""

from __future__ import annotations

import os
import shutil
from functools import cache
from importlib.util import find_spec

import torch

from ..errors import require

SWITCH = "UNCODE_KERNELS"
LEAST = (8, 0)
"""The compute capability from which bfloat16 is a number like others."""


@cache
def lacking() -> str | None:
    """What fused kernels need that is not here; None where nothing is missing."""
    asked = os.environ.get(SWITCH, "fused")
    require(asked in ("fused", "plain"), f"{SWITCH} is 'fused' or 'plain', not '{asked}'.")
    if asked == "plain":
        return f"{SWITCH}=plain asks for it"
    if torch.version.hip is not None:
        return "they are written for GPUs of NVIDIA"
    if any(torch.cuda.get_device_capability(n) < LEAST for n in range(torch.cuda.device_count())):
        return f"a GPU here has less than compute capability {LEAST[0]}.{LEAST[1]}"
    if find_spec("triton") is None:  # torch brings it along where it has GPUs, but not everywhere
        return "triton is not installed"
    if not (os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")):
        return "triton finds no C compiler (gcc, clang or CC) to start kernels with"
    return None


def fuses() -> bool:
    """Whether kernels are fused on a GPU."""
    return lacking() is None
