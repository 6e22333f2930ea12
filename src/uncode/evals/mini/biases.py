"""The paper's two biases, measured on traces: boundary tokens first, and trivial tokens first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ...core.trace import Trace
from ...stats import Interval, mean_interval, paired_bootstrap
from .results import Part

SPAN_PARTS = 10
"""The answer's span is divided into this many equal parts."""


def order_of(traces: Sequence[Trace], trivial: tuple[int, ...], ends: tuple[int, ...]) -> dict[str, Any]:
    """Measures of the decoding order, for each problem.

    `when`: the mean time at which each part of the span was written, from 0 (first) to 1 (last). `early`: the share of
    trivial tokens among the first quarter of the text tokens that were written. `overall`: their share in the text.
    """
    when, early, overall = list[list[float]](), list[float](), list[float]()
    for trace in traces:
        is_trivial = torch.isin(trace.generated, torch.tensor(trivial)).numpy()
        text = ~torch.isin(trace.generated, torch.tensor(ends)).numpy()
        for row, steps in enumerate(trace.commit_step.numpy()):
            order = steps.argsort(kind="stable")
            rank = np.empty(len(order))
            rank[order] = np.linspace(0, 1, len(order))
            when.append([round(float(part.mean()), 4) for part in np.array_split(rank, SPAN_PARTS)])
            written = [place for place in order if text[row, place]]
            first = written[: -(-len(written) // 4)]
            early.append(round(float(is_trivial[row, first].mean()), 4) if first else 0.0)
            overall.append(round(float(is_trivial[row, written].mean()), 4) if written else 0.0)
    return {"when": when, "early": early, "overall": overall}


def biases_of(parts: Mapping[str, Part]) -> dict[str, Any]:
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
    when, early = np.array(confidence["when"]), confidence["early"]
    middle = when[:, SPAN_PARTS // 2 - 1 : SPAN_PARTS // 2 + 1].mean(1)
    return {
        "when": [_rounded(mean_interval(part)) for part in when.T],
        "first_before_middle": _rounded(paired_bootstrap(middle, when[:, 0])),
        "last_before_middle": _rounded(paired_bootstrap(middle, when[:, -1])),
        "ends_before_middle": _rounded(paired_bootstrap(middle, (when[:, 0] + when[:, -1]) / 2)),
        "trivial_early": _rounded(mean_interval(early)),
        "trivial_early_left_to_right": _rounded(mean_interval(left_to_right["early"])),
        "trivial_excess": _rounded(paired_bootstrap(early, left_to_right["early"])),
        "trivial_overall": _rounded(mean_interval(confidence["overall"])),
    }


def _rounded(interval: Interval) -> list[float]:
    return [round(value, 4) for value in interval]
