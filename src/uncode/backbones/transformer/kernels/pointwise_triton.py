"""The pointwise parts of a layer as Triton kernels: one launch each, rounded where the plain code rounds.

A product and a sum stay two operations (`enable_fp_fusion=False`), as in the plain code.
"""

# mypy: ignore-errors
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..kv_cache import LayerCache

FP8 = torch.float8_e4m3fn
HEADS_PER_PROGRAM = 8
"""Heads of a token that one program of RoPE rotates."""


@triton.jit
def _to_fp8(value):
    """A row as e4m3 numbers, the largest of which is 448, and its scale."""
    top = tl.maximum(tl.max(tl.abs(value), 0), 1e-30)
    return value * (tl.math.div_rn(1.0, top) * 448.0), top * (1 / 448.0)


@triton.jit
def _quantize_rows(h, packed, scale, WIDTH: tl.constexpr, LANES: tl.constexpr):
    """One row. Grid: (rows,)."""
    row, lane = tl.program_id(0).to(tl.int64), tl.arange(0, LANES)
    inside = lane < WIDTH
    number, own = _to_fp8(tl.load(h + row * WIDTH + lane, mask=inside, other=0.0).to(tl.float32))
    tl.store(scale + row, own)
    tl.store(packed + row * WIDTH + lane, number.to(packed.dtype.element_ty), mask=inside)


def quantize_rows(h: Tensor) -> tuple[Tensor, Tensor]:
    """`h` in fp8, and the float32 scale of each row `[*]`."""
    h = h.contiguous()
    width, packed, scale = h.shape[-1], torch.empty_like(h, dtype=FP8), h.new_empty(h.shape[:-1], dtype=torch.float32)
    lanes = triton.next_power_of_2(width)
    with torch.cuda.device_of(h):
        _quantize_rows[(scale.numel(),)](h, packed, scale, WIDTH=width, LANES=lanes, num_warps=_warps(lanes))
    return packed, scale


