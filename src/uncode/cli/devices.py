"""Checks of --device, --dtype and --weights that run before torch is imported."""

from __future__ import annotations

from ..core.errors import nearest, require, shown, suggest

DTYPES = ("float64", "float32", "bfloat16", "float16")
"""A test checks that these are the loader's dtypes."""
WEIGHTS = ("fp8", "int8", "int4")
"""A test checks that these are the formats that a network packs its weights in."""
DEVICES = ("cpu", "cuda", "mps", "xpu", "hpu", "hip", "mtia", "xla", "vulkan", "ipu", "maia", "ve", "meta")
"""Kinds of device. Whether this machine has one is checked later, by torch."""


def check_device(device: str | None) -> str | None:
    """Raise if a device is of no known kind."""
    if device is None or device.startswith("privateuse"):
        return device
    kind, colon, number = device.partition(":")
    near = nearest(kind, ("cpu", "cuda"))
    is_known = kind in DEVICES and number.isdecimal() == bool(colon)
    instead = f"did you mean '{near}'?" if near is not None and kind != near else "use cpu, cuda or cuda:0."
    require(is_known, f"{shown(device)} is no device: {instead}")
    require(kind != "cpu" or number in ("", "0"), f"there is no '{device}' here: a CPU has no number; use cpu.")
    return device


def check_dtype(dtype: str | None) -> str | None:
    """Raise if a dtype is not one of DTYPES."""
    if dtype is not None:
        require(dtype in DTYPES, f"{shown(dtype)} is no dtype: {suggest(dtype, DTYPES)}")
    return dtype


def check_weights(weights: str | None) -> str | None:
    """Raise if a format of weights is not one of WEIGHTS."""
    if weights is not None:
        require(weights in WEIGHTS, f"{shown(weights)} is not a format of weights: {suggest(weights, WEIGHTS)}")
    return weights
