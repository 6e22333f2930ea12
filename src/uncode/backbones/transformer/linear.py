"""The matrices of a layer, and their products: by torch, or by Triton kernels where few tokens meet a large matrix on
a GPU.

With few tokens a product is limited by reading its weights. The kernels of :mod:`.kernels.linear_triton` read them at
the memory's speed; torch's do not for all shapes.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...core.support.allocate import empty_tensor
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

MAX_TRANSPOSED = 2**22
"""Numbers of a matrix up to which a CPU stores it transposed."""


Activations = Any
"""What one product hands to the next: a tensor, or what a format of the weights has made of it."""


class Linear(nn.Linear):
    """Without initial values: they come from a checkpoint, and torch takes seconds to draw them."""

    def reset_parameters(self) -> None: ...


class Norm(Protocol):
    """The norm of a residual stream before a product."""

    @property
    def weight(self) -> Tensor: ...
    @property
    def eps(self) -> float: ...
    def __call__(self, x: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
        """`x + delta`, and its norm."""


class Matrix:
    """Linear maps of one input, in the format of the checkpoint: one product for each map.

    A layer computes with its matrices alone; the modules beside them load, move and train the weights. A subclass is
    another format: it takes the modules' weights when it is made, and has its own products.
    """

    def __init__(self, *linears: nn.Linear) -> None:
        self.linears = linears

    @property
    def is_current(self) -> bool:
        """Whether it still computes with the weights of the modules."""
        return True

    def product(self, h: Tensor) -> Tensor:
        """The outputs of the maps, side by side."""
        if torch.is_grad_enabled():  # training: small matrices, joined at every step for one product forth and back
            bias = None if self.linears[0].bias is None else torch.cat([linear.bias for linear in self.linears])
            return functional.linear(h, torch.cat([linear.weight for linear in self.linears]), bias)
        return torch.cat([linear(h) for linear in self.linears], -1)

    def swiglu(self, h: Tensor) -> Activations:
        """`silu(gate(h)) * up(h)`, of the maps gate and up."""
        return silu_mul(self.product(h))

    def product_after(self, norm: Norm, x: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
        """`x + delta`, and the product of its norm. A format may fuse the norm with what it does to activations."""
        x, h = norm(x, delta)
        return x, self.product(h)

    def swiglu_after(self, norm: Norm, x: Tensor, delta: Tensor) -> tuple[Tensor, Activations]:
        """`x + delta`, and SwiGLU of its norm."""
        x, h = norm(x, delta)
        return x, self.swiglu(h)

    def split_k(self, h: Activations) -> Tensor:
        """The output of a single map without bias. A skinny product is split along K: float32 partial sums
        `[SPLIT_K, *]`, which :func:`~uncode.backbones.transformer.pointwise.add_norm` adds up while it reads them."""
        (linear,) = self.linears
        if is_skinny(h, linear.weight):
            from .kernels import linear_triton

            return linear_triton.split_k(h, linear.weight)
        output: Tensor = linear(h)
        return output


class JoinedMatrix(Matrix):
    """The maps one below the other in one matrix: one product takes the place of several.

    The modules' parameters become views of it, so nothing is held twice. Moving or converting a network copies its
    parameters; they are then no views any more, and the matrix is not current.
    """

    def __init__(self, *linears: nn.Linear) -> None:
        super().__init__(*linears)
        self.weight = join([linear.weight for linear in linears])
        self.bias = None if linears[0].bias is None else join([linear.bias for linear in linears])

    def __reduce__(self) -> tuple[type[Matrix], tuple[nn.Linear, ...]]:
        """A copy is not joined: its parameters would be no views of its copied matrix."""
        return Matrix, self.linears

    @property
    def is_current(self) -> bool:
        parts = torch.split(self.weight, [len(linear.weight) for linear in self.linears])
        pairs = [(linear.weight, part) for linear, part in zip(self.linears, parts, strict=True)]
        return all(weight.device == part.device and weight.is_set_to(part) for weight, part in pairs)

    def product(self, h: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return super().product(h)
        if is_skinny(h, self.weight):
            from .kernels import linear_triton

            return linear_triton.linear(h, self.weight, self.bias)
        return functional.linear(h, self.weight, self.bias)

    def swiglu(self, h: Tensor) -> Activations:
        if is_skinny(h, self.weight):
            from .kernels import linear_triton

            return linear_triton.swiglu(h, self.weight)
        return super().swiglu(h)


def join(tensors: list[Tensor]) -> Tensor:
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


def is_skinny(h: Tensor, weight: Tensor) -> bool:
    """Whether few tokens meet a large matrix that the kernels' tiles divide, on a GPU where the kernels pay."""
    n, k = weight.shape
    divides = weight.numel() >= MIN_WEIGHTS and n % N_MULTIPLE == 0 and k % K_MULTIPLE == 0 and weight.is_contiguous()
    beside = weight.device == h.device and weight.dtype == h.dtype  # else accelerate's hooks move them to one device
    return divides and beside and h.numel() <= MAX_SKINNY_TOKENS * k and pays_on(h)


def pays_on(x: Tensor, dtype: torch.dtype | None = None) -> bool:
    """Whether `x` is on a GPU, and of a dtype, for which our products and our attention were measured to be faster.
    `dtype` is given where `x` is quantised."""
    return (
        use_triton(x)
        and (dtype or x.dtype) in (torch.bfloat16, torch.float16)
        and capability(x.device)[0] == CAPABILITY
    )


@cache
def capability(device: torch.device) -> tuple[int, int]:
    """The compute capability of a GPU, (9, 0) for Hopper."""
    return torch.cuda.get_device_capability(device)
