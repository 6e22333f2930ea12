"""Products of fp8 and int4 matrices as Triton kernels, for few rows.

As in :mod:`.linear_triton` a product takes as long as reading its weights, and fp8 has half the bytes. To widen fp8 in
the kernel takes longer than to read it, so the few activations are quantised too: the tensor cores take fp8 on both
sides, and the scales of a row and of a column meet at the end, on the float32 sum. int4 is widened, for its memory.
"""

# mypy: ignore-errors
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .linear_triton import Tile, first_tiles, padded

LINEAR_TILE, SPLIT_K_TILE, SWIGLU_TILE = Tile(64, 128, 6), Tile(64, 128, 6), Tile(64, 128, 4)
"""The fastest of several on an H200; SwiGLU's is of the gate and of the up projection each."""
SPLIT_K = 4
"""Partial sums of a product that is split along K."""
INT4_BLOCK_N, INT4_STAGES = 64, 4
"""Columns of the output that a program of an int4 product computes, and its tiles in flight."""
EXACT_K = 128
"""Products that the tensor cores add up in their own few bits, before the float32 sum takes them."""


@triton.jit(do_not_specialize=["rows"])
def _fp8_linear(
    h, scale_h, weight, scale_w, bias, out, rows, n,
    K: tl.constexpr, SPLIT_K: tl.constexpr, ROWS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    STAGES: tl.constexpr, HAS_BIAS: tl.constexpr, EXACT_K: tl.constexpr,
):  # fmt: skip
    """`h @ weight.T`. Grid: (n / BLOCK_N, SPLIT_K). Reads each weight once."""
    column, row, weights, inputs = first_tiles(h, weight, K, SPLIT_K, ROWS, BLOCK_N, BLOCK_K)
    is_row = row < rows
    total = tl.zeros((BLOCK_N, ROWS), tl.float32)
    for _ in tl.range(0, K // SPLIT_K // BLOCK_K, num_stages=STAGES):
        w = tl.load(weights, eviction_policy="evict_first")
        x = tl.load(inputs, mask=is_row[None], other=0.0)
        total = tl.dot(w, x, total, max_num_imprecise_acc=EXACT_K)
        weights += BLOCK_K
        inputs += BLOCK_K
    total *= tl.load(scale_w + column)[:, None] * tl.load(scale_h + row, mask=is_row, other=0.0)[None]
    if HAS_BIAS:
        total += tl.load(bias + column).to(tl.float32)[:, None]
    to = out + (tl.program_id(1) * rows + row[None]).to(tl.int64) * n + column[:, None]
    tl.store(to, total, mask=is_row[None])


def linear(
    h: Tensor, scale_h: Tensor, weight: Tensor, scale_w: Tensor, bias: Tensor | None, dtype: torch.dtype
) -> Tensor:
    """`h @ weight.T + bias` of fp8 rows and an fp8 matrix."""
    out = h.new_empty((*h.shape[:-1], len(weight)), dtype=dtype)
    return _launch(out, h, scale_h, weight, scale_w, bias, 1, LINEAR_TILE)


def split_k(h: Tensor, scale_h: Tensor, weight: Tensor, scale_w: Tensor) -> Tensor:
    """`h @ weight.T` as float32 partial sums `[SPLIT_K, *]`."""
    out = h.new_empty((SPLIT_K, *h.shape[:-1], len(weight)), dtype=torch.float32)
    return _launch(out, h, scale_h, weight, scale_w, None, SPLIT_K, SPLIT_K_TILE)


def _launch(
    out: Tensor, h: Tensor, scale_h: Tensor, weight: Tensor, scale_w: Tensor, bias: Tensor | None, splits: int,
    tile: Tile,
) -> Tensor:  # fmt: skip
    n, k = weight.shape
    assert n % tile.block_n == 0 and k % (splits * tile.block_k) == 0, "tiles must divide the matrix"
    rows = h.numel() // k
    with torch.cuda.device_of(h):
        _fp8_linear[(n // tile.block_n, splits)](
            h, scale_h, weight, scale_w, scale_w if bias is None else bias, out, rows, n,
            K=k, SPLIT_K=splits, ROWS=padded(rows), BLOCK_N=tile.block_n, BLOCK_K=tile.block_k, STAGES=tile.stages,
            HAS_BIAS=bias is not None, EXACT_K=EXACT_K, num_warps=4,
        )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["rows"])
def _fp8_swiglu(
    h, scale_h, weight, scale_w, out, rows, hidden,
    K: tl.constexpr, ROWS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr,
    EXACT_K: tl.constexpr,
):  # fmt: skip
    """`silu(h @ gate.T) * (h @ up.T)`, the two matrices one below the other. Grid: (hidden / BLOCK_N,)."""
    column, row, gates, inputs = first_tiles(h, weight, K, 1, ROWS, BLOCK_N, BLOCK_K)
    ups, is_row = gates + hidden.to(tl.int64) * K, row < rows
    gate, up = tl.zeros((BLOCK_N, ROWS), tl.float32), tl.zeros((BLOCK_N, ROWS), tl.float32)
    for _ in tl.range(0, K // BLOCK_K, num_stages=STAGES):
        x = tl.load(inputs, mask=is_row[None], other=0.0)
        gate = tl.dot(tl.load(gates, eviction_policy="evict_first"), x, gate, max_num_imprecise_acc=EXACT_K)
        up = tl.dot(tl.load(ups, eviction_policy="evict_first"), x, up, max_num_imprecise_acc=EXACT_K)
        gates += BLOCK_K
        ups += BLOCK_K
        inputs += BLOCK_K
    by_row = tl.load(scale_h + row, mask=is_row, other=0.0)[None]
    dtype: tl.constexpr = out.dtype.element_ty
    gate = (gate * tl.load(scale_w + column)[:, None] * by_row).to(dtype).to(tl.float32)
    up = (up * tl.load(scale_w + hidden + column)[:, None] * by_row).to(dtype).to(tl.float32)
    silu = (gate / (1.0 + tl.exp(-gate))).to(dtype).to(tl.float32)
    tl.store(out + row[None] * hidden + column[:, None], silu * up, mask=is_row[None])


def swiglu(h: Tensor, scale_h: Tensor, gate_up: Tensor, scale_w: Tensor, dtype: torch.dtype) -> Tensor:
    """`silu(gate) * up` of fp8 rows, by both fp8 matrices one below the other, `[2 hidden, width]`."""
    hidden, k = len(gate_up) // 2, gate_up.shape[1]
    assert hidden % SWIGLU_TILE.block_n == 0 and k % SWIGLU_TILE.block_k == 0, "tiles must divide the matrix"
    rows, out = h.numel() // k, h.new_empty((*h.shape[:-1], hidden), dtype=dtype)
    with torch.cuda.device_of(h):
        _fp8_swiglu[(hidden // SWIGLU_TILE.block_n,)](
            h, scale_h, gate_up, scale_w, out, rows, hidden, K=k, ROWS=padded(rows), BLOCK_N=SWIGLU_TILE.block_n,
            BLOCK_K=SWIGLU_TILE.block_k, STAGES=SWIGLU_TILE.stages, EXACT_K=EXACT_K, num_warps=4,
        )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["rows"])
def _int4_linear(
    h, weight, scale, bias, out, rows, n,
    K: tl.constexpr, GROUP: tl.constexpr, SPLIT_K: tl.constexpr, ROWS: tl.constexpr, BLOCK_N: tl.constexpr,
    STAGES: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    """`h @ weight.T`, a group at a time: a group's whole numbers are multiplied, then its step and its lowest number
    meet their sum. The low half of a byte is of a group's first half. Grid: (n / BLOCK_N, SPLIT_K)."""
    k_per_split: tl.constexpr = K // SPLIT_K
    half: tl.constexpr = GROUP // 2
    column, start = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N), tl.program_id(1) * k_per_split
    row, k = tl.arange(0, ROWS), tl.arange(0, half)
    is_row = row < rows
    pairs = weight + column.to(tl.int64)[:, None] * (K // 2) + start // 2 + k[None]
    inputs = h + row[None] * K + start + k[:, None]
    steps = scale + (column.to(tl.int64) * (K // GROUP) + start // GROUP) * 2
    total = tl.zeros((BLOCK_N, ROWS), tl.float32)
    for _ in tl.range(0, k_per_split // GROUP, num_stages=STAGES):
        pair = tl.load(pairs, eviction_policy="evict_first")
        first = tl.load(inputs, mask=is_row[None], other=0.0)
        second = tl.load(inputs + half, mask=is_row[None], other=0.0)
        group = tl.dot((pair & 15).to(first.dtype), first)
        group = tl.dot((pair >> 4).to(first.dtype), second, group)
        sums = tl.sum(first.to(tl.float32), 0) + tl.sum(second.to(tl.float32), 0)
        total += tl.load(steps).to(tl.float32)[:, None] * group
        total += tl.load(steps + 1).to(tl.float32)[:, None] * sums[None]
        pairs += half
        inputs += GROUP
        steps += 2
    if HAS_BIAS:
        total += tl.load(bias + column).to(tl.float32)[:, None]
    to = out + (tl.program_id(1) * rows + row[None]).to(tl.int64) * n + column[:, None]
    tl.store(to, total, mask=is_row[None])


def int4_linear(h: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """`h @ weight.T + bias`, in the dtype of `h`, of an int4 matrix `[n, K / 2]` with scales `[n, groups, 2]`."""
    return _launch_int4(h.new_empty((*h.shape[:-1], len(weight))), h, weight, scale, bias, 1)


def int4_split_k(h: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    """`h @ weight.T` as float32 partial sums `[SPLIT_K, *]`."""
    out = h.new_empty((SPLIT_K, *h.shape[:-1], len(weight)), dtype=torch.float32)
    return _launch_int4(out, h, weight, scale, None, SPLIT_K)


def _launch_int4(out: Tensor, h: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None, splits: int) -> Tensor:
    h = h.contiguous()
    (n, half), k = weight.shape, h.shape[-1]
    group, rows = k // scale.shape[1], h.numel() // k
    assert half * 2 == k and n % INT4_BLOCK_N == 0 and k % (splits * group) == 0, "tiles must divide the matrix"
    with torch.cuda.device_of(h):
        _int4_linear[(n // INT4_BLOCK_N, splits)](
            h, weight, scale, h if bias is None else bias, out, rows, n, K=k, GROUP=group, SPLIT_K=splits,
            ROWS=padded(rows), BLOCK_N=INT4_BLOCK_N, STAGES=INT4_STAGES, HAS_BIAS=bias is not None, num_warps=4,
        )  # fmt: skip
    return out
