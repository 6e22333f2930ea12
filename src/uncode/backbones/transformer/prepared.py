"""A plan as forwards of the network, ready for any tokens: columns, RoPE, attention mask, where to write.

All of it depends on the plan and the rows, not on the tokens. So it is computed once, when the plan or the rows change,
and used for all steps of that plan. In one rectangle every row would be computed as widely as the widest, so a plan may
become several forwards: on a CPU parts of similar width, on a GPU a forward of their own for rows that refresh their
KV cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...core.denoiser import Layout
from ...core.pieces.cache import Plan, Span
from ...core.support.arrays import Ints
from ...core.support.transfer import upload
from ..columns import Pick, columns
from .cuda_graph import ForwardInputs
from .network import Transformer
from .pointwise import at_least_float32, rope_of

MIN_SHARE_OF_WIDEST = 0.75
"""Rows share a forward with a wider one if they have at least this share of its columns."""
MAX_PART_TOKENS = 512
"""Tokens of a part, at most: from a few hundred on, more tokens make a product no faster on a CPU, and what a layer
writes leaves the core's cache."""
MIN_PART_TOKENS = 128
"""Rows are not spread over more threads if a part would have fewer tokens."""
WIDE_MULTIPLE = 64
"""Wide forwards are rounded up to multiples of so many columns."""
MIN_WIDE_COLUMNS = 64
"""Rows with fewer columns stay in the common forward: beside the weights that it reads, they cost hardly anything."""
MAX_SPLIT_SHARE = 0.8
"""A plan is split where its forwards have at most this share of the tokens of a common one."""


SLIDING_MULTIPLE = 32
"""Forwards of windows that slide are rounded up to multiples of so many columns, and so are their captured graphs."""


class RowPositions:
    """Each row's first valid column, and RoPE at all columns."""

    def __init__(self, network: Transformer, layout: Layout, dtype: torch.dtype) -> None:
        valid = layout.valid
        self.valid, self.valid_host = valid, valid.cpu().numpy()
        self.first = np.argmax(self.valid_host, 1)
        self.length = self.valid_host.shape[1]
        self.first_columns = upload(self.first[:, None], valid.device)
        starts = self.first if self.first.any() else self.first[:1]
        positions = upload(np.maximum(np.arange(self.length) - starts[:, None], 0), valid.device)
        shape = network.shape
        self.rope = rope_of(positions, shape.rotary_width, shape.theta, at_least_float32(dtype), shape.yarn)
        self.block_length, self.causal_context, self.origin = shape.block_length, shape.causal_context, self.first
        """The first column of the rows from which blocks count."""
        if shape.blocks_from_answer:
            self.origin = np.argmax(self.valid_host & ~layout.given.cpu().numpy(), 1)

    def take(self, rows: Ints) -> RowPositions:
        """The positions of some of the rows."""
        taken = copy(self)
        index = upload(rows, self.valid.device)
        taken.valid, taken.valid_host = self.valid[index], self.valid_host[rows]
        taken.first, taken.origin = self.first[rows], self.origin[rows]
        taken.first_columns = self.first_columns[index]
        taken.rope = tuple(t if len(t) == 1 else t[index] for t in self.rope)  # type: ignore[assignment]
        return taken

    def blocks(self, at: Ints) -> Ints:
        """The block of a block-causal model that each column `at` `[B, T]` is in; padding on the left is in the
        first."""
        assert self.block_length is not None
        found: Ints = (np.maximum(at, self.first[:, None]) - self.origin[:, None]) // self.block_length
        return found

    def sees(self, at: Ints, block: Span | None) -> Ints:
        """The last column that each column `at` `[B, T]` of a block-causal model sees: the end of its block, or itself
        where its context is causal and its block is not open."""
        assert self.block_length is not None
        number = self.blocks(at)
        last: Ints = self.origin[:, None] + (number + 1) * self.block_length - 1
        if not self.causal_context or block is None:
            return last
        return np.where(number < self.blocks(block.start[:, None]), np.maximum(at, self.first[:, None]), last)

    def predictor(self, at: Ints, shift: int) -> Ints:
        """The column whose output predicts each column `at` `[B, W]`."""
        if not self.causal_context:
            return at - shift
        assert self.block_length is not None
        found: Ints = at - ((at - self.origin[:, None]) % self.block_length == 0)
        return found

    def clip(self, plan: Plan) -> Plan:
        """The plan with a window without padding."""
        last = self.length - np.argmax(self.valid_host[:, ::-1], 1)
        window = Span(np.maximum(plan.window.start, self.first), np.minimum(plan.window.stop, last))
        return replace(plan, window=window)


