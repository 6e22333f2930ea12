"""Skinny matrix products as Triton kernels: few rows of activations, so a product takes as long as reading its weights.

The weights take the M side of the tensor cores' tile and the few rows the N side, so little of a tile is padding. A
program owns some columns of the output and streams their weights through shared memory (`stages` tiles in flight).
Where the output has too few columns to fill the GPU, the K dimension is split too: each program then writes a float32
partial sum, and the kernel that reads the product adds the partial sums, always in the same order.

No length is compiled in: a model's kernels serve all prompts, in two widths of rows, 32 and 64.
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

    block_n: int
    """Columns of the output."""
    block_k: int
    """K that is read at a time."""
    stages: int
    """Tiles in flight."""


LINEAR_TILE, SPLIT_K_TILE, SWIGLU_TILE = Tile(64, 128, 4), Tile(128, 64, 5), Tile(64, 64, 4)
"""The fastest of several on an H200; SwiGLU's is of the gate and of the up projection each."""
STAGES_OF_MANY = 3
"""Of :func:`linear`, for more than 32 rows."""
SPLIT_K = 4
"""Partial sums of a product that is split along K."""


@triton.jit
def first_tiles(
    h, weight, K: tl.constexpr, SPLIT_K: tl.constexpr, ROWS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):  # fmt: skip
    """A program's columns of the output, the rows, and its first tiles of the weights and of the inputs."""
    column, row, k = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N), tl.arange(0, ROWS), tl.arange(0, BLOCK_K)
    start = tl.program_id(1) * (K // SPLIT_K)
    weights = weight + column.to(tl.int64)[:, None] * K + start + k[None]
    return column, row, weights, h + row[None] * K + start + k[:, None]


@triton.jit(do_not_specialize=["rows"])
def _linear(
    h, weight, bias, out, rows, n,
    K: tl.constexpr, SPLIT_K: tl.constexpr, ROWS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    STAGES: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    """`h @ weight.T`. Grid: (n / BLOCK_N, SPLIT_K). Reads each weight once."""
    column, row, weights, inputs = first_tiles(h, weight, K, SPLIT_K, ROWS, BLOCK_N, BLOCK_K)
    is_row = row < rows
    total = tl.zeros((BLOCK_N, ROWS), tl.float32)
    for _ in tl.range(0, K // SPLIT_K // BLOCK_K, num_stages=STAGES):
        w = tl.load(weights, eviction_policy="evict_first")
        total = tl.dot(w, tl.load(inputs, mask=is_row[None], other=0.0), total)
        weights += BLOCK_K
        inputs += BLOCK_K
    if HAS_BIAS:
        total += tl.load(bias + column).to(tl.float32)[:, None]
    to = out + (tl.program_id(1) * rows + row[None]).to(tl.int64) * n + column[:, None]
    tl.store(to, total, mask=is_row[None])


def linear(h: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`h @ weight.T + bias`, in the dtype of `h`."""
    is_few = h.numel() <= 32 * h.shape[-1]
    return _launch(h, weight, bias, 1, LINEAR_TILE if is_few else LINEAR_TILE._replace(stages=STAGES_OF_MANY))


def split_k(h: Tensor, weight: Tensor) -> Tensor:
    """`h @ weight.T` as float32 partial sums `[SPLIT_K, *]`."""
    return _launch(h, weight, None, SPLIT_K, SPLIT_K_TILE)


def _launch(h: Tensor, weight: Tensor, bias: Tensor | None, splits: int, tile: Tile) -> Tensor:
    h = h.contiguous()
    n, k = weight.shape
    assert n % tile.block_n == 0 and k % (splits * tile.block_k) == 0, "tiles must divide the matrix"
    shape, rows = (*h.shape[:-1], n), h.numel() // k
    out = h.new_empty(shape) if splits == 1 else h.new_empty((splits, *shape), dtype=torch.float32)
    with torch.cuda.device_of(h):
        _linear[(n // tile.block_n, splits)](
            h, weight, h if bias is None else bias, out, rows, n,
            K=k, SPLIT_K=splits, ROWS=padded(rows), BLOCK_N=tile.block_n, BLOCK_K=tile.block_k, STAGES=tile.stages,
            HAS_BIAS=bias is not None, num_warps=4,
        )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["rows"])
def _swiglu(
    h, weight, out, rows, hidden,
    K: tl.constexpr, ROWS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """`silu(h @ gate.T) * (h @ up.T)`, the two matrices one below the other. Grid: (hidden / BLOCK_N,)."""
    column, row, gates, inputs = first_tiles(h, weight, K, 1, ROWS, BLOCK_N, BLOCK_K)
    ups, is_row = gates + hidden.to(tl.int64) * K, row < rows
    gate, up = tl.zeros((BLOCK_N, ROWS), tl.float32), tl.zeros((BLOCK_N, ROWS), tl.float32)
    for _ in tl.range(0, K // BLOCK_K, num_stages=STAGES):
        x = tl.load(inputs, mask=is_row[None], other=0.0)
        gate = tl.dot(tl.load(gates, eviction_policy="evict_first"), x, gate)
        up = tl.dot(tl.load(ups, eviction_policy="evict_first"), x, up)
        gates += BLOCK_K
        ups += BLOCK_K
        inputs += BLOCK_K
    dtype: tl.constexpr = out.dtype.element_ty
    gate, up = gate.to(dtype).to(tl.float32), up.to(dtype).to(tl.float32)
    silu = (gate / (1.0 + tl.exp(-gate))).to(dtype).to(tl.float32)
    tl.store(out + row[None] * hidden + column[:, None], silu * up, mask=is_row[None])


def swiglu(h: Tensor, gate_up: Tensor) -> Tensor:
    """`silu(gate) * up` of `h`, by both matrices one below the other, `[2 hidden, width]`."""
    h = h.contiguous()
    hidden, k = len(gate_up) // 2, gate_up.shape[1]
    assert hidden % SWIGLU_TILE.block_n == 0 and k % SWIGLU_TILE.block_k == 0, "tiles must divide the matrix"
    rows, out = h.numel() // k, h.new_empty((*h.shape[:-1], hidden))
    with torch.cuda.device_of(h):
        _swiglu[(hidden // SWIGLU_TILE.block_n,)](
            h, gate_up, out, rows, hidden, K=k, ROWS=padded(rows), BLOCK_N=SWIGLU_TILE.block_n,
            BLOCK_K=SWIGLU_TILE.block_k, STAGES=SWIGLU_TILE.stages, num_warps=4,
        )  # fmt: skip
    return out


def padded(rows: int) -> int:
    """Rows of a tile: enough for the tensor cores, and of few widths, because each width is compiled."""
    return max(32, triton.next_power_of_2(rows))
