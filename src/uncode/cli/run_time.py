"""How long a run will take on this machine, said before it begins."""

from __future__ import annotations

import typer

from ..core.support.memory import gigabytes
from ..core.support.reprs import counted
from ..evals.run.estimate import estimate
from ..evals.run.models.diffusion import DiffusionModel
from ..evals.run.models.model import EvaluatedModel
from ..evals.run.runner import Runner


def announce_time(runner: Runner, model: EvaluatedModel, least_seconds: float = 0.0) -> None:
    """Say how long a run will take, and how much memory, unless it takes less than `least_seconds`."""
    found = estimate(runner, model) if isinstance(model, DiffusionModel) else None
    if found is None or found.most_seconds < least_seconds:
        return
    least, most = _duration(found.least_seconds), _duration(found.most_seconds)
    time = most if least == most else f"{least} to {most}"
    memory = "" if found.bytes is None else f", and {gigabytes(found.bytes)} of memory above the weights"
    typer.echo(f"{model.name}: {counted(found.samples, 'answer')}, about {time} on this machine{memory}", err=True)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"