class PreparedPass:
    """One forward as a plan asks for it, ready for any tokens.

    With `shift` 1 the network's output at a column predicts the next one, so one more column is computed to the left of
    the window. Its keys go to the KV cache's spare column: a plan refreshes its window alone.
    """

    def __init__(
        self, rows: RowPositions, plan: Plan, shift: int, is_cached: bool, idle: Ints | None = None, multiple: int = 1
    ) -> None:
        """Rows that are `idle` are computed for nothing: another pass computes them, and this one must not write. The
        number of computed columns is rounded up to a `multiple`, so that fewer shapes are captured as graphs."""
        device, length, window = rows.valid.device, rows.length, plan.window
        computed = Span(np.maximum(window.start - shift, 0), window.stop)
        at = computed.start[:, None] + np.arange(-(-computed.width // multiple) * multiple)
        self.tokens = Pick(at, length, device)
        cos, sin = (self.tokens(t)[:, None].contiguous() for t in rows.rope)
        visible, keys = rows.valid_host & (window.mask(length) | plan.reuse.mask(length)), np.arange(length)[None]
        if not is_cached:  # the keys are those of the computed columns
            visible, keys = np.take_along_axis(visible, np.minimum(at, length - 1), 1) & (at < length), at
        if idle is not None:
            visible[idle] |= rows.valid_host[idle]  # a row that sees nothing is NaN
        mask = None if visible.all() else upload(visible, device)[:, None, None]
        if rows.block_length is not None:
            mask = _block_causal(mask, visible, rows.sees(at, plan.block), keys, device)
        cache_columns = upload(self._cache_columns(at, window, length, idle), device) if is_cached else None
        source = rows.predictor(columns(plan.wanted), shift)
        if shift:  # nothing stands before a row's first token, so that one predicts itself
            source = np.maximum(source, rows.first[:, None])
        source = np.clip(source - computed.start[:, None], 0, at.shape[1] - 1)
        wanted = None
        if source.shape[1] != at.shape[1] or (source != np.arange(at.shape[1])).any():
            wanted = upload(source[:1] if (source == source[:1]).all() else source, device)
        self.inputs = ForwardInputs(rows.valid.new_zeros(0, dtype=torch.int64), cos, sin, mask, cache_columns, wanted)

    def inputs_of(self, tokens: Tensor) -> ForwardInputs:
        """The inputs of the forward over a canvas `[B, L]`."""
        return self.inputs._replace(tokens=self.tokens(tokens))

    @staticmethod
    def _cache_columns(at: Ints, window: Span, length: int, idle: Ints | None) -> Ints:
        """The KV cache's column of each computed entry; the spare one for those outside the window."""
        inside = (at >= window.start[:, None]) & (at < window.stop[:, None])
        if idle is not None:
            inside[idle] = False
        found = np.where(inside, at, length)
        return found[0] if (found == found[:1]).all() else found


def _block_causal(
    mask: Tensor | None, visible: NDArray[np.bool_], queries: Ints, keys: Ints, device: torch.device
) -> Tensor | None:
    """The mask of a block-causal model, `[B, 1, T, keys]`, from the last columns that the queries `[B, T]` see, and the
    keys' own columns.

    As it was where no query may see less than the others, which is so inside a block."""
    if (queries.min(1) >= np.where(visible, keys, keys.min()).max(1)).all():
        return mask
    seen = upload(keys, device)[:, None, None] <= upload(queries, device)[:, None, :, None]
    return seen if mask is None else seen & mask


@dataclass
class RowPart:
    """Rows that are computed together."""

    rows: Tensor | None
    """Their indices; None where they are the whole batch, in its order."""
    columns: Tensor | None
    """Which of the wanted columns are computed, `[rows, W]`; None where all are."""
    prepared: PreparedPass


class RowParts:
    """A plan on a CPU: rows of similar width are computed together, the largest part first.

    The rows are sorted by width, and each part is as wide as its widest row. Parts of a small model run side by side,
    one on each thread (see :mod:`uncode.core.support.threads`).
    """

    def __init__(self, rows: RowPositions, plan: Plan, shift: int, threads: int) -> None:
        self.plan = plan
        clipped = rows.clip(plan)
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


@dataclass
class WideRows:
    """Rows that are computed in their own forward."""

    rows: Tensor
    prepared: PreparedPass
    reuses: bool
    """Whether they attend to stored keys and values."""

    @classmethod
    def of(cls, rows: RowPositions, plan: Plan, group: Ints, shift: int) -> WideRows:
        """Those rows of a plan."""
        own = plan.take(group)
        prepared = PreparedPass(rows.take(group), own, shift, is_cached=True, multiple=WIDE_MULTIPLE)
        return cls(upload(group, rows.valid.device), prepared, own.reuse.width > 0)


class PreparedPlan:
    """A plan on a GPU. Rows that refresh their KV cache have their own forwards: in a common one every row
    would be computed as widely as the widest.

    The common forward keeps its shape, so that its CUDA graph is replayed; in it the wide rows are idle. Where windows
    slide, their width changes from step to step, and is rounded up to a multiple.
    """

    def __init__(self, rows: RowPositions, plan: Plan, shift: int, may_split: bool) -> None:
        self.plan, self.wide = plan, list[WideRows]()
        self.common: PreparedPass | None = None
        self.is_cached = plan.store.width > 0 or plan.reuse.width > 0 or not plan.window.mask(rows.length).all()
        clipped = rows.clip(plan) if self.is_cached else plan
        multiple = SLIDING_MULTIPLE if self.is_cached and plan.slides is not None else 1
        widths = clipped.window.stop - clipped.window.start
        groups = _wide_groups(widths) if self.is_cached and may_split else []
        if not groups:
            self.common = PreparedPass(rows, clipped, shift, self.is_cached, multiple=multiple)
            return
        idle = np.concatenate(groups)
        if len(idle) < len(widths):
            self.common = PreparedPass(
                rows, _without(clipped, idle, rows.length), shift, self.is_cached, idle, multiple
            )
        self.wide = [WideRows.of(rows, clipped, group, shift) for group in groups]


def refreshing_rows(rows: RowPositions, plan: Plan, shift: int) -> list[WideRows]:
    """The rows of a plan that do not slide, in groups of similar width."""
    assert plan.slides is not None
    clipped = rows.clip(plan)
    widths = clipped.window.stop - clipped.window.start
    order = [int(row) for row in np.argsort(-widths, kind="stable") if not plan.slides[row]]
    return [WideRows.of(rows, clipped, group, shift) for group in _groups(order, widths)]


def _groups(order: Sequence[int], widths: Ints) -> list[Ints]:
    """Rows in the order of their widths, in groups of similar width."""
    groups: list[list[int]] = []
    for row in order:
        if not groups or widths[row] < MIN_SHARE_OF_WIDEST * widths[groups[-1][0]]:
            groups.append([])
        groups[-1].append(row)
    return [np.array(group) for group in groups]


def _wide_groups(widths: Ints) -> list[Ints]:
    """Rows that have their own forwards, in groups of similar width; none where a common forward is no slower."""
    order = np.argsort(-widths, kind="stable")
    wide = [row for row in order if widths[row] > max(2 * widths.min(), MIN_WIDE_COLUMNS)]
    if not wide and widths.max() > MIN_WIDE_COLUMNS and widths.min() < MIN_SHARE_OF_WIDEST * widths.max():
        wide = list(order)
    groups = _groups([int(row) for row in wide], widths)
    narrow = [int(widths[row]) for row in order if row not in wide]
    split = sum(len(group) * int(widths[group[0]]) for group in groups) + len(widths) * max(narrow, default=0)
    return groups if split <= MAX_SPLIT_SHARE * len(widths) * int(widths.max()) else []


def _without(plan: Plan, idle: Ints, length: int) -> Plan:
    """The plan in which some rows compute as few columns as the others."""
    width = int(np.delete(plan.window.stop - plan.window.start, idle).max())
    start, stop = plan.window.start.copy(), plan.window.stop.copy()
    start[idle] = np.minimum(plan.wanted.start[idle], length - width)
    stop[idle] = start[idle] + width
    return replace(plan, window=Span(start, stop))
