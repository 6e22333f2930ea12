"""A whole run of the mini-suite: the families one after the other, or at the same time in processes of their own."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...backbones.load import load
from ...core.errors import require
from ..families import FAMILIES
from ..sandbox import NoJail
from .biases import biases_of
from .results import Part, Results
from .run import Suite, Watch


@dataclass(frozen=True)
class Job:
    """What is asked for."""

    model: str
    device: str | None
    dtype: str | None
    problems: int
    batch: int
    seed: int
    rates: Mapping[str, float] | None
    """Uncode's rates, for a quick run; None: all presets, and the rates are found."""
    folder: Path | None
    families: tuple[str, ...] = tuple(FAMILIES)

    @property
    def about(self) -> dict[str, Any]:
        return {
            "model": Path(self.model).name,
            "dtype": self.dtype or "default",
            "problems": self.problems,
            "seed": self.seed,
            "quick": self.rates is not None,
        }

    def run(self, workers: int, watch: Watch) -> Results:
        """All families of the job. Those that are finished in the folder are not run again."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        if workers == 1:
            parts = {name: self.part(name, watch) for name in self.families}
        else:
            parts = self._in_processes(workers, watch)
        results = Results.of(parts, biases_of(parts))
        results.about["seconds"] = round(time.monotonic() - began, 1)
        if self.folder is not None:
            results.save(self.folder / "results.json")
        return results

    def _in_processes(self, workers: int, watch: Watch) -> dict[str, Part]:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            futures = {pool.submit(self.part, name): name for name in self.families}
            found = {}
            for future in as_completed(futures):
                found[futures[future]] = future.result()
                watch(f"{futures[future]} is done")
        return {name: found[name] for name in self.families}

    def part(self, name: str, watch: Watch = lambda told: None) -> Part:
        """One family, from the beginning or from where it was left."""
        warnings.simplefilter("once", NoJail)
        denoiser = load(self.model, device=self.device, dtype=self.dtype)
        table = getattr(denoiser, "frequency", None)
        require(table is not None, f"'{self.model}' has no frequency table of its own, which the mini-suite needs.")
        assert table is not None
        about = self.about | {"device": denoiser.device.type, "dtype": str(denoiser.dtype).removeprefix("torch.")}
        suite = Suite(denoiser, table, FAMILIES[name], self._begun(name, about), self.batch, self.folder, watch)
        if self.rates is None:
            suite.full()
        else:
            suite.quick(self.rates[name])
        return suite.part

    def _begun(self, name: str, about: dict[str, Any]) -> Part:
        """What there is of a family in the folder, if it is of the same run."""
        if self.folder is None or not (self.folder / f"{name}.json").is_file():
            return Part(about)
        found = Part.load(self.folder / f"{name}.json")
        other = [key for key, value in about.items() if found.about.get(key) != value]
        require(
            not other,
            f"'{self.folder}' holds results of another run (other {' and other '.join(other)}): choose another --out.",
        )
        return found
