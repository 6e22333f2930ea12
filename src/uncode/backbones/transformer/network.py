"""One bidirectional transformer: RMSNorm, rotate-half RoPE, grouped heads, SwiGLU. LLaDA and Dream are dialects of it.

It knows nothing of canvases, caches or special tokens. Where a session keeps keys and values, a layer writes its
fresh ones there and attends to all that is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from ..loading.memory import room
from .linear import Joined, all_of, attention, gated_of, parts_of
from .pointwise import Kept, Rotation, add_norm, columns_of, heads_of


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
    """Without first numbers: they come from a checkpoint, and torch takes seconds to draw them on no device."""

    def reset_parameters(self) -> None: ...


class Embedding(nn.Embedding):
    """Likewise."""

    def reset_parameters(self) -> None: ...


class Norm(nn.Module):
    """Root mean square norm."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.eps = eps

    def forward(self, x: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
        """`x + delta`, and its norm."""
        return add_norm(x, delta, self.weight, self.eps)


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
        self.heads, self.key_heads = shape.heads, shape.key_heads
        self.joined_qkv: Joined | None = None
        self.joined_gates: Joined | None = None
        self.attention_norm = Norm(width, shape.eps)
        self.q = Linear(width, width, bias=bias)
        self.k = Linear(width, keys, bias=bias)
        self.v = Linear(width, keys, bias=bias)
        self.out = Linear(width, width, bias=False)
        self.mlp_norm = Norm(width, shape.eps)
        self.gate = Linear(width, shape.hidden, bias=False)
        self.up = Linear(width, shape.hidden, bias=False)
        self.down = Linear(shape.hidden, width, bias=False)

    def forward(
        self,
        x: Tensor,
        delta: Tensor,
        rotation: Rotation,
        mask: Tensor | None = None,
        kept: Kept | None = None,
        wanted: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The stream `x`, and what is to be added to it: whoever reads it next adds and norms in one go.

        Of the last layer some columns alone are `wanted`: all others are seen by them and go no further.
        """
        x, h = self.attention_norm(x, delta)
        qkv = all_of(h, self.joined_qkv, (self.q, self.k, self.v))
        q, k, v = heads_of(qkv, self.heads, self.key_heads, rotation, kept)
        if wanted is not None:
            x, q = columns_of(x, wanted), columns_of(q, wanted)
        x, h = self.mlp_norm(x, parts_of(attention(q, k, v, mask), self.out))
        return x, parts_of(gated_of(h, self.joined_gates, self.gate, self.up), self.down)

    def join(self) -> None:
        """Lay the matrices that read the same input side by side: one product then takes the place of several.

        The parameters become views of the joined ones, so nothing is held twice.
        """
        self.joined_qkv = _joined((self.q, self.k, self.v))
        self.joined_gates = _joined((self.gate, self.up))
        for alone in (self.out, self.down):
            _lay([alone.weight])

    @property
    def whole(self) -> bool:
        """Whether the matrices are parts of joined ones still: a network that was moved or converted has others."""
        pairs = ((self.joined_qkv, (self.q, self.k, self.v)), (self.joined_gates, (self.gate, self.up)))
        return all(joined is not None and _same_memory(joined[0], part.weight) for joined, of in pairs for part in of)

    def part(self) -> None:
        """One product for each matrix again."""
        self.joined_qkv = self.joined_gates = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy's matrices are apart: its joined ones would be copies of their own."""
        return self.__dict__ | {"joined_qkv": None, "joined_gates": None}


def _same_memory(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def _joined(linears: Sequence[Linear]) -> Joined:
    bias = None if linears[0].bias is None else _lay([linear.bias for linear in linears])
    return _lay([linear.weight for linear in linears]), bias


SMALL = 2**22
"""Numbers of a matrix that is laid out by columns on a CPU."""


def _lay(tensors: list[Tensor]) -> Tensor:
    """Tensors one below the other, and each of them a view of the whole. Each moves on its own: where memory is
    taken when it is written, as on a CPU, no more than one is held twice.

    A CPU multiplies by columns: for few rows it takes half the time when a small matrix lies as it is read.
    """
    first, shape = tensors[0], (sum(map(len, tensors)), *tensors[0].shape[1:])
    matrix = len(shape) == 2 and prod(shape) <= SMALL
    by_columns = matrix and first.device.type == "cpu" and first.dtype == torch.float32
    if len(tensors) == 1 and not by_columns:
        return first
    whole = room(shape[::-1] if by_columns else shape, first.dtype, first.device)
    whole = whole.t() if by_columns else whole
    start = 0
    for tensor in tensors:
        part = whole[start : start + len(tensor)]
        part.copy_(tensor)
        tensor.data = part
        start += len(part)
    return whole


class Transformer(nn.Module):
    """From tokens to a stream, and from that to logits. Its parameters have no memory until they are filled."""

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

    def forward(
        self,
        tokens: Tensor,
        rotation: Rotation,
        mask: Tensor | None = None,
        kept: Sequence[Kept] | None = None,
        wanted: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The stream `[B, T, width]` that comes out of the layers, and what is to be added to it; or `[B, W, width]`
        of the columns that are `wanted`, `[B or 1, W]`.

        `mask` `[B, 1, 1, keys]` is true where a key may be seen.
        """
        delta: Tensor = self.embed(tokens)
        x = torch.zeros_like(delta)
        each: Sequence[Kept | None] = kept or [None] * len(self.blocks)
        last = len(self.blocks) - 1
        for number, (block, own) in enumerate(zip(self.blocks, each, strict=True)):
            x, delta = block(x, delta, rotation, mask, own, wanted if number == last else None)
        return x, delta

    def logits(self, x: Tensor, delta: Tensor) -> Tensor:
        """Of a stream, and what is to be added to it."""
        logits: Tensor = self.head(self.norm(x, delta)[1])
        return logits

    def join(self) -> None:
        """Fewer, larger products; see :meth:`Block.join`."""
        for block in self._layers:
            block.join()
        if not self.shape.tied:  # an embedding is read by rows
            _lay([self.head.weight])

    def part_what_moved(self) -> None:
        """Part the matrices of layers that were moved or converted since they were joined."""
        for block in self._layers:
            if not block.whole:
                block.part()

    @property
    def _layers(self) -> list[Block]:
        return [block for block in self.blocks if isinstance(block, Block)]
