"""Measures of the decoding order of one row: when each part of the span was written, and trivial tokens first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.trace.row_record import FILLED, GIVEN
from ...util.stats import Interval, mean_intervals

SPAN_PARTS = 10
"""The answer's span is divided into this many equal parts."""


def order_of(
    generated: NDArray[np.int64], commit_step: NDArray[np.int64], trivial: Collection[int], eos_ids: Collection[int]
) -> dict[str, Any]:
    """The order of one row, `generated` and `commit_step` `[S]`.

    `when`: the mean time at which each part of the span was written, from 0 (first) to 1 (last). `early`: the share of
    trivial tokens among the first quarter of the text tokens that were written. `overall`: their share in the text.
    """
    is_trivial, is_text = np.isin(generated, list(trivial)), ~np.isin(generated, list(eos_ids))
    order = commit_step.argsort(kind="stable")
    time = np.empty(len(order))
    time[order] = np.linspace(0, 1, len(order))
    written = [offset for offset in order if is_text[offset]]
    first = written[: -(-len(written) // 4)]
    return {
        "when": [round(float(part.mean()), 4) for part in np.array_split(time, SPAN_PARTS)],
        "early": round(float(is_trivial[first].mean()), 4) if first else 0.0,
        "overall": round(float(is_trivial[written].mean()), 4) if written else 0.0,
    }


def bias_intervals(
    confidence: Mapping[str, Sequence[Any]], left_to_right: Mapping[str, Sequence[Any]]
) -> tuple[list[Interval], dict[str, Interval]]:
    """Both biases of a sampler, compared with left to right on the same problems, from the values of :func:`order_of`
    in lists over the problems: the mean time at which each part of the span was written, and other measures by name."""
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
    found = mean_intervals([*when.T, *rows.values()])
    return found[:SPAN_PARTS], dict(zip(rows, found[SPAN_PARTS:], strict=True))


def commit_ranks(commit_step: NDArray[np.int64]) -> NDArray[np.float64]:
    """When each offset was written, from 0 (first) to 1 (last), `[S]`; NaN for given ones.

    Offsets of one step share their mean rank. Offsets that the stop rule filled come last, from left to right.
    """
    written = commit_step != GIVEN
    after_the_last = int(commit_step.max(initial=0)) + 1 + np.arange(len(commit_step))
    steps = np.where(commit_step == FILLED, after_the_last, commit_step)[written]
    _, which, counts = np.unique(steps, return_inverse=True, return_counts=True)
    means = np.cumsum(counts) - (counts + 1) / 2
    ranks = np.full(len(commit_step), np.nan)
    ranks[written] = means[which] / max(1, len(steps) - 1)
    return ranks
