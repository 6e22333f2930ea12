"""One transformer: RMSNorm, rotate-half RoPE, grouped heads, SwiGLU or a mixture of experts. LLaDA, Dream, SDAR and
LLaDA2 are dialects of it.

It knows nothing of canvases or special tokens. With a KV cache a layer writes its fresh keys and values there and
attends to all that is cached.

The residual add is deferred: a layer returns its stream and what is still to be added to it, and the
next reader adds and normalises in one kernel. A split-K product can then leave its partial sums to that kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...core.errors import require
from .attention import attention, rope_and_cache_qkv
from .experts import Experts
from .kv_cache import LayerCache
from .linear import JoinedMatrix, Linear, Matrix, join
from .pointwise import QKNorm, Rope, add_norm, at_least_float32, gather_columns
from .quantized import QUANTIZED, QuantizedLinear, WeightFormat, format_of
from .shape import Shape

PROJECTIONS = ("q", "k", "v", "out", "gate", "up", "down")
"""A layer's matrices: what `quantize` packs."""


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


class HeadNorm(nn.Module):
    """The weights of the RMSNorm of each head; RoPE applies it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))


class LayerMatrices(NamedTuple):
    """What a layer multiplies with, besides its experts."""

    qkv: Matrix
    out: Matrix
    gate_up: Matrix | None
    """Of the MLP or of the shared expert; None where there is neither."""
    down: Matrix | None


class Layer(nn.Module):
    """One transformer layer: attention, then the MLP or the experts."""

    def __init__(self, shape: Shape, number: int = 0) -> None:
        super().__init__()
        width, bias = shape.width, shape.qkv_bias
        queries, keys = shape.heads * shape.head_width, shape.key_heads * shape.head_width
        self.heads, self.key_heads, self.eps, self.has_qk_norm = shape.heads, shape.key_heads, shape.eps, shape.qk_norm
        self.attention_norm = RMSNorm(width, shape.eps)
        self.q: nn.Linear = Linear(width, queries, bias=bias)
        self.k: nn.Linear = Linear(width, keys, bias=bias)
        self.v: nn.Linear = Linear(width, keys, bias=bias)
        if shape.qk_norm:
            self.q_norm, self.k_norm = HeadNorm(shape.head_width), HeadNorm(shape.head_width)
        self.out: nn.Linear = Linear(queries, width, bias=False)
        self.mlp_norm = RMSNorm(width, shape.eps)
        mixture = shape.mixture_of(number)
        self.experts = None if mixture is None else Experts(width, mixture)
        if mixture is None:
            self.gate: nn.Linear = Linear(width, shape.hidden, bias=False)
            self.up: nn.Linear = Linear(width, shape.hidden, bias=False)
            self.down: nn.Linear = Linear(shape.hidden, width, bias=False)
        self.store_as(Matrix)

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
        qkv, out, gate_up, down = self.matrices
        x, projected = qkv.product_after(self.attention_norm, x, delta)
        q, k, v = rope_and_cache_qkv(projected, self.heads, self.key_heads, rope, cache, self._qk_norm)
        if wanted is not None:
            x, q = gather_columns(x, wanted), gather_columns(q, wanted)
            if mask is not None and mask.shape[2] > 1:
                mask = gather_columns(mask, wanted)
        delta = out.split_k(attention(q, k, v, mask))
        if self.experts is not None:
            x, h = self.mlp_norm(x, delta)
            return x, self.experts(h, None if gate_up is None or down is None else down.product(gate_up.swiglu(h)))
        assert gate_up is not None and down is not None
        x, h = gate_up.swiglu_after(self.mlp_norm, x, delta)
        return x, down.split_k(h)

    @property
    def _qk_norm(self) -> QKNorm | None:
        return QKNorm(self.q_norm.weight, self.k_norm.weight, self.eps) if self.has_qk_norm else None

    def store_as(self, kind: type[Matrix]) -> None:
        """Choose the format of the weights: joined projections (`JoinedMatrix`), separate ones (`Matrix`), another.
        Packed projections stay packed."""
        if isinstance(self.q, QuantizedLinear):
            kind = QUANTIZED.get(kind, kind)
        qkv, mlp = kind(self.q, self.k, self.v), self if self.experts is None else self.experts
        has_mlp = self.experts is None or self.experts.mixture.shared > 0
        both = (kind(mlp.gate, mlp.up), kind(mlp.down)) if has_mlp else (None, None)
        self.matrices = LayerMatrices(qkv, kind(self.out), *both)

    def quantize(self, weights: WeightFormat) -> None:
        """Pack the projections. They are joined afterwards if they were before."""
        kind = type(self.matrices.qkv)
        for name in PROJECTIONS:
            setattr(self, name, QuantizedLinear(getattr(self, name), weights))
        self.store_as(kind)


class Transformer(nn.Module):
    """From tokens to logits. Its parameters are on the meta device until a checkpoint fills them."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        with torch.device("meta"):
            self.embed = Embedding(shape.vocab, shape.width)
            self.layers = nn.ModuleList(Layer(shape, number) for number in range(shape.layers))
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

        `mask` `[B, 1, 1 or T, keys]` is true where a key may be seen.
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

    def store_as(self, kind: type[Matrix]) -> None:
        """Choose the format of the layers' weights; see :meth:`Layer.store_as`."""
        for layer in self._own_layers:
            layer.store_as(kind)

    def fuse(self) -> None:
        """Fewer, larger products: the QKV projections are joined, and gate and up."""
        self.store_as(JoinedMatrix)
        if not self.shape.tied:  # an embedding is read by rows
            join([self.head.weight])

    @property
    def weights(self) -> str | None:
        """The format that the layers' projections are packed in; None where they are not."""
        return next((module.format.name for module in self.modules() if isinstance(module, QuantizedLinear)), None)

    def quantize(self, weights: str) -> None:
        """Pack the layers' projections as fp8, int8 or int4, one matrix after the other. Embedding, norms and head keep
        their dtype. A network on the meta device packs its weights when they are loaded."""
        wanted = format_of(weights)
        require(self.shape.mixture is None, "experts cannot be packed: load this model without `weights=`.")
        require(self.weights is None, f"the network has {self.weights} weights already: load it again for {weights}.")
        for layer in self._own_layers:
            layer.quantize(wanted)
        self.requires_grad_(False)

    def requires_grad_(self, requires_grad: bool = True) -> Transformer:
        require(
            not requires_grad or self.weights is None,
            f"a network with {self.weights} weights cannot be trained: load it without `weights=`.",
        )
        super().requires_grad_(requires_grad)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        for module in self.modules():  # refused before a part is converted
            if isinstance(module, QuantizedLinear):
                module.check_keeps_dtype(fn, self.embed.weight)
                break
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def separate_moved_layers(self) -> None:
        """One product for each projection again, in the layers that were moved or converted since they were fused."""
        for layer in self._own_layers:
            if not all(matrix is None or matrix.is_current for matrix in layer.matrices):
                layer.store_as(Matrix)

    @property
    def _own_layers(self) -> list[Layer]:
        return [layer for layer in self.layers if isinstance(layer, Layer)]


def dtype_of(parameter: str, dtype: torch.dtype) -> torch.dtype:
    """The dtype of a parameter of a network in `dtype`: a router decides in float32 or wider."""
    is_router = parameter.endswith((".router.weight", ".experts.bias"))
    return at_least_float32(dtype) if is_router else dtype
