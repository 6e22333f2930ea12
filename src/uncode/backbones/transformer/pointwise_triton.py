"""The pointwise parts of a layer as Triton kernels, one launch each, rounded where the plain code rounds: a product
and a sum stay two operations.

Imported where a network runs on a GPU without gradients; :mod:`uncode.backbones.transformer.pointwise` chooses.
"""

# mypy: ignore-errors
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .pointwise import Kept, Rotation

SOME = 8
"""Heads that one program rotates."""


@triton.jit
def _add_norm(
    x, delta, weight, total, out, eps, part, WIDTH: tl.constexpr, LANES: tl.constexpr, PARTS: tl.constexpr
):  # fmt: skip
    row, lane = tl.program_id(0).to(tl.int64), tl.arange(0, LANES)
    here = lane < WIDTH
    at = row * WIDTH + lane
    value = tl.load(x + at, mask=here, other=0.0)
    added = tl.load(delta + at, mask=here, other=0.0).to(tl.float32)
    for number in tl.static_range(1, PARTS):
        added += tl.load(delta + number * part + at, mask=here, other=0.0)
    value = (value.to(tl.float32) + added.to(value.dtype).to(tl.float32)).to(value.dtype)
    tl.store(total + at, value, mask=here)
    h = value.to(tl.float32)
    h = h * tl.rsqrt(tl.sum(h * h, 0) / WIDTH + eps)
    scaled = tl.load(weight + lane, mask=here, other=0.0).to(tl.float32) * h.to(value.dtype).to(tl.float32)
    tl.store(out + at, scaled, mask=here)


def add_norm(x: Tensor, delta: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """`x + delta` and its root mean square norm; `delta` may come in parts, `[parts, *]`."""
    x = x.contiguous()
    width, total, out = x.shape[-1], torch.empty_like(x), torch.empty_like(x)
    grid = (x.numel() // width,)
    lanes = triton.next_power_of_2(width)
    warps = min(max(lanes // 512, 1), 16)
    with torch.cuda.device_of(x):  # a kernel starts on the current device, wherever its tensors lie
        _add_norm[grid](
            x, delta.contiguous(), weight, total, out, eps, x.numel(), WIDTH=width, LANES=lanes,
            PARTS=len(delta) if delta.dim() > x.dim() else 1, num_warps=warps, enable_fp_fusion=False,
        )  # fmt: skip
    return total, out


@triton.jit(do_not_specialize=["period", "length"])
def _turn(
    x, row_stride, cos, sin, period, keys, values, places, length, batch_stride, head_stride,
    HEADS: tl.constexpr, KEYS: tl.constexpr, SOME: tl.constexpr, HALF: tl.constexpr, LANES: tl.constexpr,
    KEEPS: tl.constexpr, BY_ROW: tl.constexpr,
):  # fmt: skip
    """Some heads of one token: rotated in place, or written to where keys and values are kept."""
    row = tl.program_id(0).to(tl.int64)
    head, part = tl.program_id(1) * SOME + tl.arange(0, SOME)[:, None], tl.arange(0, LANES)[None]
    inside = part < HALF
    turn = (row % period) * HALF + part
    c, s = tl.load(cos + turn, mask=inside, other=0.0), tl.load(sin + turn, mask=inside, other=0.0)
    at, there = x + row * row_stride + head * (2 * HALF) + part, inside & (head < HEADS + 2 * KEYS)
    a, b = tl.load(at, mask=there, other=0.0), tl.load(at + HALF, mask=there, other=0.0)
    wide_a, wide_b = a.to(tl.float32), b.to(tl.float32)
    turned_a = (wide_a * c - wide_b * s).to(a.dtype)
    turned_b = (wide_b * c + wide_a * s).to(b.dtype)
    own = inside & (head < (HEADS if KEEPS else HEADS + KEYS))
    tl.store(at, turned_a, mask=own)
    tl.store(at + HALF, turned_b, mask=own)
    if KEEPS:
        place = tl.load(places + (row if BY_ROW else row % length))
        to = (row // length) * batch_stride + place * (2 * HALF) + part
        key, value = keys + to + (head - HEADS) * head_stride, values + to + (head - HEADS - KEYS) * head_stride
        is_key, is_value = inside & (head >= HEADS) & (head < HEADS + KEYS), there & (head >= HEADS + KEYS)
        tl.store(key, turned_a, mask=is_key)
        tl.store(key + HALF, turned_b, mask=is_key)
        tl.store(value, a, mask=is_value)
        tl.store(value + HALF, b, mask=is_value)


def turn(x: Tensor, heads: int, key_heads: int, rotation: Rotation, kept: Kept | None) -> None:
    """Rotate queries and keys of `[B, T, heads and twice the key heads]` in place; or the queries alone, where keys
    and values are kept: those are written to their places at once."""
    cos, sin = rotation
    keys, values = (x, x) if kept is None else kept.buffers(x)
    places = x if kept is None else kept.places.to(x.device)
    half = cos.shape[-1]
    grid = (x.shape[0] * x.shape[1], triton.cdiv(heads + (1 if kept is None else 2) * key_heads, SOME))
    with torch.cuda.device_of(x):
        _turn[grid](
            x, x.stride(1), cos, sin, cos.shape[0] * cos.shape[2], keys, values, places, x.shape[1],
            keys.stride(0), keys.stride(1), HEADS=heads, KEYS=key_heads, SOME=SOME, HALF=half,
            LANES=triton.next_power_of_2(half), KEEPS=kept is not None, BY_ROW=places.dim() == 2,
            num_warps=4, enable_fp_fusion=False,
        )  # fmt: skip


@triton.jit
def _gated(both, out, hidden, total, LANES: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = at < total
    row, column = at // hidden, at % hidden
    gate = tl.load(both + row * 2 * hidden + column, mask=there, other=0.0)
    up = tl.load(both + row * 2 * hidden + hidden + column, mask=there, other=0.0).to(tl.float32)
    wide = gate.to(tl.float32)
    opened = (wide / (1.0 + tl.exp(-wide))).to(gate.dtype).to(tl.float32)
    tl.store(out + at, opened * up, mask=there)


def gated(both: Tensor) -> Tensor:
    """`silu(gate) * up` of both side by side, `[..., 2 hidden]`."""
    hidden = both.shape[-1] // 2
    out = both.new_empty(*both.shape[:-1], hidden)
    grid = (triton.cdiv(out.numel(), 1024),)
    with torch.cuda.device_of(both):
        _gated[grid](both, out, hidden, out.numel(), LANES=1024, num_warps=4, enable_fp_fusion=False)
    return out
