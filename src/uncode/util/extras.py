"""Optional packages: the extras of the distribution, and the error for a missing package."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from ..core.errors import UncodeError

EXTRAS = {
    "eval": (("math_verify", "datasets"), "benchmarks: comparing formulas (math_verify), fetching data (datasets)"),
    "devices": (("accelerate",), "one model over several devices (device_map)"),
    "corpora": (("datasets", "pyarrow", "zstandard"), "counting over dataset ids, Parquet and zst files"),
    "cluster": (("ray", "pyarrow"), "counting, decoding and evaluations on a Ray cluster"),
    "lm-eval": (("lm_eval",), "lm-evaluation-harness with our models and tasks (`uncode lm-eval`)"),
    "plots": (("matplotlib",), "figures (`uncode analyze`, `uncode calibrate --plot`, the card of a model)"),
    "frames": (("pandas",), "traces and runs as data frames (`to_frame`)"),
    "serve": (("fastapi", "uvicorn", "prometheus_client"), "the server (`uncode serve`)"),
    "serve-ray": (("ray", "grpc"), "the server on a Ray cluster (`uncode serve --ray`)"),
    "gguf": (("gguf",), "autoregressive models in GGUF files"),
}
"""For each extra its packages, and what they enable."""


def needed(module: str, extra: str, purpose: str) -> Any:
    """Import an optional module. If it is not installed, the error names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _missing(module, extra, purpose) from error


def check_installed(module: str, extra: str, purpose: str) -> None:
    """Raise the same error if a module is not installed, without importing it: call this before long work."""
    if importlib.util.find_spec(module) is None:
        raise _missing(module, extra, purpose)


def _missing(module: str, extra: str, purpose: str) -> UncodeError:
    return UncodeError(f"{purpose} needs {module}: pip install 'uncode[{extra}]'.")
