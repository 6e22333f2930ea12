"""What a trained model's folder says of itself: its weights, its training run, and its results in the mini-suite."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.errors import require
from ...models import TABLE
from .results import RESULTS, Results

SECOND_FOLDER = "second"
"""The folder, inside a run's, for the run of a model that was trained with another seed."""


def check_seeds(folders: Sequence[Path]) -> None:
    """Raise if two models were trained with the same seed. A folder that does not say its seed is taken as it is."""
    seeds = [seed for folder in folders if (seed := training_seed(folder)) is not None]
    require(
        len(set(seeds)) == len(seeds), f"'{folders[-1]}' has the seed of '{folders[0]}': it must be of another run."
    )


def results_of(folder: Path) -> Results:
    """The mini-suite's results for the model in a folder, from its `results.json`."""
    file = folder / RESULTS
    require(
        file.is_file(),
        f"'{folder}' has no {RESULTS}: run `uncode mini --model {folder} --out DIR` and copy it there.",
    )
    return Results.load(file)


def weights_digest(folder: Path) -> str:
    """The fingerprint of a model's weights that its results hold."""
    weights = sorted(file for file in folder.glob("*.safetensors") if file.name != TABLE)
    return hashlib.sha256(b"".join(file.read_bytes() for file in weights)).hexdigest()[:16]


def training_seed(folder: Path) -> int | None:
    """The seed of the training run, or None if the folder does not say."""
    return int(record_of(folder)["seed"]) if (folder / "training.json").is_file() else None


def record_of(folder: Path) -> dict[str, Any]:
    """The record of the training run, from its `training.json`."""
    file = folder / "training.json"
    require(file.is_file(), f"'{folder}' has no training.json: it was not made by `uncode train`.")
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return record
