"""Frequency tables as the core sees them: what a piece asks of one, and how data that names one finds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..errors import UncodeError, require, shown

if TYPE_CHECKING:
    from torch import Tensor


@runtime_checkable
class Table(Protocol):
    """Corpus statistics over a vocabulary. In data it appears as name and checksum, never as numbers."""

    @property
    def name(self) -> str: ...
    @property
    def sha256(self) -> str: ...
    @property
    def special_ids(self) -> tuple[int, ...]: ...
    @property
    def fingerprint(self) -> str:
        """Of the tokenizer it was counted with; empty where that is not known."""
        ...

    def surprisal(self, size: int | None = None) -> Tensor:
        """-log p of every token, unseen tokens counted as seen once: [V], or [size] with more that were not seen."""
        ...


OWN, OWN_OR_NONE = "any", "any or none"
"""The names of a placeholder: of a sampler that needs a table, and of one that can do without."""


@dataclass(frozen=True)
class UnnamedTable:
    """A placeholder in a sampler that names no table: the model's own replaces it when the sampler meets a model."""

    name: str = OWN
    sha256: str = ""
    special_ids: tuple[int, ...] = ()
    fingerprint: str = ""

    def surprisal(self, size: int | None = None) -> Tensor:
        """Raise: a placeholder has no counts."""
        raise UncodeError("this sampler needs a frequency table: pass one, or use a model that carries its own.")


Resolver = Callable[[str, str], Table | None]
"""Finds the table of a name and a sha256; None where there is none."""
FrequencySource = Table | Resolver
"""The one table that data may name, or a function that finds it."""


def resolver_of(frequency: FrequencySource | None) -> Resolver | None:
    """The function that finds tables, from what a caller passed. A table is the only one that a sampler may name."""
    if not isinstance(frequency, Table):
        fits = frequency is None or callable(frequency)
        require(fits, f"frequency must be a frequency table, not {shown(frequency)}.")
        return frequency

    def resolve(name: str, sha256: str) -> Table:
        if sha256 not in ("", frequency.sha256):
            named, given = f"'{name}' ({sha256[:12]})", f"'{frequency.name}' ({frequency.sha256[:12]})"
            raise UncodeError(
                f"the sampler names the table {named}, not {given}: give it that one, or take the preset itself, which "
                "takes any."
            )
        return frequency

    return resolve
