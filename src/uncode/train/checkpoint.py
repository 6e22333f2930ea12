"""What a training checkpoint says about its run, read without torch: whether this config made it, and how far."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from ..core.errors import UncodeError, require, shown
from .config import TrainConfig, with_new_names

FILE = "training.safetensors"
MODEL, RECORD = "model", "training.json"
"""In a run's folder the model it made, and in that the record of the run."""
LISTED = 3
"""Settings that differ and are named one by one."""


def notes_for(config: TrainConfig) -> dict[str, str]:
    """What a checkpoint says about the config it is of."""
    return {"sha256": config.sha256, "config": json.dumps(config.settings)}


def check_same_config(path: Path, config: TrainConfig) -> None:
    """Raise, naming the settings that differ, if a checkpoint is there and of another config."""
    if not path.is_file():
        return
    try:
        with safe_open(path, framework="numpy") as file:
            notes = file.metadata() or {}
    except SafetensorError as error:
        raise UncodeError(f"'{path}' cannot be read ({error}): delete it to begin again.") from error
    if notes.get("sha256", notes.get("recipe")) == config.sha256:  # 0.1.0 called it recipe
        return
    was = with_new_names(json.loads(notes.get("config", "{}")))
    now = json.loads(json.dumps(config.settings))
    other = [f"{key} {shown(was[key])}, not {shown(now[key])}" for key in now if key in was and was[key] != now[key]]
    more = [f"{len(other) - LISTED} more"] * (len(other) > LISTED)
    how = f"was begun with {'; '.join(other[:LISTED] + more)}" if other else "was begun with another config"
    raise UncodeError(f"'{path}' {how}: choose another --out, or delete the file to begin again.")


def is_finished(out: Path, config: TrainConfig) -> bool:
    """Whether the run of this config in a folder is over and its model written."""
    if not (out / FILE).is_file():
        return False  # a run that begins again leaves the old model until its end
    try:
        record: Any = json.loads((out / MODEL / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    same = isinstance(record, dict) and record.get("sha256") == config.sha256
    return same and record.get("steps") == config.schedule.steps


def check_folder(out: Path) -> None:
    """Raise if a path cannot be the folder of a run."""
    require(not out.exists() or out.is_dir(), f"'{out}' is a file: --out takes a folder.")
