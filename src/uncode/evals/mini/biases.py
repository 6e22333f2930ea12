"""The paper's two biases as numbers, from traces: boundaries first, and trivial tokens first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ...core.trace import Trace
from ...stats import Interval, mean_interval, paired_bootstrap
from .results import Part

PARTS = 10
"""Of the answer's span, for when each is written."""


def order_of(traces: Sequence[Trace], trivial: tuple[int, ...], ends: tuple[int, ...]) -> dict[str, Any]:
    """What each problem shows.

    `when`: when each part of the span was written, from 0 (first) to 1 (last). `early`: the share of
    trivial tokens in the first quarter of the text's tokens to be written; `overall`: in the whole text.
    """
    when, early, overall = list[list[float]](), list[float](), list[float]()
    for trace in traces:
        simple = torch.isin(trace.generated, torch.tensor(trivial)).numpy()
        text = ~torch.isin(trace.generated, torch.tensor(ends)).numpy()
        for row, steps in enumerate(trace.commit_step.numpy()):
            order = steps.argsort(kind="stable")
            rank = np.empty(len(order))
            rank[order] = np.linspace(0, 1, len(order))
            when.append([round(float(part.mean()), 4) for part in np.array_split(rank, PARTS)])
            written = [place for place in order if text[row, place]]
            first = written[: -(-len(written) // 4)]
            early.append(round(float(simple[row, first].mean()), 4) if first else 0.0)
            overall.append(round(float(simple[row, written].mean()), 4) if written else 0.0)
    return {"when": when, "early": early, "overall": overall}


def biases_of(parts: Mapping[str, Part]) -> dict[str, Any]:
    """Both biases of confidence, against left to right by the same model, on every family and on all together."""
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
    return {name: _told(**orders) for name, orders in (seen | {"all": together}).items()}


def _told(confidence: dict[str, Any], left_to_right: dict[str, Any]) -> dict[str, Any]:
    when, early = np.array(confidence["when"]), confidence["early"]
    middle = when[:, PARTS // 2 - 1 : PARTS // 2 + 1].mean(1)
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
