"""Parts of a batch: on a CPU, rows of similar width are computed together.

In one rectangle every row would be computed as widely as the widest. A CPU has no use for a large rectangle either:
from a few hundred tokens on, more tokens make a product no faster, and what a layer writes leaves the core's cache. So
the rows are sorted by width, and each part is as wide as its widest row. Parts of a small model run side by side, one
on each thread (see :mod:`uncode.core.support.threads`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from ....core.pieces.cache import Plan, Span
from ....core.support.arrays import Ints
from ....core.support.transfer import upload
from ...columns import columns
from .prepared_pass import PreparedPass, RowPositions

MAX_PART_TOKENS = 512
MIN_PART_TOKENS = 128
"""Rows are not spread over more threads if a part would have fewer tokens."""
MIN_SHARE_OF_WIDEST = 0.75
"""Rows share a part with a wider one if they have at least this share of its columns."""


@dataclass
class RowPart:
    """Rows that are computed together."""

    rows: Tensor | None
    """Their indices; None where they are the whole batch, in its order."""
    columns: Tensor | None
    """Which of the wanted columns are computed, `[rows, W]`; None where all are."""
    prepared: PreparedPass


class RowParts:
    """A plan as parts of the batch, the largest first."""

    def __init__(self, rows: RowPositions, plan: Plan, shift: int, threads: int) -> None:
        self.plan = plan
        clipped = Plan(rows.clip(plan.window), plan.wanted, plan.store, plan.reuse)
        window, count = clipped.window, len(rows.first)
        stores, reuses = plan.store.stop > plan.store.start, plan.reuse.stop > plan.reuse.start
        cached = stores | reuses | (window.mask(rows.length) != rows.valid_host).any(1)
        self.is_cached = bool(cached.any())
        self.parts = list[RowPart]()
        for here in split_rows(window.stop - window.start, cached, threads):
            whole = len(here) == count and bool((here == np.arange(count)).all())
            of, asked = (rows, clipped) if whole else (rows.take(here), clipped.take(here))
            own = replace(asked, wanted=_computed(asked))
            prepared = PreparedPass(of, own, shift, bool(cached[here[0]]))
            index, found = None if whole else upload(here, rows.valid.device), None
            if own.wanted.width < plan.wanted.width:
                found = upload(columns(own.wanted) - asked.wanted.start[:, None], rows.valid.device)
            self.parts.append(RowPart(index, found, prepared))


def _computed(plan: Plan) -> Span:
    """The wanted columns as far as the window has them, as many for every row: the others may hold anything."""
    wanted, window = plan.wanted, plan.window
    first, last = np.maximum(wanted.start, window.start), np.minimum(wanted.stop, window.stop)
    width = max(int((last - first).max()), 1)
    start = np.minimum(first, wanted.stop - width)
    return Span(start, start + width)


def split_rows(widths: Ints, cached: Ints, threads: int) -> list[Ints]:
    """Parts of similar width and of at most about MAX_PART_TOKENS, so many that every thread has one. Rows with a KV
    cache and rows without are never in one part: the latter need not write their keys and values."""
    order = np.lexsort((-widths, cached))
    total = int(widths.sum())
    rounds = -(-total // (threads * MAX_PART_TOKENS))
    tokens = max(total / (threads * rounds), MIN_PART_TOKENS)
    number = (np.cumsum(widths[order]) - widths[order] / 2) // tokens
    parts: list[list[int]] = []
    for at, row in enumerate(order.tolist()):
        widest = parts[-1][0] if parts else row
        same = bool(parts) and number[at] == number[at - 1] and cached[row] == cached[widest]
        if not same or widths[row] < MIN_SHARE_OF_WIDEST * widths[widest]:
            parts.append([])
        parts[-1].append(row)
    parts.sort(key=lambda part: -len(part) * int(widths[part[0]]))
    return [np.sort(np.array(part)) for part in parts]
