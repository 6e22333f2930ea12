"""Whether Triton kernels can run here. `linear` and `attention` add their own conditions."""

from __future__ import annotations

import os
import shutil
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from ..errors import require

SWITCH = "UNCODE_KERNELS"
MIN_CAPABILITY = (8, 0)
"""The compute capability from which a GPU computes in bfloat16."""


@cache
def why_not() -> str | None:
    """What keeps Triton kernels from running here; None where nothing does."""
    asked = os.environ.get(SWITCH, "fused")
    require(asked in ("fused", "plain"), f"{SWITCH} is 'fused' or 'plain', not '{asked}'.")
    if asked == "plain":
        return f"{SWITCH}=plain asks for it"
    if torch.version.hip is not None:
        return "they are written for GPUs of NVIDIA"
    if any(torch.cuda.get_device_capability(n) < MIN_CAPABILITY for n in range(torch.cuda.device_count())):
        return f"a GPU here has less than compute capability {MIN_CAPABILITY[0]}.{MIN_CAPABILITY[1]}"
    if find_spec("triton") is None:  # torch brings it along where it has GPUs, but not everywhere
        return "triton is not installed"
    if not (os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")):
        return "triton finds no C compiler (gcc, clang or CC) to launch kernels with"
    return None


def use_triton(x: Tensor) -> bool:
    """Whether to run a kernel on `x`: on a GPU, without gradients, and not in float64, which no kernel computes."""
    return x.is_cuda and x.dtype != torch.float64 and not torch.is_grad_enabled() and why_not() is None
