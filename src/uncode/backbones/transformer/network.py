"""One bidirectional transformer: RMSNorm, rotate-half RoPE, grouped heads, SwiGLU. LLaDA and Dream are dialects of it.

It knows nothing of canvases or special tokens. With a KV cache a layer writes its fresh keys and values there and
attends to all that is cached.

The residual add is deferred: a layer returns its stream and what is still to be added to it, and the
next reader adds and normalises in one kernel. A split-K product can then leave its partial sums to that kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from ...core.support.allocate import empty_tensor
from .attention import attention, rope_and_cache_qkv
from .kv_cache import LayerCache
from .linear import Fused, fused_linear, split_k_linear, swiglu
from .pointwise import add_norm, gather_columns
from .rope import Rope


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


class Linear(nn.Linear):
    """Without initial values: they come from a checkpoint, and torch takes seconds to draw them."""

    def reset_parameters(self) -> None: ...


class Embedding(nn.Embedding):
    """Without initial values, as :class:`Linear`."""

    def reset_parameters(self) -> None: ...


class RMSNorm(nn.Module):
    """The norm of a residual stream, fused with the add before it."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.eps = eps

    def forward(self, x: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
        """`x + delta`, and its RMSNorm."""
        return add_norm(x, delta, self.weight, self.eps)


class Layer(nn.Module):
    """One transformer layer: attention, then the MLP."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width, keys, bias = shape.width, shape.key_heads * shape.head_width, shape.qkv_bias
        self.heads, self.key_heads = shape.heads, shape.key_heads
        self.fused_qkv: Fused | None = None
        self.fused_gate_up: Fused | None = None
        self.attention_norm = RMSNorm(width, shape.eps)
        self.q = Linear(width, width, bias=bias)
        self.k = Linear(width, keys, bias=bias)
        self.v = Linear(width, keys, bias=bias)
        self.out = Linear(width, width, bias=False)
        self.mlp_norm = RMSNorm(width, shape.eps)
        self.gate = Linear(width, shape.hidden, bias=False)
        self.up = Linear(width, shape.hidden, bias=False)
        self.down = Linear(shape.hidden, width, bias=False)

    def forward(
        self,
        x: Tensor,
        delta: Tensor,
        rope: Rope,
        mask: Tensor | None = None,
        cache: LayerCache | None = None,
        wanted: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The stream `x`, and what is still to be added to it.

        In the last layer `wanted` are the columns whose logits are asked for. All columns are keys and values for them,
        but only they go through the MLP.
        """
        x, h = self.attention_norm(x, delta)
        qkv = fused_linear(h, self.fused_qkv, (self.q, self.k, self.v))
        q, k, v = rope_and_cache_qkv(qkv, self.heads, self.key_heads, rope, cache)
        if wanted is not None:
            x, q = gather_columns(x, wanted), gather_columns(q, wanted)
        x, h = self.mlp_norm(x, split_k_linear(attention(q, k, v, mask), self.out))
        return x, split_k_linear(swiglu(h, self.fused_gate_up, self.gate, self.up), self.down)

    def fuse(self) -> None:
        """Join the QKV projections, and gate and up: one product takes the place of several.

        The parameters become views of the fused matrices, so nothing is held twice.
        """
        self.fused_qkv = _fused((self.q, self.k, self.v))
        self.fused_gate_up = _fused((self.gate, self.up))
        for alone in (self.out, self.down):
            _stack([alone.weight])

    @property
    def is_fused(self) -> bool:
        """Whether the parameters are still views of the fused matrices; moving or converting a network copies them."""
        pairs = ((self.fused_qkv, (self.q, self.k, self.v)), (self.fused_gate_up, (self.gate, self.up)))
        return all(fused is not None and _same_memory(fused[0], part.weight) for fused, of in pairs for part in of)

    def unfuse(self) -> None:
        """One product for each matrix again."""
        self.fused_qkv = self.fused_gate_up = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy is not fused: its parameters would be no views of its copied fused matrices."""
        return self.__dict__ | {"fused_qkv": None, "fused_gate_up": None}


def _same_memory(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def _fused(linears: Sequence[Linear]) -> Fused:
    bias = None if linears[0].bias is None else _stack([linear.bias for linear in linears])
    return _stack([linear.weight for linear in linears]), bias


MAX_TRANSPOSED = 2**22
"""Numbers of a matrix up to which a CPU stores it transposed."""


def _stack(tensors: list[Tensor]) -> Tensor:
    """Stack tensors along the first axis, and make each of them a view of the result. They move one by one: where
    memory is taken when it is written, as on a CPU, at most one is held twice.

    On a CPU a small matrix is stored transposed: with few rows a product then takes half the time.
    """
    first, shape = tensors[0], (sum(map(len, tensors)), *tensors[0].shape[1:])
    small = len(shape) == 2 and prod(shape) <= MAX_TRANSPOSED
    transposed = small and first.device.type == "cpu" and first.dtype == torch.float32
    if len(tensors) == 1 and not transposed:
        return first
    whole = empty_tensor(shape[::-1] if transposed else shape, first.dtype, first.device)
    whole = whole.t() if transposed else whole
    start = 0
    for tensor in tensors:
        part = whole[start : start + len(tensor)]
        part.copy_(tensor)
        tensor.data = part
        start += len(part)
    return whole


class Transformer(nn.Module):
    """From tokens to logits. Its parameters are on the meta device until a checkpoint fills them."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        with torch.device("meta"):
            self.embed = Embedding(shape.vocab, shape.width)
            self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
            self.norm = RMSNorm(shape.width, shape.eps)
            self.head = Linear(shape.width, shape.vocab, bias=False)
        if shape.tied:
            self.head.weight = self.embed.weight
        self.requires_grad_(False)

    def forward(
        self,
        tokens: Tensor,
        rope: Rope,
        mask: Tensor | None = None,
        cache: Sequence[LayerCache] | None = None,
        wanted: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The stream `[B, T, width]` after the last layer, and what is still to be added to it; `[B, W, width]` where
        only the columns `wanted` `[B or 1, W]` are asked for.

        `mask` `[B, 1, 1, keys]` is true where a key may be seen.
        """
        delta: Tensor = self.embed(tokens)
        x = torch.zeros_like(delta)
        caches: Sequence[LayerCache | None] = cache or [None] * len(self.layers)
        last = len(self.layers) - 1
        for number, (layer, own) in enumerate(zip(self.layers, caches, strict=True)):
            x, delta = layer(x, delta, rope, mask, own, wanted if number == last else None)
        return x, delta

    def logits(self, x: Tensor, delta: Tensor) -> Tensor:
        """The logits of a stream and what is still to be added to it."""
        logits: Tensor = self.head(self.norm(x, delta)[1])
        return logits

    def fuse(self) -> None:
        """Fewer, larger products; see :meth:`Layer.fuse`."""
        for layer in self._own_layers:
            layer.fuse()
        if not self.shape.tied:  # an embedding is read by rows
            _stack([self.head.weight])

    def unfuse_moved_layers(self) -> None:
        """Unjoin the layers that were moved or converted since they were fused."""
        for layer in self._own_layers:
            if not layer.is_fused:
                layer.unfuse()

    @property
    def _own_layers(self) -> list[Layer]:
        return [layer for layer in self.layers if isinstance(layer, Layer)]
