"""Products and attention of few rows, which take as long as the weights and keys take to be read.

Weights are the side of a product that fills the tensor cores' tiles, and few rows the other, so little is padded.
So many programs share a matrix that all run at once; where a matrix is too small for that, each takes a part of the
depth as well, and whoever reads the product adds up the parts, always in the same order.

No length is compiled in: a model's kernels serve all prompts, in two widths of rows or queries, 32 and 64.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor


class Tile(NamedTuple):
    """What one program computes of a product."""

    columns: int
    step: int
    """Depth that is read at a time."""
    stages: int
    """Steps that are on their way."""


WHOLE, PART, GATE = Tile(64, 128, 4), Tile(128, 64, 5), Tile(64, 64, 4)
"""Of a product, of a part of one, and of the gate and its twin each: the best of some on an H200."""
PARTS = 4
"""Parts of the depth of a product that is added up later."""
KEYS = 64
"""Keys that are read at a time."""
PROGRAMS = 128
"""Among so many the attention of a batch is divided, at least: about one for each processor."""
LOG2_E = 1.4426950408889634
"""Powers of two are what a GPU computes."""


@triton.jit(do_not_specialize=["rows"])
def _multiply(
    h, weight, bias, out, rows, width,
    DEPTH: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
    STAGES: tl.constexpr, BIASED: tl.constexpr,
):  # fmt: skip
    """Some columns of one part of `h @ weight.T`."""
    part: tl.constexpr = DEPTH // PARTS
    column, start = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS), tl.program_id(1) * part
    mine = weight + column.to(tl.int64) * DEPTH + start
    row, step = tl.arange(0, ROWS), tl.arange(0, STEP)
    there = row < rows
    ours, theirs = mine[:, None] + step[None], h + row[None] * DEPTH + start + step[:, None]
    total = tl.zeros((COLUMNS, ROWS), tl.float32)
    for _ in tl.range(0, part // STEP, num_stages=STAGES):
        w = tl.load(ours, eviction_policy="evict_first")
        total = tl.dot(w, tl.load(theirs, mask=there[None], other=0.0), total)
        ours += STEP
        theirs += STEP
    if BIASED:
        total += tl.load(bias + column).to(tl.float32)[:, None]
    to = out + (tl.program_id(1) * rows + row[None]).to(tl.int64) * width + column[:, None]
    tl.store(to, total, mask=there[None])


def whole(h: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`h @ weight.T + bias`, in the type of `h`."""
    return _product(h, weight, bias, 1, WHOLE)


def in_parts(h: Tensor, weight: Tensor) -> Tensor:
    """`h @ weight.T` as float32 parts to be added up, `[PARTS, *]`."""
    return _product(h, weight, None, PARTS, PART)


def _product(h: Tensor, weight: Tensor, bias: Tensor | None, parts: int, tile: Tile) -> Tensor:
    h = h.contiguous()
    width, depth = weight.shape
    assert width % tile.columns == 0 and depth % (parts * tile.step) == 0, "no tile may stand out"
    shape, rows = (*h.shape[:-1], width), h.numel() // depth
    out = h.new_empty(shape) if parts == 1 else h.new_empty((parts, *shape), dtype=torch.float32)
    with torch.cuda.device_of(h):
        _multiply[(width // tile.columns, parts)](
            h, weight, h if bias is None else bias, out, rows, width,
            DEPTH=depth, PARTS=parts, ROWS=_padded(rows), COLUMNS=tile.columns, STEP=tile.step, STAGES=tile.stages,
            BIASED=bias is not None, num_warps=4,
        )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["rows"])
