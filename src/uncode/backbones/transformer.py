"""One bidirectional transformer: RMSNorm, rotate-half RoPE, grouped heads, SwiGLU. LLaDA and Dream are dialects of it.

It knows nothing of canvases, caches or special tokens. Keys and values pass through an `exchange`
on their way to the attention: a session stores them there and hands out what is to be attended to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

Rotation = tuple[Tensor, Tensor]
"""Cosines and sines `[B or 1, 1, T, half a head]`, in float32 or wider."""

Exchange = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Takes a layer's fresh keys and values `[B, heads, T, d]`, returns those the layer attends to."""


@dataclass(frozen=True)
class Shape:
    """All that decides the network's parameters and arithmetic."""

    width: int
    layers: int
    heads: int
    key_heads: int
    hidden: int
    vocab: int
    theta: float
    eps: float
    context: int
    """Tokens the model was made for; longer canvases run, untrained."""
    qkv_bias: bool = False
    tied: bool = False

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def parameters(self) -> int:
        keys = self.key_heads * self.head_width
        bias = self.width + 2 * keys if self.qkv_bias else 0
        layer = 2 * self.width * (self.width + keys) + bias + 3 * self.width * self.hidden + 2 * self.width
        return self.layers * layer + self.width + self.vocab * self.width * (1 if self.tied else 2)


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type of norms and rotations: float32, or float64 in a float64 model."""
    return torch.promote_types(dtype, torch.float32)


class Linear(nn.Linear):
    """Without first numbers: they come from a checkpoint, and torch takes seconds to draw them on no device."""

    def reset_parameters(self) -> None: ...


class Embedding(nn.Embedding):
    """Likewise."""

    def reset_parameters(self) -> None: ...


class Norm(nn.Module):
    """Root mean square norm: computed wide, then scaled in the model's own type."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        h = x.to(wide(x.dtype))
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * h.to(x.dtype)


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """Rotary positions on `[B, heads, T, d]`: the first half of a head turns with the second."""
    cos, sin = rotation
    a, b = x.to(cos.dtype).chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


def angles(positions: Tensor, shape: Shape, dtype: torch.dtype) -> Rotation:
    """Cosines and sines of `positions` `[B, T]`, as `[B, T, half a head]`."""
    half = torch.arange(0, shape.head_width, 2, device=positions.device, dtype=dtype) / shape.head_width
    turns = positions[..., None].to(dtype) * (1.0 / shape.theta**half)
    return turns.cos(), turns.sin()


class Block(nn.Module):
    """One layer."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width, keys, bias = shape.width, shape.key_heads * shape.head_width, shape.qkv_bias
        self.head_width, self.grouped = shape.head_width, shape.heads != shape.key_heads
        self.attention_norm = Norm(width, shape.eps)
        self.q = Linear(width, width, bias=bias)
        self.k = Linear(width, keys, bias=bias)
        self.v = Linear(width, keys, bias=bias)
        self.out = Linear(width, width, bias=False)
        self.mlp_norm = Norm(width, shape.eps)
        self.gate = Linear(width, shape.hidden, bias=False)
        self.up = Linear(width, shape.hidden, bias=False)
        self.down = Linear(shape.hidden, width, bias=False)

    def forward(self, x: Tensor, rotation: Rotation, mask: Tensor | None, exchange: Exchange) -> Tensor:
        h = self.attention_norm(x)
        q, k, v = (self._heads(project(h)) for project in (self.q, self.k, self.v))
        k, v = exchange(rotate(k, rotation), v)
        seen = functional.scaled_dot_product_attention(
            rotate(q, rotation), k, v, attn_mask=mask, enable_gqa=self.grouped
        )
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        h = self.mlp_norm(x)
        out: Tensor = x + self.down(functional.silu(self.gate(h)) * self.up(h))
        return out

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], -1, self.head_width).transpose(1, 2)


class Transformer(nn.Module):
    """Hidden states of tokens, and logits of hidden states. Its parameters have no memory until they are filled."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        with torch.device("meta"):
            self.embed = Embedding(shape.vocab, shape.width)
            self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
            self.norm = Norm(shape.width, shape.eps)
            self.head = Linear(shape.width, shape.vocab, bias=False)
        if shape.tied:
            self.head.weight = self.embed.weight
        self.requires_grad_(False)

    def forward(self, tokens: Tensor, rotation: Rotation, mask: Tensor | None, exchanges: Sequence[Exchange]) -> Tensor:
        """Hidden states `[B, T, width]`; `mask` `[B, 1, 1, keys]` is true where a key may be seen."""
        x: Tensor = self.embed(tokens)
        for block, exchange in zip(self.blocks, exchanges, strict=True):
            x = block(x, rotation, mask, exchange)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.head(self.norm(hidden))
        return logits
