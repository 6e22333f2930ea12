"""The config and the progress that a training checkpoint records. Reading them does not import torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from ..core.errors import UncodeError, shown
from .config import TrainConfig

CHECKPOINT_FILE = "training.safetensors"
MODEL_FOLDER = "model"
"""The folder of the trained model, in the folder of the run."""
RECORD_FILE = "training.json"
"""The record of the run, in the folder of the model."""
MAX_LISTED_SETTINGS = 3
"""An error names at most this many settings that differ."""


def metadata_of(config: TrainConfig) -> dict[str, str]:
    """The metadata by which a checkpoint names its config."""
    return {"sha256": config.sha256, "config": json.dumps(config.settings)}


def check_same_config(path: Path, config: TrainConfig) -> None:
    """Raise if the checkpoint at `path` belongs to another config; the error names the settings that differ."""
    if not path.is_file():
        return
    try:
        with safe_open(path, framework="numpy") as file:
            notes = file.metadata() or {}
    except SafetensorError as error:
        raise UncodeError(f"'{path}' cannot be read ({error}): delete it to start again.") from error
    if notes.get("sha256") == config.sha256:
        return
    was = json.loads(notes.get("config", "{}"))
    now = json.loads(json.dumps(config.settings))
    other = [f"{key} {shown(was[key])}, not {shown(now[key])}" for key in now if key in was and was[key] != now[key]]
    more = [f"{len(other) - MAX_LISTED_SETTINGS} more"] * (len(other) > MAX_LISTED_SETTINGS)
    how = "; ".join(other[:MAX_LISTED_SETTINGS] + more) if other else "another config"
    raise UncodeError(f"'{path}' was begun with {how}: choose another `out=`, or delete the file to start again.")


def is_finished(out: Path, config: TrainConfig) -> bool:
    """Whether the run of this config in the folder `out` has finished and written its model."""
    if not (out / CHECKPOINT_FILE).is_file():
        return False  # a run that starts again keeps the old model until it has finished
    try:
        record: Any = json.loads((out / MODEL_FOLDER / RECORD_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    same = isinstance(record, dict) and record.get("sha256") == config.sha256
    return same and record.get("steps") == config.schedule.steps
