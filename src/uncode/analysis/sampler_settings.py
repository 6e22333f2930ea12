"""What the figures compare samplers by, read from the sampler of a trace: rate, clip, table, rejection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
    """The settings of a sampler, from its data."""
    pieces = {piece["piece"]: piece for piece in _pieces(definition)}
    position, rejecting = pieces.get("ExponentialPosition", {}), pieces.get("RejectTrivial", {})
    informativeness = pieces.get("Informativeness", {})
    table = informativeness.get("table", {})
    name = definition.get("name")
    return SamplerSettings(
        name=name.removesuffix(REJECTING) if isinstance(name, str) and name else "unnamed sampler",
        rate=_number(position.get("rate")),
        table=str(table.get("table", "")) if isinstance(table, Mapping) else "",
        clip=_number(informativeness.get("clip")),
        special=str(informativeness.get("special", "")),
        rejection=_number(rejecting.get("probability")),
    )


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _pieces(data: Any) -> Iterator[Mapping[str, Any]]:
    """Every piece of a sampler, at any depth."""
    if isinstance(data, Mapping):
        if isinstance(data.get("piece"), str):
            yield data
        for value in data.values():
            yield from _pieces(value)
    elif isinstance(data, list):
        for value in data:
            yield from _pieces(value)
