"""Frequency tables by name: the folder of named tables, and the values that a `frequency` argument accepts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import UncodeError, require, suggest
from ..core.pieces.tables import Table
from ..util.fetch import cache_folder
from .published import RELEASED
from .table import FrequencyTable

if TYPE_CHECKING:
    from torch import Tensor


def as_table(frequency: Table | Tensor | str | Path) -> Table:
    """A table from the value of a `frequency` argument: a table, a path, a name, or probabilities `[V]`."""
    if isinstance(frequency, str | Path):
        return FrequencyTable.load(find(frequency))
    if isinstance(frequency, Table):
        return frequency
    from torch import Tensor

    require(
        isinstance(frequency, Tensor),
        f"a frequency table must be a table, a file, a name or a tensor, not {type(frequency).__name__}.",
    )
    return FrequencyTable(frequency.double(), "probabilities")


def folder() -> Path:
    """The folder of named tables."""
    return cache_folder() / "tables"


def find(table: str | Path) -> Path:
    """The file of a table, given its path or the name of a downloaded table."""
    path, cached = Path(table), folder() / f"{table}.safetensors"
    if path.is_file() or {"/", "\\", "."} & set(str(table)):
        return path
    if cached.is_file():
        return cached
    known = known_names()
    if str(table) in known:
        raise UncodeError(f"the frequency table '{table}' is not on this machine: run `uncode table get {table}`.")
    raise UncodeError(f"'{table}' is neither a file nor the name of a frequency table: {suggest(str(table), known)}")


def known_names() -> list[str]:
    """The names of tables: the paper's, and the downloaded ones."""
    return sorted({*RELEASED, *(file.stem for file in folder().glob("*.safetensors"))})
