"""The files of a trained model's folder that its card is written from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import require
from ...models import TABLE
from ..run.config import EvalConfig
from .results import RESULTS, Results

SECOND_FOLDER = "second"
"""The folder, inside the model's, with the record and the results of a run with another seed."""
FRESH_FOLDER = "fresh"
"""The folder, inside the model's, with the results on problems of a new draw, and those of the second seed in it."""
WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class TrainedModel:
    """One training run: its record and its results in the mini-suite."""

    folder: Path
    record: dict[str, Any]
    results: Results

    @classmethod
    def load(cls, folder: Path, every_preset: bool = False) -> TrainedModel:
        """The model in a folder, with the results of the config `mini`, or with those of every preset."""
        results = results_of(folder)
        if not every_preset:
            results = results.of_samplers({entry.label for entry in EvalConfig.load("mini").samplers})
        return cls(folder, record_of(folder), results)

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


def load_runs(folder: Path, every_preset: bool = False) -> list[TrainedModel]:
    """The model in a folder, and the one of the second seed if its results are there."""
    first, second = TrainedModel.load(folder, every_preset), folder / SECOND_FOLDER
    if not second.is_dir():
        return [first]
    check_seeds([folder, second])
    return [first, TrainedModel.load(second, every_preset)]


def fresh_results(folder: Path) -> list[Results]:
    """The results on problems of a new draw, of one or two seeds; none if they were not measured."""
    fresh = folder / FRESH_FOLDER
    return [Results.load(file) for one in (fresh, fresh / SECOND_FOLDER) if (file := one / RESULTS).is_file()]


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
    record.setdefault("config", record.get("recipe"))  # the former key
    return record
