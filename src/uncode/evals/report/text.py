"""Numbers as text, in the same way in every table of a report."""

from __future__ import annotations

from ...util.stats import Interval

NONE = "-"
"""Shown where there is no number."""


def percent(value: Interval) -> str:
    """A share as `42.1 [34.8, 49.8]`."""
    estimate, low, high = (f"{100 * part:z.1f}" for part in value)
    return f"{estimate} [{low}, {high}]"


def points(value: Interval, mark: str = "") -> str:
    """A difference of shares as `+14.6 [+8.2, +21.0]`, with a mark behind the estimate."""
    estimate, low, high = (f"{100 * part:+z.1f}" for part in value)
    return f"{estimate}{mark} [{low}, {high}]"


def p_value(value: float) -> str:
    return "<0.0001" if value < 0.0001 else f"{value:.4f}" if value < 0.01 else f"{value:.3f}"


def number(value: float | None) -> str:
    """A number with at least three significant digits, without an exponent."""
    if value is None:
        return NONE
    size = abs(value)
    return f"{value:z.0f}" if size >= 1000 else f"{value:z.1f}" if size >= 100 else f"{value:z.2f}"


def times(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}x"
