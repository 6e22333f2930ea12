"""Models and samplers from the options of the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...backbones.guidance import Guided
from ...backbones.loading.load import check_exists, load
from ...core.denoiser import Denoiser
from ...core.pieces.piece import Table
from ...core.pieces.policy import Sampler
from ...frequency import as_table
from ...models import table_of
from ...samplers.catalog import is_file, takes_table
from ...samplers.resolve import for_model, require_table, resolve


@dataclass(frozen=True)
class SamplerChoice:
    """The sampler that a user chose: a preset or a file, its options, and the table of --frequency."""

    name: str
    """The name of a preset, or the path of a sampler file."""
    options: dict[str, Any]
    frequency: str | None

    @property
    def takes_table(self) -> bool:
        """Whether the sampler can use a frequency table. A sampler file names the table it needs."""
        return is_file(self.name) or takes_table(self.name, self.options)

    def table(self, own: Table | None) -> Table | None:
        """The table of --frequency, or else `own`, the model's."""
        return as_table(table_of(self.frequency) or self.frequency) if self.frequency else own

    def build(self, own: Table | None) -> Sampler:
        """Build the sampler. `own` is the model's table, used if the sampler needs one and --frequency is not given."""
        return resolve(self.name, None, self.table(None), self.options, own=own)


@dataclass(frozen=True)
class ModelChoice:
    """The model that a user chose."""

    name: str
    device: str | None
    dtype: str | None
    weights: str | None
    revision: str | None
    guidance: float

    def load(
        self, build: Callable[[Table | None], list[Sampler]], length: int | None = None
    ) -> tuple[Denoiser, list[Sampler]]:
        """Load the model, and build the samplers with the model's own table.

        A missing model is reported first, then a length that is too large, then a wrong sampler. Weights are read last.
        """
        own = check_exists(self.name, self.revision, length or 0)
        samplers = build(own.table)
        for sampler in samplers:
            require_table(sampler, own.released)
        denoiser = load(self.name, device=self.device, dtype=self.dtype, weights=self.weights, revision=self.revision)
        samplers = [for_model(sampler, denoiser) for sampler in samplers]
        return Guided(denoiser, self.guidance) if self.guidance else denoiser, samplers
