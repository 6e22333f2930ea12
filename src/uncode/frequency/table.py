"""Frequency tables: how often each token occurs in a corpus, and the surprisal that follows."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ..core.errors import UncodeError, require
from ..core.piece import Table


@dataclass(frozen=True, eq=False)
class FrequencyTable:
    """Token counts `[V]` with a name. Two tables are equal if their checksums are."""

    counts: Tensor
    """int64; or float64 probabilities, for a table that was given as such."""
    name: str = "table"
    special_ids: tuple[int, ...] = ()
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        require(self.counts.dim() == 1 and len(self.counts) > 0, "a frequency table is one number per token.")
        fits = bool((self.counts >= 0).all()) and bool(torch.isfinite(self.counts).all())
        require(fits, "a frequency table cannot hold negative or infinite numbers.")
        strange = [i for i in self.special_ids if not 0 <= i < len(self.counts)]
        require(not strange, f"the special ids {strange} are outside the table of {len(self.counts)} tokens.")
        require(bool((self.counts > 0).any()), "a frequency table needs at least one token that occurs.")
        kind = torch.float64 if self.counts.is_floating_point() else torch.int64
        object.__setattr__(self, "counts", self.counts.detach().cpu().to(kind).contiguous())
        digest = hashlib.sha256(self.counts.numpy().tobytes() + json.dumps(self.special_ids).encode())
        object.__setattr__(self, "sha256", digest.hexdigest())

    @property
    def total(self) -> float:
        return float(self.counts.sum())

    def surprisal(self) -> Tensor:
        """-log p of every token `[V]`, float64. Unseen tokens count as seen once; a probability of zero takes the
        smallest positive one."""
        least = 1 if self.counts.dtype == torch.int64 else float(self.counts[self.counts > 0].min())
        return -(self.counts.double().clamp(min=least) / self.total).log()

    def save(self, path: str | Path) -> None:
        """Write one safetensors file, whole or not at all."""
        target = Path(path)
        partial = target.with_name(target.name + ".partial")
        notes = {"name": self.name, "special_ids": json.dumps(self.special_ids), "sha256": self.sha256}
        save_file({"counts": self.counts}, partial, metadata=notes)
        partial.replace(target)

    @classmethod
    def load(cls, path: str | Path) -> FrequencyTable:
        """Read a file that :meth:`save` wrote, and check its checksum."""
        require(Path(path).is_file(), f"there is no frequency table at '{path}'.")
        try:
            with safe_open(path, framework="pt") as file:
                notes, counts = file.metadata() or {}, file.get_tensor("counts")
        except SafetensorError:
            raise UncodeError(f"'{path}' is not a frequency table (a safetensors file with 'counts').") from None
        ids = tuple(json.loads(notes.get("special_ids", "[]")))
        table = cls(counts, notes.get("name", Path(path).stem), ids)
        require(table.sha256 == notes.get("sha256", table.sha256), f"the frequency table '{path}' is damaged.")
        return table

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrequencyTable) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __len__(self) -> int:
        return len(self.counts)


@dataclass(frozen=True)
class UnnamedTable:
    """Stands for the table a recipe is used with, where the recipe does not say which: the model's own, say."""

    name: str = "any"
    sha256: str = ""
    special_ids: tuple[int, ...] = ()

    def surprisal(self) -> Tensor:
        """There are no numbers here; the table must be given."""
        raise UncodeError("this sampler needs a frequency table: pass one, or use a model that carries its own.")


def as_table(frequency: Table | Tensor | str | Path) -> Table:
    """A table from what a caller may pass: a table, the path of one, or probabilities over the vocabulary."""
    if isinstance(frequency, Tensor):
        return FrequencyTable(frequency.double(), "probabilities")
    if isinstance(frequency, str | Path):
        return FrequencyTable.load(frequency)
    require(isinstance(frequency, Table), f"a frequency table was expected, not {type(frequency).__name__}.")
    return frequency
