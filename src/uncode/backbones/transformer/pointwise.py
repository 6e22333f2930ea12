"""The pointwise parts of a layer: residual add with RMSNorm, rotary position embedding (RoPE), SwiGLU's product,
gathering columns.

Plain torch, or a Triton kernel on a GPU without gradients.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ...core.support.triton_support import use_triton
from .shape import Yarn


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """The dtype of norms and RoPE: float32, or float64 in a float64 model."""
    return torch.promote_types(dtype, torch.float32)


def add_norm(x: Tensor, delta: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """`x + delta`, and its RMSNorm: computed in float32, then scaled in the model's own dtype.

    On a GPU `delta` may be the partial sums of a split-K product, `[SPLIT_K, *]` in float32.
    """
    if use_triton(x):
        from .kernels import pointwise_triton

        return pointwise_triton.add_norm(x, delta, weight, eps)
    x = x + delta
    h = x.to(at_least_float32(x.dtype))
    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
    return x, weight * h.to(x.dtype)


class QKNorm(NamedTuple):
    """The RMSNorm of each head of the queries and keys, before RoPE."""

    queries: Tensor
    """Its weights `[d]`."""
    keys: Tensor
    eps: float

    def __call__(self, x: Tensor, heads: int) -> Tensor:
        """`x` `[B, heads + key heads, T, d]`, normed: computed in float32, then scaled in the model's own dtype."""
        wide = x.to(at_least_float32(x.dtype))
        normed = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype)
        return torch.cat((self.queries * normed[:, :heads], self.keys * normed[:, heads:]), 1)


Rope = tuple[Tensor, Tensor]
"""Cosines and sines `[B or 1, 1, T, r/2]`, in float32 or wider. RoPE rotates the first r numbers of a head: all d, or
fewer (partial RoPE)."""


def rope_of(positions: Tensor, rotary_width: int, theta: float, dtype: torch.dtype, yarn: Yarn | None = None) -> Rope:
    """Cosines and sines of `positions` `[B, T]`, as `[B, T, r/2]`."""
    exponents = torch.arange(0, rotary_width, 2, device=positions.device, dtype=dtype) / rotary_width
    speeds = 1.0 / theta**exponents
    if yarn is not None:
        speeds = _slowed(speeds, yarn, rotary_width, theta)
    angles = positions[..., None].to(dtype) * speeds
    return angles.cos(), angles.sin()


def _slowed(speeds: Tensor, yarn: Yarn, head_width: int, theta: float) -> Tensor:
    """The speeds of RoPE's dimensions, as YaRN scales them."""

    def dimension(turns: float) -> float:
        """The one that turns so often in the original context."""
        return head_width * math.log(yarn.original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    first, last = max(math.floor(dimension(yarn.fast)), 0), min(math.ceil(dimension(yarn.slow)), head_width - 1)
    at = torch.arange(len(speeds), device=speeds.device, dtype=speeds.dtype)
    slow = ((at - first) / max(last - first, 0.001)).clamp(0, 1)
    return speeds * (1 - slow) + speeds / yarn.factor * slow


def apply_rope(x: Tensor, rope: Rope) -> Tensor:
    """Rotate `[B, heads, T, d]` to its positions: dimension i of a head turns with dimension i + r/2, where i is less
    than r/2. Those from r on stay as they are."""
    cos, sin = rope
    half = cos.shape[-1]
    a, b = x[..., : 2 * half].to(cos.dtype).chunk(2, -1)
    rotated = torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)
    return rotated if 2 * half == x.shape[-1] else torch.cat((rotated, x[..., 2 * half :]), -1)


def gather_columns(x: Tensor, index: Tensor) -> Tensor:
    """The columns `[B or 1, W]` of `[B, T, d]`, or of `[B, heads, T, d]`."""
    whole = index.to(x.device).view(len(index), *[1] * (x.dim() - 3), -1, 1)
    return x.gather(-2, whole.expand(*x.shape[:-2], -1, x.shape[-1]))


def silu_mul(gate_up: Tensor) -> Tensor:
    """`silu(gate) * up` of the fused projection `[..., 2 hidden]`."""
    if use_triton(gate_up):
        from .kernels import pointwise_triton

        return pointwise_triton.silu_mul(gate_up)
    gate, up = gate_up.chunk(2, -1)
    return functional.silu(gate) * up
