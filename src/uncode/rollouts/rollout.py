"""A rollout: samples of prompts, their files, and their log-probabilities under new weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from torch import Tensor

from ..core.denoiser import Denoiser
from .files import load, save
from .log_probabilities import log_probabilities
from .samples import Samples


@dataclass(frozen=True, eq=False, repr=False)
class Rollout(Samples):
    """N samples. `L` columns are on the canvas, `S` of them in the generated span; all tensors are on the CPU.

    Index it for some of the samples: `rollout[:8]`, or a tensor of their numbers.
    """

    def log_probabilities(self, denoiser: Denoiser, *, batch_size: int = 64) -> Tensor:
        """The log-probability of each drawn token under the weights that the model has now, along the same step map:
        `[N, S]` on its device, 0 where none was drawn. It has gradients where the weights have.

        `batch_size` canvases go through the model at a time. Each is a sample as one of its forwards saw it.
        """
        return log_probabilities(denoiser, self, batch_size)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a file, whole or not at all: `.safetensors`, or `.parquet` with one line per sample (needs pyarrow)."""
        save(self, path, force)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The rollout in a file that :meth:`save` wrote."""
        return load(path, cls)
