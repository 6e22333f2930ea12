"""Rows of traces as the page's script reads them: only the fields that it shows, with rounded numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .row_summary import Row

_AS_THEY_ARE = (
    "generated_ids", "generated_texts", "commit_step", "forwards", "probes", "special_ids", "mask_id", "events",
    "event_texts", "draft_texts", "answer_span",
)  # fmt: skip
_NUMBERS = ("logp", "entropy", "margin", "score", "mean_entropy", "runner_up")
_DIGITS = 4
"""Significant digits; the page shows three."""


def compact(row: Row) -> Row:
    """The row for the page. A draft repeats most of the draft before it, so only the differences are kept."""
    found = {name: row[name] for name in _AS_THEY_ARE if row.get(name) is not None}
    found |= {name: _rounded(row[name]) for name in _NUMBERS if name in row}
    found["terms"] = {name: _rounded(values) for name, values in row.get("terms", {}).items()}
    if row.get("drafts"):
        found["draft_changes"] = _changes(row["drafts"])
    return found


def _rounded(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else _short(value) for value in values]


def _short(value: float) -> float:
    """Rounded, and a whole number where it is one: JSON then has no `.0`."""
    rounded = float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e6 else rounded


def _changes(drafts: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each step: offset, token, offset, token, ..., where its draft differs from the one before."""
    former: Sequence[int] = [-1] * len(drafts[0])
    changes = []
    for draft in drafts:
        pairs: list[Any] = [(at, token) for at, token in enumerate(draft) if token != former[at]]
        changes.append([number for pair in pairs for number in pair])
        former = draft
    return changes
