"""The paper's two biases, measured on traces: boundary tokens first, and trivial tokens first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...stats import Interval, mean_intervals
from ..run.models.order import SPAN_PARTS
from .results import FamilyResults


def biases_of(parts: Mapping[str, FamilyResults]) -> dict[str, Any]:
    """Both biases of the confidence sampler, compared with left to right, for each family and for all together."""
    seen = {name: part.orders for name, part in parts.items() if part.orders}
    if not seen:
        return {}
    names = list(next(iter(seen.values())))
    together = {
        sampler: {
            key: [v for orders in seen.values() for v in orders[sampler][key]] for key in ("when", "early", "overall")
        }
        for sampler in names
    }
    return {name: _measures(**orders) for name, orders in (seen | {"all": together}).items()}


def _measures(confidence: dict[str, Any], left_to_right: dict[str, Any]) -> dict[str, Any]:
    when, early = np.array(confidence["when"]), np.array(confidence["early"])
    ordered = np.array(left_to_right["early"])
    middle = when[:, SPAN_PARTS // 2 - 1 : SPAN_PARTS // 2 + 1].mean(1)
    first, last = when[:, 0], when[:, -1]
    rows = {
        "first_before_middle": middle - first,
        "last_before_middle": middle - last,
        "ends_before_middle": middle - (first + last) / 2,
        "trivial_early": early,
        "trivial_early_left_to_right": ordered,
        "trivial_excess": early - ordered,
        "trivial_overall": np.array(confidence["overall"]),
    }
    found = [_rounded(interval) for interval in mean_intervals([*when.T, *rows.values()])]
    return {"when": found[:SPAN_PARTS], **dict(zip(rows, found[SPAN_PARTS:], strict=True))}


def _rounded(interval: Interval) -> list[float]:
    return [round(value, 4) for value in interval]
