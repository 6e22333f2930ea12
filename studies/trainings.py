"""The two trainings of `tiny`: weights, records and stored results."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from uncode.evals.run.config import EvalConfig
from uncode.evals.suite.folder import record_of
from uncode.evals.suite.results import Results
from uncode.models import TINY

ROOT = Path(__file__).parents[1]
FOLDERS = (TINY, Path(__file__).parent / "tiny-seed-1")
"""The models of seeds 0 and 1."""
TINY_CONFIG = Path(__file__).parent / "tiny.toml"
STORED = Path(__file__).parent / "results"
"""Every preset on the published problems (`seed-0.json`), and some on those of a new draw (`fresh-seed-0.json`)."""
WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Training:
    """A training run: the folder of its model, and its results in the mini-suite."""

    folder: Path
    results: Results

    @cached_property
    def record(self) -> dict[str, Any]:
        return record_of(self.folder)

    @property
    def seed(self) -> int:
        return int(self.record["seed"])

    @property
    def name(self) -> str:
        """The name of the training config."""
        return str(self.record["config"])

    @property
    def weights_sha256(self) -> str:
        return hashlib.sha256((self.folder / WEIGHTS).read_bytes()).hexdigest()

    def of_main_presets(self) -> Training:
        """The same with the results of the config `mini` alone, which the card shows."""
        labels = {entry.label for entry in EvalConfig.load("mini").samplers}
        families = self.results.cells.items()
        cells = {family: {name: cell for name, cell in of.items() if name in labels} for family, of in families}
        return Training(self.folder, replace(self.results, cells=cells))


def trainings(prefix: str = "") -> list[Training]:
    """Both trainings, with the results of every preset. `fresh-` is for those on problems of a new draw."""
    return [Training(folder, Results.load(STORED / f"{prefix}seed-{n}.json")) for n, folder in enumerate(FOLDERS)]
