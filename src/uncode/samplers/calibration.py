"""What the Uncode presets share: their options, and the calibrated score."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, Unpack

from ..core.errors import UncodeError
from ..core.pieces.tables import OWN, OWN_OR_NONE, UnnamedTable
from . import pieces as p
from .options import Proxy, Special
from .preset import Shared

if TYPE_CHECKING:
    from torch import Tensor

    from ..core.pieces.tables import Table

Frequency: TypeAlias = "Table | Tensor | str | Path | None"
"""What a `frequency` option takes; None is the model's own table."""


class Calibration(Shared, total=False):
    """The options of every Uncode preset; their defaults are those of :func:`calibrated`."""

    frequency: Frequency
    rate: float
    clip: float | None
    proxy: Proxy
    informativeness: bool
    special: Special


def calibrated(
    frequency: Frequency = None,
    rate: float = 0.25,
    clip: float | None = 10.0,
    proxy: Proxy = "confidence",
    informativeness: bool = True,
    special: Special = "unseen",
    *,
    origin: Literal["span", "block"] = "span",
    needs_table: bool = True,
    **_: Unpack[Shared],
) -> p.Score:
    """The calibrated score: proxy, informativeness and position, added up. Without a `frequency`, the model's own table
    is used. Unless `needs_table`, informativeness is off for a model that has none."""
    score: p.Score = {"confidence": p.Confidence, "entropy": p.NegEntropy, "margin": p.Margin}[proxy]()
    if informativeness:
        score = score + p.Informativeness(table_or_own(frequency, needs_table), clip, special)
    elif frequency is not None:
        raise UncodeError("a frequency table was given but informativeness is off: leave one of the two out.")
    return score + p.ExponentialPosition(rate, origin)


def table_or_own(frequency: Frequency, needs_table: bool = True) -> Table:
    """The table of a `frequency` option; a placeholder for the model's own where there is none."""
    from ..frequency import as_table

    return UnnamedTable(OWN if needs_table else OWN_OR_NONE) if frequency is None else as_table(frequency)
