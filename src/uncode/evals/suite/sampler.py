"""Uncode as the mini-suite runs it."""

from __future__ import annotations

from ...core.pieces.piece import Table
from ...core.pieces.policy import Sampler
from ...samplers import presets


def at_rate(table: Table, rate: float) -> Sampler:
    """Uncode with a rate and `special="neutral"`, because no corpus contains EOS."""
    return presets.uncode(frequency=table, rate=rate, special="neutral")
