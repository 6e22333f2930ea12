"""Rotary position embedding (RoPE), rotate-half: dimension i of a head turns with dimension i + d/2."""

from __future__ import annotations

import torch
from torch import Tensor

Rope = tuple[Tensor, Tensor]
"""Cosines and sines `[B or 1, 1, T, d/2]`, in float32 or wider."""


def rope_of(positions: Tensor, head_width: int, theta: float, dtype: torch.dtype) -> Rope:
    """Cosines and sines of `positions` `[B, T]`, as `[B, T, d/2]`."""
    exponents = torch.arange(0, head_width, 2, device=positions.device, dtype=dtype) / head_width
    angles = positions[..., None].to(dtype) * (1.0 / theta**exponents)
    return angles.cos(), angles.sin()


def apply_rope(x: Tensor, rope: Rope) -> Tensor:
    """Rotate `[B, heads, T, d]` to its positions."""
    cos, sin = rope
    a, b = x.to(cos.dtype).chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)
