"""Models of a config, by name."""

from __future__ import annotations

from ...backbones.loading.load import load
from ...frequency import as_table
from .config import EvalConfig
from .diffusion import DiffusionModel
from .model import EvaluatedModel


def load_model(
    name: str,
    config: EvalConfig,
    *,
    device: str | None = None,
    dtype: str | None = None,
    revision: str | None = None,
    frequency: str | None = None,
    backend: str | None = None,
) -> EvaluatedModel:
    """Load a model of the config."""
    table = None if frequency is None else as_table(frequency)
    return DiffusionModel(name, load(name, device=device, dtype=dtype, revision=revision), table)
