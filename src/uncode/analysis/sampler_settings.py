"""What the figures compare samplers by, read from the sampler of a trace: rate, clip, table, rejection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..core.errors import require
from ..core.pieces.piece import Piece
from ..core.pieces.tables import Table, UnnamedTable

K = TypeVar("K", bound=Piece)

REJECTING = "+reject_trivial"
"""The end of a sampler's name if it rejects trivial tokens."""


@dataclass(frozen=True)
class SamplerSettings:
    """A sampler as the sweeps see it."""

    name: str
    """The preset's."""
    rate: float = 0.0
    """Of the positional prior; 0 without one."""
    table: str = ""
    """The name of the frequency table; empty without the informativeness prior."""
    clip: float = 0.0
    """Of the informativeness prior."""
    special: str = ""
    rejection: float = 0.0
    """The probability with which a trivial token is rejected."""


def settings_of(definition: Mapping[str, Any]) -> SamplerSettings:
    """The settings of a sampler, from its data. Its pieces read them: a key that is missing or unknown is an error."""
    from ..core.pieces.score import ExponentialPosition, Informativeness
    from ..core.pieces.select import RejectTrivial

    position, rejecting = _find(definition, ExponentialPosition), _find(definition, RejectTrivial)
    semantic, name = _find(definition, Informativeness), definition.get("name")
    return SamplerSettings(
        name=name.removesuffix(REJECTING) if isinstance(name, str) and name else "unnamed sampler",
        rate=position.rate if position else 0.0,
        table=semantic.table.name if semantic else "",
        clip=semantic.clip or 0.0 if semantic else 0.0,
        special=semantic.special if semantic else "",
        rejection=rejecting.probability if rejecting else 0.0,
    )


def _find(data: Any, kind: type[K]) -> K | None:
    """The first piece of a kind in the data of a sampler, at any depth."""
    if isinstance(data, Mapping) and data.get("piece") == kind.__name__:
        found = kind.from_dict(dict(data), frequency=_by_name)
        missing = sorted(set(found.to_dict()) - set(data))
        require(not missing, f"its sampler's {kind.__name__} says nothing of {', '.join(missing)}.")
        return found
    inner = data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ()
    return next((piece for each in inner if (piece := _find(each, kind)) is not None), None)


def _by_name(name: str, sha256: str) -> Table:
    """A table that is named alone, without its numbers."""
    return UnnamedTable(name, sha256)
