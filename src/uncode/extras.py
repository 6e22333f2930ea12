"""Optional packages: what each extra brings, and a kind word where one is missing."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from .core.errors import UncodeError

EXTRAS = {
    "eval": (("math_verify", "datasets"), "benchmarks: comparing formulas (math_verify), fetching data (datasets)"),
    "devices": (("accelerate",), "one model over several devices (device_map)"),
    "corpora": (("datasets", "pyarrow", "zstandard"), "counting over dataset ids, Parquet and zst files"),
    "cluster": (("ray",), "counting on a cluster"),
    "train": (("reasoning_gym",), "the tiny model's curriculum"),
}
"""For each extra its packages and what they enable."""


def needed(module: str, extra: str, purpose: str) -> Any:
    """An optional module; an error that names the extra where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _missing(module, extra, purpose) from error


def check_installed(module: str, extra: str, purpose: str) -> None:
    """The same error, before any work is done; the module is not imported."""
    if importlib.util.find_spec(module) is None:
        raise _missing(module, extra, purpose)


def _missing(module: str, extra: str, purpose: str) -> UncodeError:
    return UncodeError(f"{purpose} needs {module}: pip install 'uncode[{extra}]'.")
