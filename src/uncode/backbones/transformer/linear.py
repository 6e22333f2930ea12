"""The matrices and the attention of a layer: by torch, or by kernels for few rows on a GPU without gradients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from .pointwise import fuses_here, gated

ROWS = 64
"""Tokens of a forward that are few for a product, and queries of a row for attention; with more, torch's is as fast."""
LARGE = 2**22
"""Numbers of a matrix that take longer to be read than a kernel takes to be started."""
COLUMNS, DEPTH = 128, 256
"""What its columns and its depth must be a multiple of, so that the kernels' tiles divide it."""
WIDE = 2048
"""Width of a model whose attention is worth a kernel of its own; smaller ones wait for launches anyway."""

Joined = tuple[Tensor, Tensor | None]
"""Weights and biases of several linear maps, one below the other."""


def all_of(h: Tensor, joined: Joined | None, linears: Sequence[nn.Linear]) -> Tensor:
    """What several linear maps make of one input, side by side."""
    if torch.is_grad_enabled():  # small matrices, laid side by side at every step: one product forth and back
        bias = None if linears[0].bias is None else torch.cat([linear.bias for linear in linears])
        return functional.linear(h, torch.cat([linear.weight for linear in linears]), bias)
    if joined is not None:
        return _whole(h, *joined)
    return torch.cat([linear(h) for linear in linears], -1)


def _whole(h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`h @ weight.T + bias`."""
    if _few(h, weight):
        from . import linear_triton

        return linear_triton.whole(h, weight, bias)
    return functional.linear(h, weight, bias)


def gated_of(h: Tensor, joined: Joined | None, gate: nn.Linear, up: nn.Linear) -> Tensor:
    """`silu(gate(h)) * up(h)`."""
    if joined is not None and _few(h, joined[0]):
        from . import linear_triton

        return linear_triton.gated(h, joined[0])
    return gated(all_of(h, joined, (gate, up)))


def parts_of(h: Tensor, linear: nn.Linear) -> Tensor:
    """What a linear map without bias makes of `h`; of few rows in float32 parts, `[PARTS, *]`, which
    :func:`~uncode.backbones.transformer.pointwise.add_norm` adds up."""
    if _few(h, linear.weight):
        from . import linear_triton

        return linear_triton.in_parts(h, linear.weight)
    made: Tensor = linear(h)
    return made


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """What queries `[B, heads, T, d]` see of keys and values `[B, key heads, L, d]`, as `[B, T, heads * d]`.

    `mask` `[B, 1, 1, L]` is true where a key may be seen; each row sees one at least.
    """
    if _few_queries(q, k, v):
        from . import linear_triton

        return linear_triton.attend(q, k, v, mask)
    grouped = q.shape[1] != k.shape[1]
    seen = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=grouped)
    return seen.transpose(1, 2).flatten(2)


def _few(h: Tensor, weight: Tensor) -> bool:
    """Whether a product has few rows, and a matrix that kernels made for them divide evenly."""
    width, depth = weight.shape
    divides = weight.numel() >= LARGE and width % COLUMNS == 0 and depth % DEPTH == 0 and weight.is_contiguous()
    beside = weight.device == h.device and weight.dtype == h.dtype  # else the module's own hooks bring them together
    return divides and beside and h.numel() <= ROWS * depth and _measured(h)


def _few_queries(q: Tensor, k: Tensor, v: Tensor) -> bool:
    _, heads, queries, width = q.shape
    large = width in (64, 128) and heads * width >= WIDE
    return large and queries <= ROWS and k.stride() == v.stride() and _measured(q)


def _measured(x: Tensor) -> bool:
    """Whether it is a GPU of the kind on which these kernels were found to pay, and a type they are for."""
    return fuses_here(x) and x.dtype in (torch.bfloat16, torch.float16) and _capability(x.device) == 9


@cache
def _capability(device: torch.device) -> int:
    return torch.cuda.get_device_capability(device)[0]
