"""A run of the mini-suite: the config `mini` on a model, in one process or in several, and its results."""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...core.errors import require
from ...models import folder_of
from ...sandbox import NoJail
from ...util.paths import make_folder
from ...util.write import write_whole
from ..run.config import EvalConfig
from ..run.folder import DRAWN_PROBLEMS, INFO, RunFolder
from ..run.models.diffusion import DiffusionModel
from ..run.models.load_model import load_model
from ..run.models.model import EvaluatedModel
from ..run.options import OnProgress, RunOptions, RunProgress
from ..run.processes import run_processes
from ..run.runner import OnStart, Runner
from .every_preset import with_every_preset, with_samplers
from .families import FAMILIES
from .families.family import COUNT, json_lines
from .folder import training_seed, weights_digest
from .from_run import results_of_run
from .names import QUICK
from .results import RESULTS, Results


@dataclass(frozen=True)
class SuiteRun:
    """A run of the mini-suite: what is decoded, and how."""

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
    every_preset: bool = False
    """Whether to run every preset, for the leaderboard. One that the model cannot be decoded with is left out, and the
    results say why."""
    samplers: tuple[str, ...] = ()
    """Of every preset only these rows, and sampler files; none means all."""
    weights: str | None = None
    """The format to pack the model's weights in."""

    @property
    def config(self) -> EvalConfig:
        """The config `mini` for this model and these families."""
        config = EvalConfig.load("mini").narrowed([self.model], self.families).with_seed(self.seed)
        if not self.every_preset:
            return config if self.rates is None else config.narrowed(samplers=QUICK)
        whole = with_every_preset(config)
        return with_samplers(whole, self.samplers) if self.samplers else whole

    def run(self, workers: int, on_progress: OnProgress, on_start: OnStart | None = None) -> Results:
        """Run all families, except the samples that the folder holds. `on_start` is for one worker."""
        temporary = tempfile.TemporaryDirectory() if self.folder is None else nullcontext(str(self.folder))
        with temporary as path:
            out = Path(path)
            run = replace(self, folder=out)
            run.draw_problems(on_progress)
            with tempfile.TemporaryDirectory() as claims:
                alone = workers == 1
                shared, announced = None if alone else Path(claims), on_start if alone else None
                part = partial(run.run_process, claims=shared, on_start=announced)
                parts = run_processes(part, workers, on_progress, share_cells=True)
            left_out = {label: reason for part in parts for label, reason in part["left_out"].items()}
            results = results_of_run(out, self.problems, run.data, parts[0] | {"left_out": left_out})
            reasons = "; ".join(f"{label}: {reason}" for label, reason in left_out.items())
            require(bool(results.cells), f"no sampler can decode '{self.model}': {reasons}")
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
                on_progress(RunProgress(f"drawing {name}", number, len(self.families), 0, 0))
                make_folder(self.data)
                drawn = FAMILIES[name].fresh_problems(COUNT, self.draw or 0)
                write_whole(self.data / f"{name}.jsonl", json_lines(drawn))

    def run_process(
        self,
        process: int,
        processes: int,
        on_progress: OnProgress,
        claims: Path | None,
        on_start: OnStart | None,
    ) -> dict[str, Any]:
        """Run one process's part: the cells that it claims, or all. Returns what the results depend on."""
        warnings.simplefilter("once", NoJail)
        assert self.folder is not None
        left_out: dict[str, str] = {}
        about: dict[str, Any] = {"left_out": left_out}

        def load(name: str) -> EvaluatedModel:
            model = load_model(
                name, config, device=self.device, dtype=self.dtype, weights=self.weights, may_refuse=True
            )
            assert isinstance(model, DiffusionModel)
            about.update(self._about(model))
            return model

        config = self.config
        options = RunOptions(self.batch, self.data, self.problems, process=process, processes=processes, claims=claims)
        kept = left_out if self.every_preset else None
        Runner(config, self.folder, load, options, on_progress, self.rates or {}, on_start, kept).fill()
        return about

    def _about(self, model: DiffusionModel) -> dict[str, Any]:
        """Everything that the results depend on."""
        table = model.denoiser.frequency
        require(
            table is not None or self.every_preset,
            f"'{self.model}' has no frequency table, which the mini-suite needs: run `uncode count`.",
        )
        folder = folder_of(self.model) or Path()
        return {
            "model": Path(self.model).resolve().name,
            "weights": weights_digest(folder),
            "table": None if table is None else table.sha256[:16],
            "held_out": problems_digest(self.families, self.data),
            "device": model.denoiser.device.type,
            "dtype": str(model.denoiser.dtype).removeprefix("torch."),
            **({} if self.weights is None else {"weight_format": self.weights}),
            "problems": self.problems,
            "draw": self.draw,
            "seed": self.seed,
            "training_seed": training_seed(folder),
            "rates": None if self.rates is None else dict(self.rates),
        }


def problems_digest(families: Iterable[str] = FAMILIES, data: Path | None = None) -> str:
    """A fingerprint of the test problems of these families."""
    found = (FAMILIES[name] for name in families)
    keys = "".join(family.key(example) for family in found for example in family.examples(data))
    return hashlib.sha256(keys.encode()).hexdigest()[:16]