def _gate(
    h, weight, out, rows, hidden,
    DEPTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Some columns of `silu(h @ gate.T) * (h @ up.T)`, the two matrices one below the other."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    gates = weight + column.to(tl.int64) * DEPTH
    ups = gates + hidden.to(tl.int64) * DEPTH
    row, step = tl.arange(0, ROWS), tl.arange(0, STEP)
    there = row < rows
    gates, ups, theirs = gates[:, None] + step[None], ups[:, None] + step[None], h + row[None] * DEPTH + step[:, None]
    gate, up = tl.zeros((COLUMNS, ROWS), tl.float32), tl.zeros((COLUMNS, ROWS), tl.float32)
    for _ in tl.range(0, DEPTH // STEP, num_stages=STAGES):
        x = tl.load(theirs, mask=there[None], other=0.0)
        gate = tl.dot(tl.load(gates, eviction_policy="evict_first"), x, gate)
        up = tl.dot(tl.load(ups, eviction_policy="evict_first"), x, up)
        gates += STEP
        ups += STEP
        theirs += STEP
    kind: tl.constexpr = out.dtype.element_ty
    gate, up = gate.to(kind).to(tl.float32), up.to(kind).to(tl.float32)
    opened = (gate / (1.0 + tl.exp(-gate))).to(kind).to(tl.float32)
    tl.store(out + row[None] * hidden + column[:, None], opened * up, mask=there[None])


def gated(h: Tensor, both: Tensor) -> Tensor:
    """`silu(gate) * up` of `h`, by both matrices one below the other, `[2 hidden, width]`."""
    h = h.contiguous()
    hidden, depth = len(both) // 2, both.shape[1]
    assert hidden % GATE.columns == 0 and depth % GATE.step == 0, "no tile may stand out"
    rows, out = h.numel() // depth, h.new_empty((*h.shape[:-1], hidden))
    with torch.cuda.device_of(h):
        _gate[(hidden // GATE.columns,)](
            h, both, out, rows, hidden, DEPTH=depth, ROWS=_padded(rows), COLUMNS=GATE.columns, STEP=GATE.step,
            STAGES=GATE.stages, num_warps=4,
        )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["mask_stride", "queries", "length", "stretch"])
def _attend(
    q, q_batch, q_head, q_row, keys, values, batch_stride, head_stride, key_stride, mask, mask_stride, out, weights,
    queries, length, stretch, scale,
    HEADS: tl.constexpr, GROUP: tl.constexpr, WIDTH: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
    STAGES: tl.constexpr, MASKED: tl.constexpr, ALL: tl.constexpr,
):  # fmt: skip
    """All queries of one head: what they see of all keys; or of a stretch of them, unfinished, with its weight."""
    head, batch, number = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2)
    query, lane, some = tl.arange(0, QUERIES), tl.arange(0, WIDTH), tl.arange(0, KEYS)
    first, last = number * stretch, tl.minimum((number + 1) * stretch, length)
    at = batch * batch_stride + (head // GROUP) * head_stride
    asked = query < queries
    own = q + batch * q_batch + head * q_head + query[:, None] * q_row + lane[None]
    x = tl.load(own, mask=asked[:, None], other=0.0)
    top = tl.full((QUERIES,), float("-inf"), tl.float32)
    mass = tl.zeros((QUERIES,), tl.float32)
    seen = tl.zeros((QUERIES, WIDTH), tl.float32)
    for start in tl.range(first, last, KEYS, num_stages=STAGES):
        key = start + some
        inside = key < last
        k = tl.load(keys + at + key[None] * key_stride + lane[:, None], mask=inside[None], other=0.0)
        v = tl.load(values + at + key[:, None] * key_stride + lane[None], mask=inside[:, None], other=0.0)
        if MASKED:
            inside = inside & (tl.load(mask + batch * mask_stride + key, mask=inside, other=0) != 0)
        score = tl.where(inside[None], tl.dot(x, k) * scale, float("-inf"))
        higher = tl.maximum(top, tl.max(score, 1))
        base = tl.where(higher == float("-inf"), 0.0, higher)
        part = tl.exp2(score - base[:, None])
        less = tl.exp2(top - base)
        mass = mass * less + tl.sum(part, 1)
        seen = tl.dot(part.to(v.dtype), v, seen * less[:, None])
        top = higher
    if ALL:
        to = out + (batch * queries + query[:, None]) * (HEADS * WIDTH) + head * WIDTH + lane[None]
        tl.store(to, seen / mass[:, None], mask=asked[:, None])
    else:
        entry = ((number * tl.num_programs(1) + batch) * queries + query) * HEADS + head
        tl.store(out + entry[:, None] * WIDTH + lane[None], seen, mask=asked[:, None])
        tl.store(weights + 2 * entry, top, mask=asked)
        tl.store(weights + 2 * entry + 1, mass, mask=asked)


@triton.jit(do_not_specialize=["total", "stretches"])
def _merge(unfinished, weights, out, total, stretches, HEADS: tl.constexpr, WIDTH: tl.constexpr):
    """What some heads of one query see, from all stretches of the keys."""
    entry = tl.program_id(0).to(tl.int64) * HEADS + tl.arange(0, HEADS)
    at = entry[:, None] * WIDTH + tl.arange(0, WIDTH)[None]
    top = tl.load(weights + 2 * entry)
    for number in range(1, stretches):
        top = tl.maximum(top, tl.load(weights + 2 * (number * total + entry)))
    mass = tl.zeros((HEADS,), tl.float32)
    seen = tl.zeros((HEADS, WIDTH), tl.float32)
    for number in range(stretches):
        there = number * total + entry
        weight = tl.exp2(tl.load(weights + 2 * there) - top)
        mass += weight * tl.load(weights + 2 * there + 1)
        seen += weight[:, None] * tl.load(unfinished + number * total * WIDTH + at)
    tl.store(out + at, seen / mass[:, None])


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """What queries `[B, heads, T, d]` see of keys and values `[B, key heads, L, d]`, as `[B, T, heads * d]`.

    `mask` `[B, 1, 1, L]` is true where a key may be seen; each row sees one at least. Keys and values lie alike.
    """
    batch, heads, queries, width = q.shape
    length = k.shape[2]
    stretches = triton.cdiv(PROGRAMS, batch * heads)  # the last of them may be empty
    stretch = triton.cdiv(triton.cdiv(length, stretches), KEYS) * KEYS
    out = q.new_empty(batch, queries, heads * width)
    found, weights = out, out
    if stretches > 1:
        found = q.new_empty(stretches, *out.shape, dtype=torch.float32)
        weights = q.new_empty(stretches, batch, queries, heads, 2, dtype=torch.float32)
    seen = q if mask is None else mask
    with torch.cuda.device_of(q):
        _attend[(heads, batch, stretches)](
            q, q.stride(0), q.stride(1), q.stride(2), k, v, k.stride(0), k.stride(1), k.stride(2), seen, seen.stride(0),
            found, weights, queries, length, stretch, width**-0.5 * LOG2_E,
            HEADS=heads, GROUP=heads // k.shape[1], WIDTH=width, QUERIES=_padded(queries), KEYS=KEYS, STAGES=3,
            MASKED=mask is not None, ALL=stretches == 1, num_warps=4,
        )  # fmt: skip
        if stretches > 1:
            some = min(heads & -heads, 8)
            _merge[(out.numel() // width // some,)](
                found, weights, out, out.numel() // width, stretches, HEADS=some, WIDTH=width, num_warps=4
            )
    return out


def _padded(rows: int) -> int:
    """So many rows that the tensor cores take them; of few widths, each of which is compiled."""
    return max(32, triton.next_power_of_2(rows))
