"""Models of transformers from a local folder: quietly, from safetensors or GGUF, and without random parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ...core.errors import UncodeError
from .checkpoint import complain

_ERRORS_ALONE = 40


def read_pretrained(auto: Any, folder: Path, what: str, dtype: torch.dtype, *, bars: bool, **options: Any) -> Any:
    """A model by an auto class of transformers. `what` names its kind in errors.

    A parameter that the folder does not hold is an error, never random numbers. No pickle is read and no remote code
    is run.
    """
    try:
        with quiet_transformers(bars):
            model, report = auto.from_pretrained(
                str(folder),
                dtype=dtype,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are in the report, and an error below
                **options,
            )
    except Exception as error:  # transformers raises many kinds
        first = (str(error).strip().splitlines() or [repr(error)])[0]
        raise UncodeError(f"'{folder}' cannot be loaded as a {what}: {first}") from error
    kinds = {_numberless(name) for name in model.state_dict()}
    complain(
        f"the weights in '{folder}' do not make the {what} of its config.json",
        {
            "missing": sorted(report["missing_keys"]),
            "of another shape": sorted(str(key[0]) for key in report["mismatched_keys"]),
            # a pooler more is harmless, a layer more is not
            "unexpected": sorted(key for key in report["unexpected_keys"] if _numberless(key) in kinds),
        },
    )
    return model


@contextmanager
def quiet_transformers(bars: bool) -> Iterator[None]:
    """Without the reports of transformers, for what is wrong is an error here; its bars for large models only."""
    from transformers.utils import logging

    logs: Any = logging
    loudness, shown = logs.get_verbosity(), logs.is_progress_bar_enabled()
    logs.set_verbosity(_ERRORS_ALONE)
    if not bars:
        logs.disable_progress_bar()
    try:
        yield
    finally:
        logs.set_verbosity(loudness)
        if shown:
            logs.enable_progress_bar()


def _numberless(name: str) -> str:
    return re.sub(r"\d+", "#", name)
