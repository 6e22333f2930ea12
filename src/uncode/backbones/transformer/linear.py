"""Matrix products of a layer: by torch, or by Triton kernels where few tokens meet a large matrix on a GPU.

With few tokens a product is limited by reading its weights. The kernels of :mod:`.linear_triton` read them at the
memory's speed; torch's do not for all shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...core.support.triton_support import use_triton
from .pointwise import silu_mul

MAX_SKINNY_TOKENS = 64
"""Tokens of a forward (queries of a row, for attention) up to which the kernels are faster than torch's."""
MIN_WEIGHTS = 2**22
"""Numbers of a matrix that take longer to be read than a kernel takes to be launched."""
N_MULTIPLE, K_MULTIPLE = 128, 256
"""What a matrix's rows and columns must be a multiple of, so that the kernels' tiles divide it."""
CAPABILITY = 9
"""Compute capability on which the kernels were measured to pay (Hopper)."""

Fused = tuple[Tensor, Tensor | None]
"""Weights and biases of several linear maps, one below the other."""


def fused_linear(h: Tensor, fused: Fused | None, linears: Sequence[nn.Linear]) -> Tensor:
    """Several linear maps of one input, their outputs side by side."""
    if torch.is_grad_enabled():  # training: small matrices, fused at every step for one product forth and back
        bias = None if linears[0].bias is None else torch.cat([linear.bias for linear in linears])
        return functional.linear(h, torch.cat([linear.weight for linear in linears]), bias)
    if fused is not None:
        return _linear(h, *fused)
    return torch.cat([linear(h) for linear in linears], -1)


def _linear(h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`h @ weight.T + bias`."""
    if is_skinny(h, weight):
        from . import linear_triton

        return linear_triton.linear(h, weight, bias)
    return functional.linear(h, weight, bias)


def swiglu(h: Tensor, fused: Fused | None, gate: nn.Linear, up: nn.Linear) -> Tensor:
    """`silu(gate(h)) * up(h)`."""
    if fused is not None and is_skinny(h, fused[0]):
        from . import linear_triton

        return linear_triton.swiglu(h, fused[0])
    return silu_mul(fused_linear(h, fused, (gate, up)))


def split_k_linear(h: Tensor, linear: nn.Linear) -> Tensor:
    """A linear map without bias. A skinny product is split along K: float32 partial sums `[SPLIT_K, *]`, which
    :func:`~uncode.backbones.transformer.pointwise.add_norm` adds up while it reads them anyway."""
    if is_skinny(h, linear.weight):
        from . import linear_triton

        return linear_triton.split_k(h, linear.weight)
    made: Tensor = linear(h)
    return made


def is_skinny(h: Tensor, weight: Tensor) -> bool:
    """Whether few tokens meet a large matrix that the kernels' tiles divide, on a GPU where the kernels pay."""
    n, k = weight.shape
    divides = weight.numel() >= MIN_WEIGHTS and n % N_MULTIPLE == 0 and k % K_MULTIPLE == 0 and weight.is_contiguous()
    beside = weight.device == h.device and weight.dtype == h.dtype  # else accelerate's hooks move them to one device
    return divides and beside and h.numel() <= MAX_SKINNY_TOKENS * k and pays_on(h)


def pays_on(x: Tensor) -> bool:
    """Whether `x` is on a GPU, and of a dtype, for which our products and our attention were measured to be faster."""
    return use_triton(x) and x.dtype in (torch.bfloat16, torch.float16) and _capability(x.device) == CAPABILITY


@cache
def _capability(device: torch.device) -> int:
    return torch.cuda.get_device_capability(device)[0]
