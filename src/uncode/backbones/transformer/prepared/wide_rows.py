"""Wide rows: on a GPU, rows that refresh their KV cache have their own forwards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from ....core.pieces.cache import Plan, Span
from ....core.support.arrays import Ints
from ....core.support.transfer import upload
from .prepared_pass import PreparedPass, RowPositions


@dataclass
class WideRows:
    """Rows that are computed in their own forward."""

    rows: Tensor
    prepared: PreparedPass
    reuses: bool
    """Whether they attend to stored keys and values."""


class PreparedPlan:
    """The forwards of a plan. Rows that refresh their KV cache have their own forwards: in a common one every row
    would be computed as widely as the widest.

    The common forward keeps its shape, so that its CUDA graph is replayed; in it the wide rows are idle.
    """

    def __init__(self, rows: RowPositions, plan: Plan, shift: int, may_split: bool) -> None:
        self.plan, self.wide = plan, list[WideRows]()
        self.common: PreparedPass | None = None
        is_cached = plan.store.width > 0 or plan.reuse.width > 0 or not plan.window.mask(rows.length).all()
        clipped = Plan(rows.clip(plan.window), plan.wanted, plan.store, plan.reuse) if is_cached else plan
        widths = clipped.window.stop - clipped.window.start
        groups = _wide_groups(widths) if is_cached and may_split else []
        if not groups:
            self.common = PreparedPass(rows, clipped, shift, is_cached)
            return
        idle = np.concatenate(groups)
        if len(idle) < len(widths):
            self.common = PreparedPass(rows, _without(clipped, idle, rows.length), shift, is_cached, idle)
        for group in groups:
            of, own = rows.take(group), clipped.take(group)
            prepared = PreparedPass(of, own, shift, is_cached, multiple=WIDE_MULTIPLE)
            self.wide.append(WideRows(upload(group, rows.valid.device), prepared, own.reuse.width > 0))


WIDE_MULTIPLE = 64
"""Wide forwards are rounded up to multiples of so many columns."""
MIN_WIDE_COLUMNS = 64
"""Rows with fewer columns stay in the common forward: beside the weights that it reads, they cost hardly anything."""
MAX_SPLIT_SHARE = 0.8
"""A plan is split where its forwards have at most this share of the tokens of a common one."""
MIN_SHARE_OF_WIDEST = 0.75
"""Wide rows share a forward with a wider one if they have at least this share of its columns."""


def _wide_groups(widths: Ints) -> list[Ints]:
    """Rows that have their own forwards, in groups of similar width; none where a common forward is no slower."""
    order = np.argsort(-widths, kind="stable")
    wide = [row for row in order if widths[row] > max(2 * widths.min(), MIN_WIDE_COLUMNS)]
    if not wide and widths.max() > MIN_WIDE_COLUMNS and widths.min() < MIN_SHARE_OF_WIDEST * widths.max():
        wide = list(order)
    groups: list[list[int]] = []
    for row in wide:
        if not groups or widths[row] < MIN_SHARE_OF_WIDEST * widths[groups[-1][0]]:
            groups.append([])
        groups[-1].append(int(row))
    narrow = [int(widths[row]) for row in order if row not in wide]
    split = sum(len(group) * int(widths[group[0]]) for group in groups) + len(widths) * max(narrow, default=0)
    return [np.array(group) for group in groups] if split <= MAX_SPLIT_SHARE * len(widths) * int(widths.max()) else []


def _without(plan: Plan, idle: Ints, length: int) -> Plan:
    """The plan in which some rows compute as few columns as the others."""
    width = int(np.delete(plan.window.stop - plan.window.start, idle).max())
    start, stop = plan.window.start.copy(), plan.window.stop.copy()
    start[idle] = np.minimum(plan.wanted.start[idle], length - width)
    stop[idle] = start[idle] + width
    return Plan(Span(start, stop), plan.wanted, plan.store, plan.reuse)
