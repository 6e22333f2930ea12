"""Attention as Triton kernels: few queries over many keys (flash-decoding), and short rows.

One program computes a tile of queries of one head over one split of the keys, with the running maximum and sum of an
online softmax. A batch with fewer tiles than the GPU has processors divides the keys into splits; a second kernel then
rescales and adds what the splits found, always in the same order.
"""

# mypy: ignore-errors
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .linear_triton import padded

BLOCK_Q = 64
"""Queries of a program, at most."""
BLOCK_KV, BLOCK_KV_MANY = 64, 32
"""Keys per iteration: where one program computes all queries of a head, and where several programs share them. The
fastest of those tried on an H200."""
MIN_CTAS = 128
"""Programs that the attention of a batch is divided among, at least: about one for each processor."""
LOG2_E = 1.4426950408889634
"""The softmax is computed with powers of two, which the GPU has an instruction for."""


@triton.jit(do_not_specialize=["mask_stride", "mask_row", "queries", "length", "split_length"])
def _flash_attention(
    q, q_batch, q_head, q_row, keys, values, batch_stride, head_stride, key_stride, mask, mask_stride, mask_row, out,
    stats, queries, length, split_length, scale,
    HEADS: tl.constexpr, GROUP: tl.constexpr, WIDTH: tl.constexpr, QUERIES: tl.constexpr, BLOCK_KV: tl.constexpr,
    STAGES: tl.constexpr, MASKED: tl.constexpr, BY_QUERY: tl.constexpr, ONE_SPLIT: tl.constexpr,
):  # fmt: skip
    """One tile of queries of one head over one split of the keys. Grid: (heads * tiles, B, splits).

    With one split the output is finished. With several it is unnormalised, and the row's maximum and sum go to `stats`.
    The mask is the same for all queries of a row, or BY_QUERY has a line for each.
    """
    head, batch, split = tl.program_id(0) % HEADS, tl.program_id(1).to(tl.int64), tl.program_id(2)
    query, lane, block = tl.arange(0, QUERIES), tl.arange(0, WIDTH), tl.arange(0, BLOCK_KV)
    query += tl.program_id(0) // HEADS * QUERIES
    first, last = split * split_length, tl.minimum((split + 1) * split_length, length)
    at = batch * batch_stride + (head // GROUP) * head_stride
    is_query = query < queries
    own = q + batch * q_batch + head * q_head + query[:, None] * q_row + lane[None]
    x = tl.load(own, mask=is_query[:, None], other=0.0)
    top = tl.full((QUERIES,), float("-inf"), tl.float32)
    mass = tl.zeros((QUERIES,), tl.float32)
    total = tl.zeros((QUERIES, WIDTH), tl.float32)
    for start in tl.range(first, last, BLOCK_KV, num_stages=STAGES):
        key = start + block
        inside = key < last
        k = tl.load(keys + at + key[None] * key_stride + lane[:, None], mask=inside[None], other=0.0)
        v = tl.load(values + at + key[:, None] * key_stride + lane[None], mask=inside[:, None], other=0.0)
        if MASKED:
            inside = inside & (tl.load(mask + batch * mask_stride + key, mask=inside, other=0) != 0)
        score = tl.where(inside[None], tl.dot(x, k) * scale, float("-inf"))
        if BY_QUERY:
            lines = mask + batch * mask_stride + query[:, None] * mask_row + key[None]
            seen = tl.load(lines, mask=is_query[:, None] & inside[None], other=0)
            score = tl.where(seen != 0, score, float("-inf"))
        new_top = tl.maximum(top, tl.max(score, 1))
        base = tl.where(new_top == float("-inf"), 0.0, new_top)
        weight = tl.exp2(score - base[:, None])
        rescale = tl.exp2(top - base)
        mass = mass * rescale + tl.sum(weight, 1)
        total = tl.dot(weight.to(v.dtype), v, total * rescale[:, None])
        top = new_top
    if ONE_SPLIT:
        to = out + (batch * queries + query[:, None]) * (HEADS * WIDTH) + head * WIDTH + lane[None]
        tl.store(to, total / mass[:, None], mask=is_query[:, None])
    else:
        entry = ((split * tl.num_programs(1) + batch) * queries + query) * HEADS + head
        tl.store(out + entry[:, None] * WIDTH + lane[None], total, mask=is_query[:, None])
        tl.store(stats + 2 * entry, top, mask=is_query)
        tl.store(stats + 2 * entry + 1, mass, mask=is_query)


@triton.jit(do_not_specialize=["entries", "splits"])
def _merge_splits(partial, stats, out, entries, splits, HEADS: tl.constexpr, WIDTH: tl.constexpr):
    """Some heads of one query, from all splits of the keys. Grid: (B * queries * heads / HEADS,)."""
    entry = tl.program_id(0).to(tl.int64) * HEADS + tl.arange(0, HEADS)
    at = entry[:, None] * WIDTH + tl.arange(0, WIDTH)[None]
    top = tl.load(stats + 2 * entry)
    for split in range(1, splits):
        top = tl.maximum(top, tl.load(stats + 2 * (split * entries + entry)))
    mass = tl.zeros((HEADS,), tl.float32)
    total = tl.zeros((HEADS, WIDTH), tl.float32)
    for split in range(splits):
        own = split * entries + entry
        rescale = tl.exp2(tl.load(stats + 2 * own) - top)
        mass += rescale * tl.load(stats + 2 * own + 1)
        total += rescale[:, None] * tl.load(partial + split * entries * WIDTH + at)
    tl.store(out + at, total / mass[:, None])


def flash_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Attention of queries `[B, heads, T, d]` over keys and values `[B, key heads, L, d]`, as `[B, T, heads * d]`.

    `mask` `[B, 1, 1 or T, L]` is true where a key may be seen; each query sees at least one. Keys and values have the
    same strides.
    """
    batch, heads, queries, width = q.shape
    length, tiles = k.shape[2], triton.cdiv(queries, BLOCK_Q)
    block = BLOCK_KV if tiles == 1 else BLOCK_KV_MANY
    splits = min(triton.cdiv(MIN_CTAS, batch * heads * tiles), triton.cdiv(length, block))  # the last may be empty
    split_length = triton.cdiv(triton.cdiv(length, splits), block) * block
    out = q.new_empty(batch, queries, heads * width)
    partial, stats = out, out
    if splits > 1:
        partial = q.new_empty(splits, *out.shape, dtype=torch.float32)
        stats = q.new_empty(splits, batch, queries, heads, 2, dtype=torch.float32)
    seen = q if mask is None else mask
    by_query = mask is not None and mask.shape[2] > 1
    with torch.cuda.device_of(q):
        _flash_attention[(heads * tiles, batch, splits)](
            q, q.stride(0), q.stride(1), q.stride(2), k, v, k.stride(0), k.stride(1), k.stride(2), seen, seen.stride(0),
            seen.stride(2), partial, stats, queries, length, split_length, width**-0.5 * LOG2_E,
            HEADS=heads, GROUP=heads // k.shape[1], WIDTH=width, QUERIES=min(padded(queries), BLOCK_Q),
            BLOCK_KV=block, STAGES=3, MASKED=mask is not None and not by_query, BY_QUERY=by_query,
            ONE_SPLIT=splits == 1, num_warps=4,
        )  # fmt: skip
        if splits > 1:
            heads_each = min(heads & -heads, 8)
            _merge_splits[(out.numel() // width // heads_each,)](
                partial, stats, out, out.numel() // width, splits, HEADS=heads_each, WIDTH=width, num_warps=4
            )
    return out
