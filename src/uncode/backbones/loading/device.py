"""Devices and number formats, as a user names them."""

from __future__ import annotations

import torch

from ...core.errors import UncodeError, require, shown, suggest

Device = torch.device | str | int | None
Dtype = torch.dtype | str | None

DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def usual_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def parse_device(device: Device) -> torch.device:
    """A device that exists; the GPU where none is named and there is one."""
    try:
        chosen = torch.device(usual_device() if device is None else device)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise UncodeError(f"{shown(device)} is no device: use cpu, cuda or cuda:0.") from error
    require(chosen.type != "meta", "a model on the device 'meta' has no numbers: use cpu or cuda.")
    try:
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # torch has no one kind for it
        raise UncodeError(f"there is no '{chosen}' here: choose another device, such as cpu.") from error
    return chosen


def parse_dtype(dtype: Dtype) -> torch.dtype | None:
    if dtype is None or isinstance(dtype, torch.dtype):
        require(dtype is None or dtype in DTYPES.values(), f"a model runs in {', '.join(DTYPES)}, not in {dtype}.")
        return dtype
    require(isinstance(dtype, str) and dtype in DTYPES, f"{shown(dtype)} is no dtype: {suggest(str(dtype), DTYPES)}")
    return DTYPES[str(dtype)]