def _warps(lanes: int) -> int:
    """Of a program that has a whole row."""
    return min(max(lanes // 256, 1), 16)


@triton.jit
def _add_norm(
    x, delta, weight, total, out, scale, eps, split_stride,
    WIDTH: tl.constexpr, LANES: tl.constexpr, SPLITS: tl.constexpr, PACKS: tl.constexpr,
):  # fmt: skip
    """One row: residual add (the partial sums of a split-K product added up first), then RMSNorm, and fp8 where the
    next product takes it. Grid: (rows,)."""
    row, lane = tl.program_id(0).to(tl.int64), tl.arange(0, LANES)
    inside = lane < WIDTH
    at = row * WIDTH + lane
    value = tl.load(x + at, mask=inside, other=0.0)
    added = tl.load(delta + at, mask=inside, other=0.0).to(tl.float32)
    for split in tl.static_range(1, SPLITS):
        added += tl.load(delta + split * split_stride + at, mask=inside, other=0.0)
    value = (value.to(tl.float32) + added.to(value.dtype).to(tl.float32)).to(value.dtype)
    tl.store(total + at, value, mask=inside)
    h = value.to(tl.float32)
    h = h * tl.rsqrt(tl.sum(h * h, 0) / WIDTH + eps)
    scaled = tl.load(weight + lane, mask=inside, other=0.0).to(tl.float32) * h.to(value.dtype).to(tl.float32)
    if PACKS:
        scaled, own = _to_fp8(scaled.to(value.dtype).to(tl.float32))
        tl.store(scale + row, own)
    tl.store(out + at, scaled.to(out.dtype.element_ty), mask=inside)


def add_norm(x: Tensor, delta: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """`x + delta` and its RMSNorm; `delta` may be partial sums, `[SPLIT_K, *]`."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    return _launch_add_norm(x, delta, weight, eps, out, None), out


def add_norm_fp8(x: Tensor, delta: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """`x + delta` and its RMSNorm in fp8, with the scale of each row: as :func:`quantize_rows` of :func:`add_norm`."""
    out = torch.empty_like(x, dtype=FP8, memory_format=torch.contiguous_format)
    scale = x.new_empty(x.shape[:-1], dtype=torch.float32)
    return _launch_add_norm(x, delta, weight, eps, out, scale), out, scale


def _launch_add_norm(x: Tensor, delta: Tensor, weight: Tensor, eps: float, out: Tensor, scale: Tensor | None) -> Tensor:
    x = x.contiguous()
    width, total = x.shape[-1], torch.empty_like(x)
    lanes = triton.next_power_of_2(width)
    with torch.cuda.device_of(x):  # a kernel starts on the current device, wherever its tensors lie
        _add_norm[(x.numel() // width,)](
            x, delta.contiguous(), weight, total, out, out if scale is None else scale, eps, x.numel(), WIDTH=width,
            LANES=lanes, SPLITS=len(delta) if delta.dim() > x.dim() else 1, PACKS=scale is not None,
            num_warps=_warps(lanes), enable_fp_fusion=False,
        )  # fmt: skip
    return total


@triton.jit(do_not_specialize=["period", "length"])
def _apply_rope(
    x, row_stride, cos, sin, period, keys, values, columns, length, batch_stride, head_stride, q_norm, k_norm, eps,
    HEADS: tl.constexpr, KEY_HEADS: tl.constexpr, HEADS_EACH: tl.constexpr, HALF: tl.constexpr, TURNS: tl.constexpr,
    LANES: tl.constexpr, CACHED: tl.constexpr, BY_ROW: tl.constexpr, NORMED: tl.constexpr,
):  # fmt: skip
    """Some heads of one token: queries rotated in place, keys too, or keys and values written to the KV cache. With
    NORMED, the RMSNorm of a query's or key's head comes first.

    Grid: (tokens, heads / HEADS_EACH). Without a cache the values are not read.
    """
    row = tl.program_id(0).to(tl.int64)
    head, lane = tl.program_id(1) * HEADS_EACH + tl.arange(0, HEADS_EACH)[:, None], tl.arange(0, LANES)[None]
    inside, turns = lane < HALF, lane < TURNS
    first, second = lane, lane + HALF
    if TURNS < HALF:  # the pairs behind those that turn are any two numbers of the rest
        first, second = tl.where(turns, lane, lane + TURNS), tl.where(turns, lane + TURNS, lane + HALF)
    angle = (row % period) * TURNS + lane
    c, s = tl.load(cos + angle, mask=turns, other=1.0), tl.load(sin + angle, mask=turns, other=0.0)
    at, exists = x + row * row_stride + head * (2 * HALF), inside & (head < HEADS + 2 * KEY_HEADS)
    a, b = tl.load(at + first, mask=exists, other=0.0), tl.load(at + second, mask=exists, other=0.0)
    wide_a, wide_b = a.to(tl.float32), b.to(tl.float32)
    if NORMED:
        share = tl.rsqrt((tl.sum(wide_a * wide_a, 1) + tl.sum(wide_b * wide_b, 1)) / (2 * HALF) + eps)[:, None]
        is_query, reads = head < HEADS, inside & (head < HEADS + KEY_HEADS)
        q_a, q_b = tl.load(q_norm + first, mask=inside, other=0.0), tl.load(q_norm + second, mask=inside, other=0.0)
        k_a, k_b = tl.load(k_norm + first, mask=inside, other=0.0), tl.load(k_norm + second, mask=inside, other=0.0)
        scale_a, scale_b = tl.where(is_query, q_a, k_a).to(tl.float32), tl.where(is_query, q_b, k_b).to(tl.float32)
        normed_a = ((wide_a * share).to(a.dtype).to(tl.float32) * scale_a).to(a.dtype).to(tl.float32)
        normed_b = ((wide_b * share).to(a.dtype).to(tl.float32) * scale_b).to(a.dtype).to(tl.float32)
        wide_a, wide_b = tl.where(reads, normed_a, wide_a), tl.where(reads, normed_b, wide_b)
    rotated_a = (wide_a * c - wide_b * s).to(a.dtype)
    rotated_b = (wide_b * c + wide_a * s).to(b.dtype)
    in_place = inside & (head < (HEADS if CACHED else HEADS + KEY_HEADS))
    tl.store(at + first, rotated_a, mask=in_place)
    tl.store(at + second, rotated_b, mask=in_place)
    if CACHED:
        column = tl.load(columns + (row if BY_ROW else row % length))
        to = (row // length) * batch_stride + column * (2 * HALF)
        key, value = keys + to + (head - HEADS) * head_stride, values + to + (head - HEADS - KEY_HEADS) * head_stride
        is_key = inside & (head >= HEADS) & (head < HEADS + KEY_HEADS)
        is_value = exists & (head >= HEADS + KEY_HEADS)
        tl.store(key + first, rotated_a, mask=is_key)
        tl.store(key + second, rotated_b, mask=is_key)
        tl.store(value + first, a, mask=is_value)
        tl.store(value + second, b, mask=is_value)


def rope_and_cache(
    x: Tensor,
    heads: int,
    key_heads: int,
    rope: tuple[Tensor, Tensor],
    cache: LayerCache | None,
    norm: tuple[Tensor, Tensor, float] | None = None,
) -> None:
    """Norm, where there is one, and rotate the queries and keys of a fused projection
    `[B, T, (heads + 2 key_heads) d]` in place. `norm` are the weights for queries and for keys, and the epsilon.

    With a cache the rotated keys and the values are written to it instead.
    """
    cos, sin = rope
    keys, values = (x, x) if cache is None else cache.allocated(x)
    columns = x if cache is None else cache.columns.to(x.device)
    turns, half = cos.shape[-1], x.shape[-1] // (heads + 2 * key_heads) // 2
    q_norm, k_norm, eps = (x, x, 0.0) if norm is None else norm
    touched = heads + (1 if cache is None else 2) * key_heads
    grid = (x.shape[0] * x.shape[1], triton.cdiv(touched, HEADS_PER_PROGRAM))
    with torch.cuda.device_of(x):
        _apply_rope[grid](
            x, x.stride(1), cos, sin, cos.shape[0] * cos.shape[2], keys, values, columns, x.shape[1],
            keys.stride(0), keys.stride(1), q_norm, k_norm, eps, HEADS=heads, KEY_HEADS=key_heads,
            HEADS_EACH=HEADS_PER_PROGRAM, HALF=half, TURNS=turns, LANES=triton.next_power_of_2(half),
            CACHED=cache is not None, BY_ROW=columns.dim() == 2, NORMED=norm is not None, num_warps=4,
            enable_fp_fusion=False,
        )  # fmt: skip


@triton.jit
def _silu_mul(gate_up, out, hidden, total, LANES: tl.constexpr):
    """Grid: (numbers / LANES,)."""
    at = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    inside = at < total
    row, column = at // hidden, at % hidden
    gate = tl.load(gate_up + row * 2 * hidden + column, mask=inside, other=0.0)
    up = tl.load(gate_up + row * 2 * hidden + hidden + column, mask=inside, other=0.0).to(tl.float32)
    wide = gate.to(tl.float32)
    silu = (wide / (1.0 + tl.exp(-wide))).to(gate.dtype).to(tl.float32)
    tl.store(out + at, silu * up, mask=inside)


@triton.jit
def _silu_mul_fp8(gate_up, packed, scale, hidden, LANES: tl.constexpr):
    """One row, quantised: as `_quantize_rows` of `_silu_mul`. Grid: (rows,)."""
    row, lane = tl.program_id(0).to(tl.int64), tl.arange(0, LANES)
    inside = lane < hidden
    at = gate_up + row * 2 * hidden + lane
    gate, up = tl.load(at, mask=inside, other=0.0), tl.load(at + hidden, mask=inside, other=0.0).to(tl.float32)
    wide = gate.to(tl.float32)
    silu = (wide / (1.0 + tl.exp(-wide))).to(gate.dtype).to(tl.float32)
    number, own = _to_fp8((silu * up).to(gate.dtype).to(tl.float32))
    tl.store(scale + row, own)
    tl.store(packed + row * hidden + lane, number.to(packed.dtype.element_ty), mask=inside)


def silu_mul_fp8(gate_up: Tensor) -> tuple[Tensor, Tensor]:
    """`silu(gate) * up` of both side by side, in fp8, and the float32 scale of each row: as :func:`quantize_rows` of
    :func:`silu_mul`."""
    hidden, shape = gate_up.shape[-1] // 2, gate_up.shape[:-1]
    packed, scale = gate_up.new_empty(*shape, hidden, dtype=FP8), gate_up.new_empty(shape, dtype=torch.float32)
    lanes = triton.next_power_of_2(hidden)
    with torch.cuda.device_of(gate_up):
        _silu_mul_fp8[(scale.numel(),)](
            gate_up, packed, scale, hidden, LANES=lanes, num_warps=_warps(lanes), enable_fp_fusion=False
        )
    return packed, scale


def silu_mul(gate_up: Tensor) -> Tensor:
    """`silu(gate) * up` of both side by side, `[..., 2 hidden]`."""
    hidden = gate_up.shape[-1] // 2
    out = gate_up.new_empty(*gate_up.shape[:-1], hidden)
    grid = (triton.cdiv(out.numel(), 1024),)
    with torch.cuda.device_of(gate_up):
        _silu_mul[grid](gate_up, out, hidden, out.numel(), LANES=1024, num_warps=4, enable_fp_fusion=False)
    return out
