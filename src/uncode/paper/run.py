"""Decodes what the report needs, as an evaluation with traces that can be resumed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..evals.run.config import EvalConfig
from ..evals.run.folder import RunFolder
from ..evals.run.models.load_model import load_model
from ..evals.run.models.model import EvaluatedModel
from ..evals.run.options import OnProgress, RunOptions
from ..evals.run.processes import run_processes
from ..evals.run.runner import OnStart, Runner
from ..models import folder_of
from .config import paper_config

RUN = "run"
"""The run folder inside the report's."""
TABLES = "tables"
"""The folder beside a model's files for frequency tables of other corpora."""


@dataclass(frozen=True)
class PaperRun:
    """What is decoded, and how."""

    config: EvalConfig
    out: Path
    device: str | None = None
    dtype: str | None = None
    weights: str | None = None
    frequency: str | None = None
    data: Path | None = None
    examples: int = 200
    """Problems of each task."""
    batch: int = 32

    def decode(self, workers: int, on_progress: OnProgress, on_start: OnStart | None = None) -> RunFolder:
        """Decode what is missing, in one process or in several. `on_start` is for one."""
        run_processes(partial(self.decode_part, on_start=on_start if workers == 1 else None), workers, on_progress)
        folder = RunFolder.existing(self.out / RUN)
        folder.join_files()
        return folder

    def decode_part(self, process: int, processes: int, on_progress: OnProgress, on_start: OnStart | None) -> None:
        """Decode the part of one process."""
        options = RunOptions(self.batch, self.data, self.examples, True, True, process, processes)
        Runner(self.config, self.out / RUN, self._load, options, on_progress, on_start=on_start).fill()

    def _load(self, name: str) -> EvaluatedModel:
        return load_model(
            name,
            self.config,
            device=self.device,
            dtype=self.dtype,
            weights=self.weights,
            frequency=self.frequency,
        )


def config_for(model: str, tasks: tuple[str, ...], with_tables: bool = True) -> EvalConfig:
    """The config for a model. Frequency tables of other corpora are those in its folder `tables`."""
    folder = folder_of(model)
    tables = sorted((folder / TABLES).glob("*.safetensors")) if folder is not None and with_tables else []
    return paper_config(model, tasks, tables)
