"""The files of a trained model's folder that its card is written from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import require
from .results import Results

SECOND_FOLDER = "second"
"""The folder, inside the model's, with the record and the results of a run with another seed."""
WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class TrainedModel:
    """One training run: its record and its results in the mini-suite."""

    folder: Path
    record: dict[str, Any]
    results: Results

    @classmethod
    def load(cls, folder: Path) -> TrainedModel:
        return cls(folder, record_of(folder), results_of(folder))

    @property
    def seed(self) -> int:
        return int(self.record["seed"])

    @property
    def name(self) -> str:
        """The name of the training config."""
        return str(self.record["config"])

    @property
    def weights_sha256(self) -> str:
        """The checksum of the weights: the record's, or that of the file. Without both, the beginning of it that the
        results hold, and dots."""
        file = self.folder / WEIGHTS
        if recorded := self.record.get("weights_sha256"):
            return str(recorded)
        if file.is_file():
            return hashlib.sha256(file.read_bytes()).hexdigest()
        return f"{self.results.about.get('weights', '')}..."


def load_runs(folder: Path) -> list[TrainedModel]:
    """The model in a folder, and the one of the second seed if its results are there."""
    first, second = TrainedModel.load(folder), folder / SECOND_FOLDER
    if not second.is_dir():
        return [first]
    runs = [first, TrainedModel.load(second)]
    require(runs[0].seed != runs[1].seed, f"'{second}' has the seed of '{folder}': it must be of another run.")
    return runs


def results_of(folder: Path) -> Results:
    """The mini-suite's results for the model in a folder, from its `results.json`."""
    file = folder / "results.json"
    require(
        file.is_file(),
        f"'{folder}' has no results.json: run `uncode mini --model {folder} --out DIR` and copy it there.",
    )
    return Results.load(file)


def record_of(folder: Path) -> dict[str, Any]:
    """The record of the training run, from its `training.json`."""
    file = folder / "training.json"
    require(file.is_file(), f"'{folder}' has no training.json: it was not made by `uncode train`.")
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    record.setdefault("config", record.get("recipe"))  # the former key
    return record
