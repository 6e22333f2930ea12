"""The paper's two biases, measured on traces: boundary tokens first, and trivial tokens first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...analysis.measures.order import bias_intervals
from ...util.stats import Interval
from .results import FamilyResults

COMPARED = ("confidence", "left_to_right")
"""The samplers whose orders are compared. A run of other samplers alone shows no biases."""


def biases_of(parts: Mapping[str, FamilyResults]) -> dict[str, Any]:
    """Both biases of the confidence sampler, compared with left to right, for each family and for all together."""
    seen = {name: part.orders for name, part in parts.items() if len(part.orders) == len(COMPARED)}
    if not seen:
        return {}
    together = {
        sampler: {
            key: [v for orders in seen.values() for v in orders[sampler][key]] for key in ("when", "early", "overall")
        }
        for sampler in COMPARED
    }
    return {name: _measures(**orders) for name, orders in (seen | {"all": together}).items()}


def _measures(confidence: dict[str, Any], left_to_right: dict[str, Any]) -> dict[str, Any]:
    found = bias_intervals(confidence, left_to_right)
    when = [_rounded(one) for one in found.when]
    return {"when": when} | {name: _rounded(one) for name, one in found.measures.items()}


def _rounded(interval: Interval) -> list[float | None]:
    return [None if value is None else round(value, 4) for value in interval.data()]
