"""Callbacks of --device and --dtype: a wrong one is reported before torch is imported."""

from __future__ import annotations

from ..core.errors import nearest, require, shown, suggest

DTYPES = ("float64", "float32", "bfloat16", "float16")
"""A test holds that they are those of the loader."""
DEVICES = ("cpu", "cuda", "mps", "xpu", "hpu", "hip", "mtia", "xla", "vulkan", "ipu", "maia", "ve", "meta")
"""Kinds of device; whether there is one here, torch says."""


def check_device(device: str | None) -> str | None:
    """Raise if there is no such kind of device."""
    if device is None or device.startswith("privateuse"):
        return device
    kind, colon, number = device.partition(":")
    near = nearest(kind, ("cpu", "cuda"))
    known = kind in DEVICES and number.isdecimal() == bool(colon)
    instead = f"did you mean '{near}'?" if near is not None and kind != near else "use cpu, cuda or cuda:0."
    require(known, f"{shown(device)} is no device: {instead}")
    require(kind != "cpu" or number in ("", "0"), f"there is no '{device}' here: a CPU has no number; use cpu.")
    return device


def check_dtype(dtype: str | None) -> str | None:
    """Raise if no model runs in that number format."""
    if dtype is not None:
        require(dtype in DTYPES, f"{shown(dtype)} is no dtype: {suggest(dtype, DTYPES)}")
    return dtype
