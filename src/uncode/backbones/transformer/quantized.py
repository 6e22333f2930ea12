"""Weights in fewer bits: fp8, int8 and int4.

A format packs a matrix `[n, k]` row by row: numbers of 8 or 4 bits, and scales beside them. So matrices are joined by
stacking what is packed. int8 and int4 are formats of the weights alone: a product widens them to the activations'
dtype. fp8 quantises the activations too, row by row, because tensor cores multiply fp8 twice as fast as bfloat16.

The plain code here says what is computed. The kernels of :mod:`.kernels.quantized_triton` and `torch._scaled_mm`
compute the same where they are faster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...core.errors import require, shown, suggest
from ...core.support.allocate import empty_tensor
from ...core.support.triton_support import use_triton
from .linear import MIN_WEIGHTS, N_MULTIPLE, Activations, JoinedMatrix, Matrix, Norm, capability, join, pays_on
from .pointwise import at_least_float32, silu_mul
from .shape import INT4_GROUP, int4_group

FP8 = torch.float8_e4m3fn
FP8_MAX = 448.0
"""The largest number in e4m3."""
INT8_MAX = 127.0
TINY = 1e-30
"""Stands for the largest number of a row of zeros."""
FP8_CAPABILITY = (8, 9)
"""Compute capability from which tensor cores multiply fp8."""
SCALED_MULTIPLE = 16
"""What `torch._scaled_mm` demands of both sides of a matrix."""
MAX_SKINNY_TOKENS, MAX_SPLIT_K_TOKENS = 64, 128
"""Tokens of a forward up to which the kernels are faster than `torch._scaled_mm`, whole and split along K."""
K_MULTIPLE = 512
"""What a matrix's columns must be a multiple of, so that the kernels' tiles divide it."""
INT4_MAX = 15.0
CPU_BLOCK, GPU_BLOCK, GPU_PACKED_BLOCK = 2**18, 2**25, 2**22
"""Numbers of a matrix that are widened or packed at a time. On a CPU they are so few that they stay in the core's
cache, and that what is freed leaves no large gaps in the heap."""


class WeightFormat(ABC):
    """How matrices are packed and multiplied. The plain product widens the weights, some rows at a time."""

    name: str

    @abstractmethod
    def empty(self, rows: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Memory for the packed numbers and the scales of a matrix."""

    @abstractmethod
    def pack_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Rows in float32 or wider as packed numbers and their scales."""

    @abstractmethod
    def unpack_rows(self, packed: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
        """What packed rows stand for."""

    def pack(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """A matrix as packed numbers and scales. Only some rows are held in float32 at a time."""
        length, width = weight.shape
        packed, scale = self.empty(length, width, weight.device)
        step = _block(weight, GPU_PACKED_BLOCK)
        for at in () if weight.is_meta else range(0, length, step):
            rows = weight[at : at + step]
            packed[at : at + step], scale[at : at + step] = self.pack_rows(rows.to(at_least_float32(rows.dtype)))
        return packed, scale

    def linear(self, h: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
        """`h @ weight.T + bias`, in the dtype of `h`."""
        step, parts = _block(weight), []
        for at in range(0, len(weight), step):
            part = slice(at, at + step)
            parts.append(self.multiply(h, weight[part], scale[part], None if bias is None else bias[part]))
        return parts[0] if len(parts) == 1 else torch.cat(parts, -1)

    def multiply(self, h: Tensor, packed: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
        """The product with some rows."""
        return functional.linear(h, self.unpack_rows(packed, scale, h.dtype), bias)

    def swiglu(self, h: Tensor, weight: Tensor, scale: Tensor) -> Activations:
        """`silu(gate) * up` of `h`, by both matrices one below the other."""
        return silu_mul(self.linear(h, weight, scale))

    def split_k(self, h: Activations, weight: Tensor, scale: Tensor) -> Tensor:
        """The product, or the float32 partial sums of one that is split along K; see :meth:`Matrix.split_k`."""
        return self.linear(h, weight, scale)

    def linear_after(
        self, norm: Norm, x: Tensor, delta: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """`x + delta`, and the product of its norm."""
        x, h = norm(x, delta)
        return x, self.linear(h, weight, scale, bias)

    def swiglu_after(
        self, norm: Norm, x: Tensor, delta: Tensor, weight: Tensor, scale: Tensor
    ) -> tuple[Tensor, Activations]:
        """`x + delta`, and SwiGLU of its norm."""
        x, h = norm(x, delta)
        return x, self.swiglu(h, weight, scale)


class PackedRows(NamedTuple):
    """Activations in fp8."""

    numbers: Tensor
    scale: Tensor
    """Of each row, `[*]`, in float32."""
    dtype: torch.dtype
    """That they had, and that their product will have."""


class Fp8(WeightFormat):
    """e4m3 with a float32 scale for each row of the weights and of the activations. Products are summed in float32,
    multiplied by both scales, and rounded to the activations' dtype after the bias was added."""

    name = "fp8"

    def empty(self, rows: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
        return empty_tensor((rows, width), FP8, device), empty_tensor((rows,), torch.float32, device)

    def pack_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return _fp8_rows(rows)

    def unpack_rows(self, packed: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
        return (_widen_fp8(packed) * scale[:, None]).to(dtype)

    def linear(self, h: Tensor | PackedRows, weight: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
        rows = quantize_rows(h)
        if is_skinny(rows.numbers, weight, rows.dtype):
            from .kernels import quantized_triton

            output: Tensor = quantized_triton.linear(rows.numbers, rows.scale, weight, scale, bias, rows.dtype)
            return output
        product = _scaled_product if _may_scale(rows, weight) else _plain_product
        return product(rows, weight, scale, bias)

    def swiglu(self, h: Tensor | PackedRows, weight: Tensor, scale: Tensor) -> Activations:
        rows = quantize_rows(h)
        if not is_skinny(rows.numbers, weight, rows.dtype):
            return _silu_mul_rows(self.linear(rows, weight, scale))
        from .kernels import quantized_triton

        output: Tensor = quantized_triton.swiglu(rows.numbers, rows.scale, weight, scale, rows.dtype)
        return output

    def split_k(self, h: Tensor | PackedRows, weight: Tensor, scale: Tensor) -> Tensor:
        numbers, own, dtype = rows = quantize_rows(h)
        if not is_skinny(numbers, weight, dtype, MAX_SPLIT_K_TOKENS):
            return self.linear(rows, weight, scale)
        from .kernels import quantized_triton

        output: Tensor = quantized_triton.split_k(numbers, own, weight, scale)
        return output

    def linear_after(
        self, norm: Norm, x: Tensor, delta: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        x, rows = _quantized_norm(norm, x, delta)
        return x, self.linear(rows, weight, scale, bias)

    def swiglu_after(
        self, norm: Norm, x: Tensor, delta: Tensor, weight: Tensor, scale: Tensor
    ) -> tuple[Tensor, Activations]:
        x, rows = _quantized_norm(norm, x, delta)
        return x, self.swiglu(rows, weight, scale)


class Int8(WeightFormat):
    """Whole numbers from -127 to 127 with a float32 scale for each row."""

    name = "int8"

    def empty(self, rows: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
        return empty_tensor((rows, width), torch.int8, device), empty_tensor((rows,), torch.float32, device)

    def pack_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        scale = rows.abs().amax(-1).clamp(min=TINY) / INT8_MAX
        return (rows / scale[:, None]).round().to(torch.int8), scale.float()

    def unpack_rows(self, packed: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
        return (packed * scale[:, None]).to(dtype)

    def multiply(self, h: Tensor, packed: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
        """The output is scaled, not the matrix: a CPU then takes half the time. Sums may be too large for float16."""
        if h.dtype == torch.float16:
            return super().multiply(h, packed, scale, bias)
        output = functional.linear(h, packed.to(h.dtype)) * scale
        return (output if bias is None else output + bias).to(h.dtype)


class Int4(WeightFormat):
    """Whole numbers from 0 to 15, two to a byte, in groups along K. A byte has one of a group's first half and one of
    its second. A group has its step and its lowest number, in bfloat16: with a lowest number of its own the error is
    4 to 16 % smaller than with a range around 0 (`tiny`)."""

    name = "int4"

    def empty(self, rows: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
        groups = width // int4_group(width)
        scale = empty_tensor((rows, groups, 2), torch.bfloat16, device)
        return empty_tensor((rows, width // 2), torch.uint8, device), scale

    def pack_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        grouped = rows.reshape(len(rows), -1, int4_group(rows.shape[1]))
        low, high = grouped.amin(-1), grouped.amax(-1)
        step = ((high - low) / INT4_MAX).clamp(min=TINY).to(torch.bfloat16)
        low = low.to(torch.bfloat16)
        steps = (grouped - low[..., None]) / step[..., None].to(rows.dtype)
        first, second = steps.round().clamp(0, INT4_MAX).to(torch.uint8).chunk(2, -1)
        return (first | second << 4).view(len(rows), -1), torch.stack((step, low), -1)

    def unpack_rows(self, packed: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
        wide = torch.promote_types(dtype, torch.bfloat16)  # float16 cannot hold every step
        pairs = packed.view(len(packed), scale.shape[1], -1)
        numbers = torch.cat((pairs & 15, pairs >> 4), -1)
        step, low = scale.to(wide)[:, :, None].unbind(-1)
        return torch.addcmul(low, numbers.to(wide), step).view(len(packed), -1).to(dtype)

    def linear(self, h: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
        if not self._is_skinny(h, weight, scale):
            return super().linear(h, weight, scale, bias)
        from .kernels import quantized_triton

        output: Tensor = quantized_triton.int4_linear(h, weight, scale, bias)
        return output

    def split_k(self, h: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
        if not self._is_skinny(h, weight, scale):
            return super().linear(h, weight, scale)
        from .kernels import quantized_triton

        output: Tensor = quantized_triton.int4_split_k(h, weight, scale)
        return output

    @staticmethod
    def _is_skinny(h: Tensor, weight: Tensor, scale: Tensor) -> bool:
        whole_groups = h.shape[-1] == INT4_GROUP * scale.shape[1]
        return whole_groups and h.dtype == torch.bfloat16 and is_skinny(h, weight, h.dtype)


FORMATS: dict[str, WeightFormat] = {one.name: one for one in (Fp8(), Int8(), Int4())}


def format_of(name: str) -> WeightFormat:
    """The format of that name."""
    known = isinstance(name, str) and name in FORMATS
    require(known, f"{shown(name)} is not a format of weights: {suggest(str(name), FORMATS)}")
    return FORMATS[name]


class QuantizedLinear(nn.Linear):
    """A linear map whose `weight` is packed. Its `scale` is a buffer, so the parameters are those of a plain map."""

    scale: Tensor

    def __init__(self, linear: nn.Linear, weights: WeightFormat) -> None:
        super().__init__(linear.in_features, linear.out_features, bias=False, device="meta")
        self.format = weights
        self.register_buffer("scale", None)
        self.bias = linear.bias
        self.store(linear.weight)

    def reset_parameters(self) -> None: ...

    def store(self, weight: Tensor) -> None:
        """Pack a matrix and keep it."""
        with torch.no_grad():
            packed, self.scale = self.format.pack(weight)
        self.weight = nn.Parameter(packed, requires_grad=False)

    def forward(self, h: Tensor) -> Tensor:
        return self.format.linear(h, self.weight, self.scale, self.bias)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        self.check_keeps_dtype(fn)
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def check_keeps_dtype(self, fn: Callable[[Tensor], Tensor], *beside: Tensor) -> None:
        """Raise if a function for :meth:`nn.Module._apply` converts what is packed, or a tensor `beside` it."""
        keeps = all(fn(kept.new_empty(0)).dtype == kept.dtype for kept in (self.weight, self.scale, *beside))
        name = self.format.name
        require(keeps, f"a network with {name} weights cannot be converted: load it with the dtype that you want.")


class QuantizedMatrix(Matrix):
    """Packed maps: one product for each."""

    def product(self, h: Tensor) -> Tensor:
        return torch.cat([linear(h) for linear in self.linears], -1)


class JoinedQuantizedMatrix(JoinedMatrix):
    """Packed maps one below the other: one product takes the place of several."""

    def __init__(self, *linears: nn.Linear) -> None:
        super().__init__(*linears)
        packed = [linear for linear in linears if isinstance(linear, QuantizedLinear)]
        self.format, self.scale = packed[0].format, join([linear.scale for linear in packed])

    def __reduce__(self) -> tuple[type[Matrix], tuple[nn.Linear, ...]]:
        return QuantizedMatrix, self.linears

    def product(self, h: Tensor) -> Tensor:
        return self.format.linear(h, self.weight, self.scale, self.bias)

    def swiglu(self, h: Tensor) -> Activations:
        return self.format.swiglu(h, self.weight, self.scale)

    def split_k(self, h: Activations) -> Tensor:
        return self.format.split_k(h, self.weight, self.scale)

    def product_after(self, norm: Norm, x: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
        return self.format.linear_after(norm, x, delta, self.weight, self.scale, self.bias)

    def swiglu_after(self, norm: Norm, x: Tensor, delta: Tensor) -> tuple[Tensor, Activations]:
        return self.format.swiglu_after(norm, x, delta, self.weight, self.scale)


QUANTIZED: dict[type[Matrix], type[Matrix]] = {Matrix: QuantizedMatrix, JoinedMatrix: JoinedQuantizedMatrix}
"""What takes the place of a matrix where the layer is packed."""


def quantize_rows(h: Tensor | PackedRows) -> PackedRows:
    """Activations `[*, k]` in fp8; those that are stay as they are."""
    if isinstance(h, PackedRows):
        return h
    if has_fp8(h) and use_triton(h):
        from .kernels import pointwise_triton

        return PackedRows(*pointwise_triton.quantize_rows(h), h.dtype)
    return PackedRows(*_fp8_rows(h.to(at_least_float32(h.dtype))), h.dtype)


def _silu_mul_rows(gate_up: Tensor) -> Tensor | PackedRows:
    """`silu(gate) * up` of both side by side, in fp8 where one kernel does both."""
    if has_fp8(gate_up) and use_triton(gate_up):
        from .kernels import pointwise_triton

        return PackedRows(*pointwise_triton.silu_mul_fp8(gate_up), gate_up.dtype)
    return silu_mul(gate_up)


def _quantized_norm(norm: Norm, x: Tensor, delta: Tensor) -> tuple[Tensor, PackedRows]:
    """`x + delta`, and its norm in fp8."""
    if has_fp8(x) and use_triton(x):
        from .kernels import pointwise_triton

        x, numbers, scale = pointwise_triton.add_norm_fp8(x, delta, norm.weight, norm.eps)
        return x, PackedRows(numbers, scale, x.dtype)
    x, h = norm(x, delta)
    return x, quantize_rows(h)


def _fp8_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The formula: a row's largest number becomes 448, the largest of e4m3. A row of zeros stays zeros. Without
    division, which not every device rounds alike."""
    rows = rows.to(at_least_float32(rows.dtype))
    top = rows.abs().amax(-1).clamp(min=TINY)
    return (rows * (top.reciprocal() * FP8_MAX)[..., None]).to(FP8), (top * (1 / FP8_MAX)).float()


def _widen_fp8(packed: Tensor) -> Tensor:
    """e4m3 as float32. torch takes 6 ns a number on a CPU and this 1: seven places higher, the bits are those of a
    float16 that is 256 times smaller, because its exponents are biased by 15 and not by 7."""
    if packed.device.type != "cpu":
        return packed.float()
    bits = packed.view(torch.int8).to(torch.int16) << 7  # the sign comes out twice
    return bits.bitwise_and_(~(1 << 14)).view(torch.float16).float().mul_(256.0)


def _plain_product(rows: PackedRows, weight: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """The reference: products of fp8 are exact in float32, and are summed there."""
    wide, step = _widen_fp8(rows.numbers), _block(weight)
    parts = [functional.linear(wide, _widen_fp8(weight[at : at + step])) for at in range(0, len(weight), step)]
    output = torch.cat(parts, -1) * rows.scale[..., None] * scale
    return (output if bias is None else output + bias.float()).to(rows.dtype)


def _scaled_product(rows: PackedRows, weight: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """The same on tensor cores. Their fast accumulation rounds sums to about 14 bits: it was measured to change a
    product by 0.3 % of its norm, where fp8 itself changes it by 3.7 % (docs/log.md)."""
    numbers = rows.numbers
    scales = rows.scale.reshape(-1, 1), scale[None]
    flat = numbers.reshape(-1, numbers.shape[-1])
    output = torch._scaled_mm(flat, weight.t(), *scales, bias, out_dtype=rows.dtype, use_fast_accum=True)
    return output.view(*numbers.shape[:-1], -1)


def has_fp8(h: Tensor) -> bool:
    """Whether `h` is on a GPU whose tensor cores multiply fp8."""
    return h.is_cuda and capability(h.device) >= FP8_CAPABILITY


def is_skinny(h: Tensor, weight: Tensor, dtype: torch.dtype, most: int = MAX_SKINNY_TOKENS) -> bool:
    """Whether few tokens, of this dtype before they were quantised, meet a large packed matrix that the kernels' tiles
    divide, on a GPU where the kernels pay."""
    n, k = len(weight), h.shape[-1]
    divides = n * k >= MIN_WEIGHTS and n % N_MULTIPLE == 0 and k % K_MULTIPLE == 0
    return divides and weight.device == h.device and h.numel() <= most * k and pays_on(h, dtype)


def _may_scale(rows: PackedRows, weight: Tensor) -> bool:
    """Whether `torch._scaled_mm` takes the product: its scales for each row give bfloat16."""
    divides, numbers = all(side % SCALED_MULTIPLE == 0 for side in weight.shape), rows.numbers
    return divides and rows.dtype == torch.bfloat16 and has_fp8(numbers) and weight.device == numbers.device


def _block(weight: Tensor, on_gpu: int = GPU_BLOCK) -> int:
    """Rows of a matrix that are widened or packed at a time."""
    return max(1, (CPU_BLOCK if weight.device.type == "cpu" else on_gpu) // weight.shape[1])
