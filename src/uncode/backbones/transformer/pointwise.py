"""The pointwise parts of a layer: norms, rotations, gates. Plain torch, or fused on a GPU without gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from ...core.support.triton_support import fuses

Rotation = tuple[Tensor, Tensor]
"""Cosines and sines `[B or 1, 1, T, half a head]`, in float32 or wider."""


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type of norms and rotations: float32, or float64 in a float64 model."""
    return torch.promote_types(dtype, torch.float32)


def add_norm(x: Tensor, delta: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """`x + delta`, and its root mean square norm: computed wide, then scaled in the model's own type.

    On a GPU `delta` may come in parts, `[parts, *]` in float32, whose sum is meant.
    """
    if fuses_here(x):
        from . import pointwise_triton

        return pointwise_triton.add_norm(x, delta, weight, eps)
    x = x + delta
    h = x.to(wide(x.dtype))
    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
    return x, weight * h.to(x.dtype)


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """Rotary positions on `[B, heads, T, d]`: the first half of a head turns with the second."""
    cos, sin = rotation
    a, b = x.to(cos.dtype).chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


@dataclass(frozen=True)
class Kept:
    """A layer's stored keys and values, and where the fresh ones of a forward go."""

    stored: list[Tensor]
    """Keys and values; empty until something is stored, for only then is it known where the layer runs."""
    shape: tuple[int, ...]
    """`(B or more, heads, L + 1, d)`; the last column takes what nobody reads."""
    places: Tensor
    """The columns of the fresh ones: `[T]`, or `[B, T]` where rows differ."""

    def buffers(self, like: Tensor) -> tuple[Tensor, Tensor]:
        if not self.stored:
            self.stored.extend(like.new_zeros(self.shape) for _ in range(2))
        keys, values = self.stored
        return keys, values

    def write(self, keys: Tensor, values: Tensor) -> None:
        """Store fresh ones `[B, heads, T, d]`, rotated, in place."""
        places = self.places.to(keys.device)
        for stored, new in zip(self.buffers(keys), (keys, values), strict=True):
            if places.dim() == 1:
                stored[: len(new)].index_copy_(2, places, new)
            else:
                stored[: len(new)].scatter_(2, places[:, None, :, None].expand_as(new), new)

    def read(self, rows: int) -> tuple[Tensor, Tensor]:
        """What is stored of the first rows."""
        keys, values = (stored[:rows, :, : self.shape[2] - 1] for stored in self.stored)
        return keys, values


def heads_of(
    qkv: Tensor, heads: int, key_heads: int, rotation: Rotation, kept: Kept | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values `[B, heads, T, d]` of all three side by side, the first two rotated.

    Where keys and values are kept, the fresh ones are stored and those of all columns returned.
    """
    split = qkv.view(*qkv.shape[:2], heads + 2 * key_heads, -1)
    turned, values = (part.transpose(1, 2) for part in (split[:, :, :-key_heads], split[:, :, -key_heads:]))
    if fuses_here(qkv):
        from . import pointwise_triton

        pointwise_triton.turn(qkv, heads, key_heads, rotation, kept)
    else:
        turned = rotate(turned, rotation)
        if kept is not None:
            kept.write(turned[:, heads:], values)
    return turned[:, :heads], *((turned[:, heads:], values) if kept is None else kept.read(len(qkv)))


def columns_of(x: Tensor, index: Tensor) -> Tensor:
    """The columns `[B or 1, W]` of `[B, T, d]`, or of `[B, heads, T, d]`."""
    whole = index.to(x.device).view(len(index), *[1] * (x.dim() - 3), -1, 1)
    return x.gather(-2, whole.expand(*x.shape[:-2], -1, x.shape[-1]))


def gated(both: Tensor) -> Tensor:
    """`silu(gate) * up` of gate and up side by side."""
    if fuses_here(both):
        from . import pointwise_triton

        return pointwise_triton.gated(both)
    gate, up = both.chunk(2, -1)
    return functional.silu(gate) * up


def fuses_here(x: Tensor) -> bool:
    """Whether kernels are fused where `x` lies."""
    return x.is_cuda and x.dtype != torch.float64 and not torch.is_grad_enabled() and fuses()
