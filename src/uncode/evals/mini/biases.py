"""The paper's two biases as numbers, from traces: boundaries first, and trivial tokens first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...core.trace import Trace
from ...samplers.interventions import trivial_ids
from ...samplers.presets import confidence, left_to_right
from ...stats import Interval, mean_interval, paired_bootstrap
from ..families import FAMILIES
from .run import Suite, Watch

PARTS = 10
"""Of the answer's span, for when each is written."""


@dataclass(frozen=True)
class Measured:
    """What was seen of each problem."""

    when: np.ndarray
    """[N, PARTS]: when each part of the span was written, from 0 (first) to 1 (last)."""
    trivial: np.ndarray
    """[N]: the share of trivial tokens in the first quarter of the text's tokens to be written."""
    overall: np.ndarray
    """[N]: their share in the whole text."""


def measure(suite: Suite, watch: Watch) -> dict[str, Any]:
    """Both biases of confidence, against left to right by the same model, on every family and on all together."""
    found = dict[str, Any]()
    seen: dict[str, list[Measured]] = {"confidence": [], "left_to_right": []}
    for family in FAMILIES.values():
        examples = family.examples()[: suite.problems]
        for sampler in (confidence(), left_to_right()):
            watch(family.name, f"{sampler.name}, traced")
            traces = [trace for trace, _ in suite.decoded(family, examples, sampler)]
            seen[sampler.name].append(_measured(traces, trivial_ids(suite.denoiser.tokenizer), suite.denoiser.eos_ids))
        found[family.name] = _told(*(of[-1] for of in seen.values()))
    found["all"] = _told(*(_joined(of) for of in seen.values()))
    return found


def _told(ours: Measured, ordered: Measured) -> dict[str, Any]:
    middle = ours.when[:, PARTS // 2 - 1 : PARTS // 2 + 1].mean(1)
    return {
        "when": [_rounded(mean_interval(part)) for part in ours.when.T],
        "first_before_middle": _rounded(paired_bootstrap(middle, ours.when[:, 0])),
        "last_before_middle": _rounded(paired_bootstrap(middle, ours.when[:, -1])),
        "trivial_early": _rounded(mean_interval(ours.trivial)),
        "trivial_early_left_to_right": _rounded(mean_interval(ordered.trivial)),
        "trivial_excess": _rounded(paired_bootstrap(ours.trivial, ordered.trivial)),
        "trivial_overall": _rounded(mean_interval(ours.overall)),
    }


def _rounded(interval: Interval) -> list[float]:
    return [round(value, 4) for value in interval]


def _joined(parts: list[Measured]) -> Measured:
    return Measured(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("when", "trivial", "overall")))


def _measured(traces: Sequence[Trace], trivial: tuple[int, ...], ends: tuple[int, ...]) -> Measured:
    when, early, overall = list[np.ndarray](), list[float](), list[float]()
    for trace in traces:
        simple = torch.isin(trace.generated, torch.tensor(trivial)).numpy()
        text = ~torch.isin(trace.generated, torch.tensor(ends)).numpy()
        steps = trace.commit_step.numpy()
        for row in range(len(steps)):
            order = steps[row].argsort(kind="stable")
            rank = np.empty(len(order))
            rank[order] = np.linspace(0, 1, len(order))
            when.append(np.array([part.mean() for part in np.array_split(rank, PARTS)]))
            written = [place for place in order if text[row, place]]
            first = written[: -(-len(written) // 4)]
            early.append(float(simple[row, first].mean()) if first else 0.0)
            overall.append(float(simple[row, written].mean()) if written else 0.0)
    return Measured(np.stack(when), np.array(early), np.array(overall))
