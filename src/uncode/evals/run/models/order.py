"""Measures of the decoding order, from a trace: when each part of the span was written, and trivial tokens first."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ....core.trace import Trace

SPAN_PARTS = 10
"""The answer's span is divided into this many equal parts."""


def order_of(trace: Trace, trivial: tuple[int, ...], eos_ids: tuple[int, ...]) -> dict[str, Any]:
    """The order of one row.

    `when`: the mean time at which each part of the span was written, from 0 (first) to 1 (last). `early`: the share of
    trivial tokens among the first quarter of the text tokens that were written. `overall`: their share in the text.
    """
    generated = trace.generated[0]
    is_trivial = torch.isin(generated, torch.tensor(trivial)).numpy()
    is_text = ~torch.isin(generated, torch.tensor(eos_ids)).numpy()
    order = trace.commit_step[0].numpy().argsort(kind="stable")
    time = np.empty(len(order))
    time[order] = np.linspace(0, 1, len(order))
    written = [offset for offset in order if is_text[offset]]
    first = written[: -(-len(written) // 4)]
    return {
        "when": [round(float(part.mean()), 4) for part in np.array_split(time, SPAN_PARTS)],
        "early": round(float(is_trivial[first].mean()), 4) if first else 0.0,
        "overall": round(float(is_trivial[written].mean()), 4) if written else 0.0,
    }
