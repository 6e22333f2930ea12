"""Loads a model of an evaluation config. The config's samplers say of which kind it is."""

from __future__ import annotations

from ....backbones.loading.load import check_exists, load
from ....core.errors import require, suggest
from ....frequency import as_table
from ..config import AUTOREGRESSIVE, EvalConfig
from .causal_checkpoint import check_is_diffusion
from .diffusion import DiffusionModel, check_samplers
from .model import EvaluatedModel

BACKENDS = ("transformers", "vllm")
"""What runs an autoregressive model; transformers by default."""


def load_model(
    name: str,
    config: EvalConfig,
    *,
    device: str | None = None,
    dtype: str | None = None,
    weights: str | None = None,
    revision: str | None = None,
    frequency: str | None = None,
    backend: str | None = None,
    may_refuse: bool = False,
) -> EvaluatedModel:
    """The model of that name: autoregressive if the config's samplers are, else a denoiser by `uncode.load`.

    `frequency` is a table's file or name, for diffusion models; `backend` is for autoregressive ones. A wrong sampler
    is an error before weights are read, unless the model `may_refuse` samplers later.
    """
    kinds = {entry.preset == AUTOREGRESSIVE for entry in config.samplers}
    require(
        len(kinds) < 2,
        f"the config '{config.name}' has samplers for autoregressive and for masked diffusion models, and no model is "
        "both: choose samplers of one kind, or write two configs.",
    )
    if kinds == {True}:
        require(frequency is None, "an autoregressive model takes no frequency table: leave it out.")
        require(weights is None, "`weights=` is for diffusion models, not for an autoregressive one: leave it out.")
        return _load_autoregressive(name, config, device, dtype, revision, backend or "transformers")
    require(backend is None, f"a backend is for autoregressive models, and the config '{config.name}' has none.")
    check_is_diffusion(name, revision, config.name)
    table = None if frequency is None else as_table(frequency)
    if not may_refuse:
        check_samplers(config, table, check_exists(name, revision))
    return DiffusionModel(name, load(name, device=device, dtype=dtype, weights=weights, revision=revision), table)


def _load_autoregressive(
    name: str, config: EvalConfig, device: str | None, dtype: str | None, revision: str | None, backend: str
) -> EvaluatedModel:
    """An autoregressive model. Importing what generates its text takes seconds, so only this function does."""
    from .autoregressive import AutoregressiveModel
    from .causal import LeftToRight
    from .vllm_model import VllmModel

    require(backend in BACKENDS, f"there is no backend '{backend}': {suggest(backend, BACKENDS)}")
    for entry in config.samplers:
        LeftToRight.of(entry, entry.options)  # a wrong option is found before the weights are read
    kind = AutoregressiveModel if backend == "transformers" else VllmModel
    return kind.load(name, device=device, dtype=dtype, revision=revision)
