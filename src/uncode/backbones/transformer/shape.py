"""The numbers that decide the network: its parameters, its arithmetic, and the memory that its weights take.

No torch: `uncode models` lists the shapes of all releases at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from ...core.errors import require

INT4_GROUP, MIN_INT4_GROUP = 128, 16
"""Numbers of a row that share an int4 scale: the greatest common divisor of the row and 128, and at least 16."""
_SCALE_BYTES = 4
"""A scale of fp8 and int8 in float32; a step and a lowest number of int4 in bfloat16."""


@dataclass(frozen=True)
class Yarn:
    """RoPE for contexts that are `factor` times those of the training, `original` tokens (YaRN, arXiv:2309.00071).

    Slow dimensions turn `factor` times slower, fast ones as before; `fast` and `slow` are the turns in `original`
    tokens between which both are mixed.
    """

    factor: float
    original: int
    fast: float = 32.0
    slow: float = 1.0


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
    head_dim: int | None = None
    """The width of a head, where it is not `width / heads`."""
    qk_norm: bool = False
    """Whether each head of the queries and keys has an RMSNorm before RoPE (Qwen3)."""
    block_length: int | None = None
    """Of a block-causal model: a position sees the blocks of so many tokens up to its own. None: it sees all."""
    blocks_from_answer: bool = False
    """Whether these blocks count from the first generated token, and not from the first of all."""
    causal_context: bool = False
    """Whether tokens before the open block see only what stands before them, and the last of these predicts the first
    of the block."""
    yarn: Yarn | None = None

    @property
    def head_width(self) -> int:
        return self.head_dim or self.width // self.heads

    @property
    def matrices(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of a layer's projections: q, k, v, out, gate, up, down."""
        queries, keys = self.heads * self.head_width, self.key_heads * self.head_width
        attention = ((queries, self.width), (keys, self.width), (keys, self.width), (self.width, queries))
        return (*attention, (self.hidden, self.width), (self.hidden, self.width), (self.width, self.hidden))

    @property
    def parameters(self) -> int:
        bias = (self.heads + 2 * self.key_heads) * self.head_width if self.qkv_bias else 0
        norms = 2 * self.width + (2 * self.head_width if self.qk_norm else 0)
        layer = sum(rows * columns for rows, columns in self.matrices) + bias + norms
        return self.layers * layer + self.width + self.vocab * self.width * (1 if self.tied else 2)

    def weight_bytes(self, itemsize: int, weights: str | None = None) -> int:
        """The memory of the weights: `itemsize` bytes for each, with the projections packed as `weights` says."""
        whole = self.parameters * itemsize
        if weights is None:
            return whole
        packed = sum(rows * (packed_bytes(columns, weights) - columns * itemsize) for rows, columns in self.matrices)
        return whole + self.layers * packed


def packed_bytes(columns: int, weights: str) -> int:
    """The memory of a row of a packed matrix, with its scales."""
    if weights != "int4":
        return columns + _SCALE_BYTES
    return columns // 2 + columns // int4_group(columns) * _SCALE_BYTES


def int4_group(columns: int) -> int:
    """Numbers of a row that share a scale."""
    group = gcd(columns, INT4_GROUP)
    require(
        group >= MIN_INT4_GROUP,
        f"int4 packs rows of a multiple of {MIN_INT4_GROUP} numbers, and this model has rows of {columns}: take int8.",
    )
    return group
