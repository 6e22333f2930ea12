"""A run of the mini-suite: the families one after the other, or in parallel processes."""

from __future__ import annotations

import hashlib
import multiprocessing
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...backbones.loading.load import load
from ...core.denoiser import Denoiser
from ...core.errors import require
from ...core.pieces.piece import Table
from ...core.support.paths import make_folder
from ...files import exclusive_lock, require_same_job
from ...models import TABLE, folder_of
from ..families import FAMILIES
from ..sandbox import NoJail
from .biases import biases_of
from .results import Part, Results
from .run import OnProgress, Suite


@dataclass(frozen=True)
class Job:
    """The settings of a run."""

    model: str
    device: str | None
    dtype: str | None
    problems: int
    batch: int
    seed: int
    rates: Mapping[str, float] | None
    """Uncode's rates, for a quick run. With None, all presets run and the rates are chosen."""
    folder: Path | None
    families: tuple[str, ...] = tuple(FAMILIES)

    def run(self, workers: int, on_progress: OnProgress) -> Results:
        """Run all families of the job, except those that are finished in the folder."""
        if self.folder is None:
            return self._results(workers, on_progress)
        make_folder(self.folder)
        with exclusive_lock(self.folder / "mini.lock", self.folder, "writing results"):
            results = self._results(workers, on_progress)
            results.save(self.folder / "results.json")
        return results

    def _results(self, workers: int, on_progress: OnProgress) -> Results:
        if workers == 1:
            parts = {name: self.part(name, on_progress) for name in self.families}
        else:
            parts = self._in_processes(workers, on_progress)
        about = next(iter(parts.values())).about
        others = {name: self._load_part(name, about) for name in FAMILIES if name not in parts}
        parts |= {name: part for name, part in others.items() if part.cells}
        parts = {name: parts[name] for name in FAMILIES if name in parts}
        results = Results.of(parts, biases_of(parts))
        results.about["seconds"] = round(sum(part.seconds for part in parts.values()), 1)
        return results

    def _in_processes(self, workers: int, on_progress: OnProgress) -> dict[str, Part]:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            futures = {pool.submit(self.part, name): name for name in self.families}
            found = {}
            for future in as_completed(futures):
                found[futures[future]] = future.result()
                on_progress(f"{futures[future]} is done")
        return {name: found[name] for name in self.families}

    def part(self, name: str, on_progress: OnProgress = lambda message: None) -> Part:
        """Run one family, or resume it."""
        warnings.simplefilter("once", NoJail)
        denoiser = load(self.model, device=self.device, dtype=self.dtype)
        table = denoiser.frequency
        require(
            table is not None, f"'{self.model}' has no frequency table, which the mini-suite needs: run `uncode count`."
        )
        assert table is not None
        about = self._about(denoiser, table)
        began = time.monotonic()
        suite = Suite(
            denoiser, table, FAMILIES[name], self._load_part(name, about), self.batch, self.folder, on_progress
        )
        if self.rates is None:
            suite.full()
        else:
            suite.quick(self.rates[name])
        suite.part.seconds += time.monotonic() - began
        suite.save()
        return suite.part

    def _about(self, denoiser: Denoiser, table: Table) -> dict[str, Any]:
        """Everything that the results depend on."""
        folder = folder_of(self.model) or Path()
        weights = sorted(file for file in folder.glob("*.safetensors") if file.name != TABLE)
        return {
            "model": Path(self.model).resolve().name,
            "weights": hashlib.sha256(b"".join(file.read_bytes() for file in weights)).hexdigest()[:16],
            "table": table.sha256[:16],
            "held_out": problems_digest(),
            "device": denoiser.device.type,
            "dtype": str(denoiser.dtype).removeprefix("torch."),
            "problems": self.problems,
            "seed": self.seed,
            "rates": None if self.rates is None else dict(self.rates),
        }

    def _load_part(self, name: str, about: dict[str, Any]) -> Part:
        """The results of a family in the folder, or an empty part. Raise if they belong to another run."""
        if self.folder is None or not (self.folder / f"{name}.json").is_file():
            return Part(about)
        found = Part.load(self.folder / f"{name}.json")
        require_same_job(self.folder, "a run", about, found.about, "remove the results there")
        return found


def problems_digest() -> str:
    """A fingerprint of the test problems of all families."""
    keys = "".join(family.key(example) for family in FAMILIES.values() for example in family.examples())
    return hashlib.sha256(keys.encode()).hexdigest()[:16]
