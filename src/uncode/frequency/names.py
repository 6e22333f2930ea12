"""Frequency tables by name: those released with the paper, the folder of named ones, and `frequency` arguments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import UncodeError, require, suggest
from ..core.pieces.tables import Table
from ..util.fetch import RELEASE, cache_folder
from .table import FrequencyTable

if TYPE_CHECKING:
    from torch import Tensor


_URL = f"{RELEASE}baseline/"


@dataclass(frozen=True)
class Released:
    """A table file of the paper's repository (NEUIR/Uncode, MIT licence), with the model's token ids."""

    url: str
    sha256: str
    vocab_size: int
    corpus: str


RELEASED = {
    "llada": Released(
        f"{_URL}reference_corpus_llada.json",
        "d3added6fe3b1e470a5558d612cc1f52b521415260b76a582b4a367241984749",
        126464,
        "general text (as released; the paper says 16 GB of C4)",
    ),
    "dream": Released(
        f"{_URL}reference_corpus_dream.json",
        "910863033246e63dff61a6969909e65dbee877de195e45115494847522e13201",
        152064,
        "mathematics in LaTeX, by its most frequent tokens (as released; the paper says 16 GB of C4)",
    ),
}
"""By the name that `uncode table get` takes. docs/frequency.md describes what the files really hold."""


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
