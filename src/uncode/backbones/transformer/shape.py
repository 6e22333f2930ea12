"""The numbers that decide the network: its parameters, its arithmetic, and the memory that its weights take.

No torch: `uncode models` lists the shapes of all releases at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from ...core.errors import require
from .mixture import Mixture

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
    rotary_dim: int | None = None
    """How many numbers of a head RoPE rotates, the first ones, where it is not all."""
    mixture: Mixture | None = None
    """The experts, where layers have them in place of one MLP."""
    causal_context: bool = False
    """Whether tokens before the open block see only what stands before them, and the last of these predicts the first
    of the block."""
    yarn: Yarn | None = None

    @property
    def head_width(self) -> int:
        return self.head_dim or self.width // self.heads

    @property
    def rotary_width(self) -> int:
        return self.rotary_dim or self.head_width

    def mixture_of(self, layer: int) -> Mixture | None:
        """The experts of a layer; None where it has one MLP."""
        return None if self.mixture is None or layer in self.mixture.dense else self.mixture

    @property
    def parameters(self) -> int:
        return int(self.parameters_with(None))

    @property
    def active_parameters(self) -> int:
        """Those that one token meets: all, or the experts that it chooses."""
        return int(self.parameters_with(None if self.mixture is None else self.mixture.active))

    def parameters_with(self, experts: float | None) -> float:
        """All parameters, but of a mixture so many experts in each layer; None counts them all."""
        queries, keys = self.heads * self.head_width, self.key_heads * self.head_width
        bias = queries + 2 * keys if self.qkv_bias else 0
        norms = 2 * self.width + (2 * self.head_width if self.qk_norm else 0)
        attention = 2 * self.width * (queries + keys) + bias + norms
        mixtures = [self.mixture_of(layer) for layer in range(self.layers)]
        mlps = sum(3 * self.width * self.hidden if m is None else m.parameters(self.width, experts) for m in mixtures)
        return self.layers * attention + mlps + self.width + self.vocab * self.width * (1 if self.tied else 2)

    @property
    def activations(self) -> int:
        """Numbers of a token that a layer holds at a time, about."""
        mixture = self.mixture
        inner = 0 if mixture is None else mixture.active * (2 * mixture.hidden + 2 * self.width)
        return 8 * self.width + max(2 * self.hidden, inner)

    @property
    def matrices(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of a layer's projections: q, k, v, out, gate, up, down."""
        queries, keys = self.heads * self.head_width, self.key_heads * self.head_width
        attention = ((queries, self.width), (keys, self.width), (keys, self.width), (self.width, queries))
        return (*attention, (self.hidden, self.width), (self.hidden, self.width), (self.width, self.hidden))

    def weight_bytes(self, itemsize: int, weights: str | None = None) -> int:
        """The memory of the weights: `itemsize` bytes for each, with the projections packed as `weights` says."""
        whole = self.parameters * itemsize
        if self.mixture is not None:  # a router decides in float32 or wider
            routers = sum(self.mixture_of(layer) is not None for layer in range(self.layers))
            whole += routers * self.mixture.experts * (self.width + self.mixture.has_bias) * max(4 - itemsize, 0)
        if weights is None:
            return whole
        require(self.mixture is None, "experts cannot be packed: load this model without `weights=`.")
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
