"""A run of the mini-suite: the config `mini` on a model, in one process or in several, and its results."""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...core.errors import require
from ...models import TABLE, folder_of
from ..families import FAMILIES
from ..families.write import write_fresh
from ..run.config import EvalConfig
from ..run.folder import DRAWN_PROBLEMS, INFO, RunFolder
from ..run.models.diffusion import DiffusionModel
from ..run.models.load_model import load_model
from ..run.models.model import EvaluatedModel
from ..run.options import OnProgress, Progress, RunOptions
from ..run.process_pool import run_processes
from ..run.runner import CALIBRATION, Runner
from ..sandbox import NoJail
from .biases import biases_of
from .from_run import family_results
from .names import QUICK
from .results import Results

RESULTS = "results.json"


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
    """The run folder; with None the answers are not kept."""
    families: tuple[str, ...] = tuple(FAMILIES)
    draw: int | None = None
    """The seed of a draw of problems that nobody has seen; None for the published ones."""

    @property
    def config(self) -> EvalConfig:
        """The config `mini` for this model and these families."""
        config = EvalConfig.load("mini").narrowed([self.model], self.families, () if self.rates is None else QUICK)
        return config.with_seed(self.seed)

    def run(self, workers: int, on_progress: OnProgress) -> Results:
        """Run all families of the job, except the samples that the folder holds."""
        temporary = tempfile.TemporaryDirectory() if self.folder is None else nullcontext(str(self.folder))
        with temporary as path:
            out = Path(path)
            job = replace(self, folder=out)
            job.draw_problems(on_progress)
            if workers == 1:
                about = job.run_process(0, 1, on_progress)
            else:  # each has whole families, as long as a batch holds all problems of one
                about, *_ = run_processes(job.run_process, workers, on_progress)
            results = job.results(about)
            RunFolder(out).join_files()
            if self.folder is not None:
                results.save(out / RESULTS)
        return results

    @property
    def data(self) -> Path | None:
        """The folder of the problems; None for the published ones."""
        return None if self.draw is None or self.folder is None else self.folder / f"{DRAWN_PROBLEMS}{self.draw}"

    def draw_problems(self, on_progress: OnProgress) -> None:
        """Write the problems of a draw, unless they are there. Raise if the folder has answers to other problems."""
        assert self.folder is not None
        kept = sorted(self.folder.glob(f"{DRAWN_PROBLEMS}*"))
        other = kept != [self.data] if kept else self.draw is not None and (self.folder / INFO).is_file()
        require(not other, f"'{self.folder}' has answers to other problems: choose another `out=`.")
        for number, name in enumerate(self.families):
            if self.data is not None and not (self.data / f"{name}.jsonl").is_file():
                on_progress(Progress(f"drawing {name}", number, len(self.families), 0, 0))
                write_fresh(self.data, self.draw or 0, [name])

    def results(self, about: dict[str, Any]) -> Results:
        """The results of everything that the folder holds, of the first problems."""
        assert self.folder is not None
        folder, calibration = RunFolder(self.folder), self.folder / CALIBRATION
        chosen_by = RunFolder(calibration) if calibration.is_dir() else None
        found = family_results(folder, chosen_by, self.problems, self.data)
        results = Results.of({name: replace(one, about=about) for name, one in found.items()}, biases_of(found))
        results.about["seconds"] = round(sum(one.seconds for one in found.values()), 1)
        return results

    def run_process(self, process: int, processes: int, on_progress: OnProgress | None = None) -> dict[str, Any]:
        """Run one process's part. Returns what the results depend on."""
        warnings.simplefilter("once", NoJail)
        assert self.folder is not None
        about: dict[str, Any] = {}

        def load(name: str) -> EvaluatedModel:
            model = load_model(name, config, device=self.device, dtype=self.dtype)
            assert isinstance(model, DiffusionModel)
            about.update(self._about(model))
            return model

        config = self.config
        options = RunOptions(self.batch, self.data, self.problems, process=process, processes=processes)
        runner = Runner(config, self.folder, load, options, known_rates=self.rates or {})
        if on_progress is not None:
            runner.on_progress = on_progress
        runner.fill()
        return about

    def _about(self, model: DiffusionModel) -> dict[str, Any]:
        """Everything that the results depend on."""
        table = model.denoiser.frequency
        require(
            table is not None, f"'{self.model}' has no frequency table, which the mini-suite needs: run `uncode count`."
        )
        assert table is not None
        folder = folder_of(self.model) or Path()
        weights = sorted(file for file in folder.glob("*.safetensors") if file.name != TABLE)
        return {
            "model": Path(self.model).resolve().name,
            "weights": hashlib.sha256(b"".join(file.read_bytes() for file in weights)).hexdigest()[:16],
            "table": table.sha256[:16],
            "held_out": problems_digest(self.families, self.data),
            "device": model.denoiser.device.type,
            "dtype": str(model.denoiser.dtype).removeprefix("torch."),
            "problems": self.problems,
            "seed": self.seed,
            "rates": None if self.rates is None else dict(self.rates),
        }


def problems_digest(families: Iterable[str] = FAMILIES, data: Path | None = None) -> str:
    """A fingerprint of the test problems of these families."""
    found = (FAMILIES[name] for name in families)
    keys = "".join(family.key(example) for family in found for example in family.examples(data))
    return hashlib.sha256(keys.encode()).hexdigest()[:16]
