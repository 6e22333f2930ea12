"""A run on a Ray cluster: the workers are the processes of the run, and share its folder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ...core.errors import UncodeError, require
from ...core.support.reprs import counted
from ...sandbox import NoJail
from ...util.ray_cluster import MAX_RETRIES, connected, one_sentence, one_worker, worker_count
from .config import EvalConfig
from .folder import RunFolder
from .models.model import EvaluatedModel
from .options import RunOptions, RunProgress
from .runner import Runner

REPORT_SECONDS = 2.0


def run_on_ray(runner: Runner, address: str, workers: int | None = None) -> bool:
    """Fill the run folder, which all nodes see, and return whether the run is complete.

    `workers` is one for each GPU of the cluster by default, or for each CPU where it has none. Ray starts the work of
    one that died again, and the answers in its file are not repeated.
    """
    total, folder = runner.total, RunFolder(runner.out)  # missing data is found before anything is started
    with connected(address, "cluster", "evaluating on a cluster") as ray, one_sentence(ray, "run this config"):
        count = workers or worker_count(ray)
        task = ray.remote(max_retries=MAX_RETRIES, **one_worker(ray))(_run_part)
        parts = [replace(runner.options, process=number, processes=count) for number in range(count)]
        running = [task.remote(os.getcwd(), runner.config, runner.out, runner.load, part) for part in parts]
        while running:
            done, running = ray.wait(running, timeout=REPORT_SECONDS)
            for fault, notes in ray.get(done):
                require(not fault, fault)
                for note in notes:
                    warnings.warn(note, NoJail, stacklevel=2)
            found = min(folder.count_lines(), total)
            runner.on_progress(RunProgress(counted(count, "worker"), found, total, 0, 0))
    return runner.merge_if_complete(folder)


def _run_part(
    cwd: str, config: EvalConfig, out: Path, load: Callable[[str], EvaluatedModel], options: RunOptions
) -> tuple[str, set[str]]:
    """The work of one worker, in the driver's folder: paths may be relative. Returns an error, and what the sandbox
    warns of."""
    if not os.path.isdir(cwd):
        return f"a node of the cluster does not see '{cwd}': start the run in a folder that all nodes share.", set()
    os.chdir(cwd)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", NoJail)
        try:
            Runner(config, out, load, options).fill()
        except UncodeError as error:
            return str(error), set()
    return "", {str(note.message) for note in notes}
