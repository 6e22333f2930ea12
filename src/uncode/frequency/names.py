"""Tables by name: what a caller may pass where a table is wanted, and where named tables lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import UncodeError, require, suggest
from ..core.pieces.piece import Table
from ..fetch import cache
from .published import RELEASED
from .table import FrequencyTable

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class UnnamedTable:
    """Stands for the table a recipe is used with, where the recipe does not say which: the model's own, say."""

    name: str = "any"
    sha256: str = ""
    special_ids: tuple[int, ...] = ()
    fingerprint: str = ""

    def surprisal(self, size: int | None = None) -> Tensor:
        """There are no numbers here; the table must be given."""
        raise UncodeError("this sampler needs a frequency table: pass one, or use a model that carries its own.")


def as_table(frequency: Table | Tensor | str | Path) -> Table:
    """A table from what a caller may pass: a table, its path or name, or probabilities over the vocabulary."""
    if isinstance(frequency, str | Path):
        return FrequencyTable.load(find(frequency))
    if isinstance(frequency, Table):
        return frequency
    from torch import Tensor

    require(isinstance(frequency, Tensor), f"a frequency table was expected, not {type(frequency).__name__}.")
    return FrequencyTable(frequency.double(), "probabilities")


def folder() -> Path:
    """Where named tables lie."""
    return cache() / "tables"


def find(table: str | Path) -> Path:
    """The file of a table: a path, or the name of one that was fetched."""
    path, kept = Path(table), folder() / f"{table}.safetensors"
    if path.is_file() or not _is_name(str(table)):
        return path
    if kept.is_file():
        return kept
    known = known_names()
    if str(table) in known:
        raise UncodeError(f"the frequency table '{table}' is not on this machine yet: `uncode table get {table}`.")
    raise UncodeError(f"'{table}' is neither a file nor the name of a frequency table: {suggest(str(table), known)}")


def known_names() -> list[str]:
    """Tables that have a name: those of the paper, and those that were fetched."""
    return sorted({*RELEASED, *(file.stem for file in folder().glob("*.safetensors"))})


def _is_name(text: str) -> bool:
    return not {"/", "\\", "."} & set(text)
