"""The Triton kernels beside the plain code, run by Triton's interpreter: no GPU is needed, only patience.

The tests start `python -m tests.interpreted` with TRITON_INTERPRET=1, which Triton reads when it is imported.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional

from uncode.backbones.denoiser import TransformerDenoiser
from uncode.backbones.dialects.dialect import Dialect
from uncode.backbones.dialects.dream import DREAM
from uncode.backbones.dialects.llada2 import LLADA2
from uncode.backbones.dialects.sdar import SDAR
from uncode.backbones.transformer import attention, experts, pointwise
from uncode.backbones.transformer.kernels import (
    attention_triton,
    experts_triton,
    linear_triton,
    pointwise_triton,
    quantized_triton,
)
from uncode.backbones.transformer.kernels.linear_triton import Tile
from uncode.backbones.transformer.kv_cache import LayerCache
from uncode.backbones.transformer.mixture import Mixture
from uncode.backbones.transformer.network import Transformer
from uncode.backbones.transformer.pointwise import QKNorm, Rope
from uncode.backbones.transformer.session import TransformerSession
from uncode.backbones.transformer.shape import Shape
from uncode.core import belief_triton
from uncode.core.belief import Belief
from uncode.core.canvas import Canvas
from uncode.core.noise import Draw, PhiloxNoise
from uncode.core.pieces.policy import Sampler
from uncode.core.stepper import constraints_triton
from uncode.generation.decoding import decode
from uncode.samplers import presets

KERNELS = (
    (linear_triton, "linear"),
    (linear_triton, "split_k"),
    (linear_triton, "swiglu"),
    (attention_triton, "flash_attention"),
)
"""Products of few rows, and attention."""
FUSED = (torch.float32, torch.bfloat16, torch.float16)
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
"""Under `make verify` every combination; otherwise each value of each setting, once."""


def close(found: Tensor, wanted: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(found.double(), wanted.double(), atol=tolerance, rtol=tolerance, equal_nan=True)


def constraints() -> None:
    """Rows with flags of their own, of two tables of classes, and a row without; logits that are a part of wider
    ones."""
    random = torch.Generator().manual_seed(0)
    classes = torch.randint(0, 5, (2, 171), generator=random, dtype=torch.int32)
    flags = torch.rand(3, 6, 5, generator=random) < 0.5
    places = torch.tensor([[1, 0], [-1, -1], [0, 1], [1, 2]])
    for dtype in FUSED:
        logits = torch.randn(4, 6, 180, generator=random).to(dtype)[..., :171]
        with patch.multiple(constraints_triton, TOKENS=64, COLUMNS=4):
            found = constraints_triton.barred(logits, classes, places, flags)
        allowed = torch.ones(4, 6, 171, dtype=torch.bool)
        for row, (table, own) in enumerate(places.tolist()):
            if own >= 0:
                allowed[row] = flags[own][:, classes[table].long()]
        assert torch.equal(found, logits.masked_fill(~allowed, -torch.inf))


def belief() -> None:
    """In one part and in several, with ties, tokens that are impossible, and a position that is nearly certain."""
    random = torch.Generator().manual_seed(0)
    for groups, dtypes in (8, FUSED if SOAK else FUSED[:1]), (64, FUSED if SOAK else FUSED[1:2]):
        belief_triton.VECTORS = groups
        for dtype in dtypes:
            logits = (torch.randn(2, 3, 171, generator=random) * 4).to(dtype)
            logits[..., 5] = -torch.inf
            logits[0, 0, 7] = logits[0, 0].max()
            logits[0, 1], logits[0, 1, 9] = -torch.inf, 0
            logits[0, 2, 150] = 60
            logits[1, 0] = 1
            noise = PhiloxNoise(torch.tensor([[-5], [2**40 + 7]]), torch.tensor([[3], [11]]))
            draw = Draw(0.7, noise, torch.arange(3)[None] + 17)
            top, best, sumexp_others, exp_second, sum_exp_bits, drawn = belief_triton.sums(logits, draw)
            exact = Belief.of(logits.double())
            assert torch.equal(best, exact.token)
            assert drawn is not None and torch.equal(drawn, Belief.of(logits.double(), draw).token)
            assert torch.equal(top.double(), logits.double().amax(-1))
            sums = ((sumexp_others, exact.sumexp_others), (exp_second, exact.exp_second))
            for found, wanted in (*sums, (sum_exp_bits, exact.sum_exp_bits)):
                close(found, wanted)
            alone = belief_triton.sums(logits[1:, 2:3])
            assert torch.equal(alone[2][0, 0], sumexp_others[1, 2]) and torch.equal(alone[4][0, 0], sum_exp_bits[1, 2])


def not_a_number() -> None:
    """What is not a number is never certain."""
    logits = torch.randn(1, 3, 100)
    logits[0, 0], logits[0, 1, 7], logits[0, 2] = torch.nan, torch.nan, -torch.inf
    _, best, sumexp_others, *_ = belief_triton.sums(logits)
    assert sumexp_others.isnan().all() and bool((best < 100).all())


def layers(dtype: torch.dtype) -> None:
    """Norms, SwiGLU and RoPE, the latter also with a KV cache.

    The interpreter rounds to bfloat16 in its own way, so half precision is compared within a unit of its last place.
    """
    random = torch.Generator().manual_seed(0)
    tolerance = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random).to(dtype)

    x, delta, weight, both = draw(2, 3, 48), draw(2, 3, 48), draw(48), draw(2, 3, 96)
    parts = torch.randn(3, 2, 3, 48, generator=random)
    for given, whole in ((delta, delta), (parts, parts.sum(0).to(dtype))):
        fused_pair, plain_pair = (
            pointwise_triton.add_norm(x, given, weight, 1e-5),
            pointwise.add_norm(x, whole, weight, 1e-5),
        )
        for found, wanted in zip(fused_pair, plain_pair, strict=True):
            close(found, wanted, tolerance)
    close(pointwise_triton.silu_mul(both), pointwise.silu_mul(both), tolerance)
    for rows, turns in ((1, 6), (2, 6), (2, 4)):  # half a head need not be a power of two, nor turn whole
        angles = torch.randn(rows, 1, 3, turns, generator=random)
        for columns in (None, torch.tensor([4, 0, 6]), torch.tensor([[1, 2, 3], [6, 5, 4]])):
            qkv, norm = draw(2, 3, (6 + 2 * 3) * 12), QKNorm(draw(12), draw(12), 1e-5)
            for own in (None, norm):
                found_all, wanted_all = (
                    heads(qkv.clone(), (angles.cos(), angles.sin()), columns, own, fuse) for fuse in (True, False)
                )
                for found, wanted in zip(found_all, wanted_all, strict=True):
                    close(found, wanted, tolerance)


def heads(
    qkv: Tensor, rope: Rope, columns: Tensor | None, norm: QKNorm | None, fuse: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of six heads and three key heads, by the kernel or by the plain code."""
    cache = None if columns is None else LayerCache([], (3, 3, 7, 12), columns)
    if not fuse:
        return attention.rope_and_cache_qkv(qkv, 6, 3, rope, cache, norm)
    pointwise_triton.rope_and_cache(qkv, 6, 3, rope, cache, norm)
    split = qkv.view(2, 3, 12, 12).transpose(1, 2)
    return split[:, :6], *((split[:, 6:9], split[:, 9:]) if cache is None else cache.read(2))


def few_rows(dtype: torch.dtype) -> None:
    """Products whole and split along K, SwiGLU, and attention with its keys in one split and in several.

    The interpreter takes the bits of bfloat16 for whole numbers in a product, so that type is left out.
    """
    random = torch.Generator().manual_seed(0)
    tolerance = {torch.float32: 1e-4, torch.float16: 4e-3}[dtype]

    def draw(*shape: int) -> Tensor:
        return (torch.randn(*shape, generator=random) / 4).to(dtype)

    linear_triton.LINEAR_TILE, linear_triton.SPLIT_K_TILE = Tile(32, 32, 2), Tile(64, 16, 3)
    linear_triton.SWIGLU_TILE = Tile(32, 16, 2)
    h, weight, bias = draw(2, 5, 128), draw(192, 128), draw(192)
    wanted = functional.linear(h.double(), weight.double())
    close(linear_triton.linear(h, weight), wanted, tolerance)
    close(linear_triton.linear(h, weight, bias), wanted + bias, tolerance)
    parts = linear_triton.split_k(h, weight)
    assert parts.shape == (linear_triton.SPLIT_K, 2, 5, 192) and parts.dtype == torch.float32
    close(parts.sum(0), wanted, tolerance)
    gate, up = wanted.chunk(2, -1)
    close(linear_triton.swiglu(h, weight), functional.silu(gate) * up, tolerance)
    k, v = draw(2, 2, 41, 32)[:, :, :-1], draw(2, 2, 41, 32)[:, :, :-1]
    seen = torch.rand(2, 1, 1, 40, generator=random) < 0.5
    seen[0, ..., :16], seen[..., -1] = False, True  # a whole split of the keys is not seen
    by_query = seen & (torch.arange(5)[:, None] * 8 + 8 > torch.arange(40)) | (torch.arange(40) == 17)
    splits = [
        (64, 16, 128),  # not more splits than blocks of keys
        (64, 64, 1),
        (2, 16, 64),
        *([(64, 16, 8), (64, 64, 128), (2, 16, 1)] if SOAK else []),
    ]
    for block_q, block_kv, ctas in splits:
        attention_triton.BLOCK_Q, attention_triton.MIN_CTAS = block_q, ctas
        attention_triton.BLOCK_KV = attention_triton.BLOCK_KV_MANY = block_kv
        apart, together = draw(2, 5, 4 * 32).view(2, 5, 4, 32).transpose(1, 2), draw(2, 4, 3, 32)
        for queries, masks in (apart, (None, seen, by_query)), (together, (None, seen)):
            for mask in masks if SOAK else masks[-1:] if queries is apart else masks[:1]:
                plain = functional.scaled_dot_product_attention(queries, k, v, attn_mask=mask, enable_gqa=True)
                close(
                    attention_triton.flash_attention(queries, k, v, mask), plain.transpose(1, 2).flatten(2), tolerance
                )


MIXTURES = (
    Mixture(8, 2, 48),
    Mixture(16, 4, 33, 32, (0,), "sigmoid", has_bias=True, groups=4, open_groups=2, normed=True, scale=2.5),
    Mixture(6, 3, 16, has_bias=True, weighs_bias=True),
    Mixture(12, 3, 64, score="sigmoid", groups=3, open_groups=2),
)


def mixtures() -> None:
    """The choice of the experts with ties, their order, and the products of few and of many rows."""
    random = torch.Generator().manual_seed(0)
    for mixture, rows in itertools.product(MIXTURES if SOAK else MIXTURES[1:3], (1, 40)):
        count, hidden, width = mixture.experts, mixture.hidden, 72
        h, beside = torch.randn(2, rows, width, generator=random)
        logits, bias = torch.randn(rows, count, generator=random), torch.randn(count, generator=random) / 4
        logits[0] = logits[0].round()  # ties, where there is no bias
        own_bias = bias if mixture.has_bias else None
        gate_ups = torch.randn(count, 2 * hidden, width, generator=random) / 8
        downs = torch.randn(count, width, hidden, generator=random) / 6
        chosen, weights = experts.choose(logits, own_bias, mixture)
        found, own = experts_triton.choose(logits, own_bias, mixture)
        assert torch.equal(found.long(), chosen)
        close(own, weights)
        order, starts = experts_triton.sort(found, count)
        assert torch.equal(order.long(), chosen.flatten().argsort(stable=True))
        assert starts.tolist() == [0, *chosen.flatten().bincount(minlength=count).cumsum(0).tolist()]
        plain = experts.mix(h, chosen, weights, gate_ups, downs)
        close(experts_triton.mix(h, logits, own_bias, mixture, gate_ups, downs), plain, 2e-5)
        close(experts_triton.mix(h, logits, own_bias, mixture, gate_ups, downs, beside), plain + beside, 2e-5)
        if hidden % 8 == 0:  # what torch's grouped products demand
            half = (h.bfloat16(), order, starts, mixture.active, gate_ups.bfloat16(), downs.bfloat16())
            with patch.object(experts_triton, "silu_mul", pointwise.silu_mul):
                grouped = experts_triton.grouped(*half)
            wanted = experts_triton.products(h, order, starts, mixture.active, gate_ups, downs)
            close(grouped, wanted, 0.05 * float(wanted.abs().max()))


def fp8_products() -> None:
    """The scales of fp8 rows, alone and after a norm, and products with fp8 matrices.

    The interpreter rounds to fp8 in its own way, so the numbers beside the scales are compared on a GPU.
    """
    random = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random)

    h, delta, weight, bias = draw(2, 5, 128) * 3, draw(4, 2, 5, 128), draw(192, 128), draw(192)
    h[0, 1], delta[:, 0, 1] = 0, 0  # a row of zeros
    (packed, scale), (matrix, by_row) = fp8_rows(h), fp8_rows(weight)
    close(pointwise_triton.quantize_rows(h)[1], scale)
    both = draw(2, 5, 96) * 3
    close(pointwise_triton.silu_mul_fp8(both)[1], fp8_rows(pointwise_triton.silu_mul(both))[1])
    total, _, after_norm = pointwise_triton.add_norm_fp8(h, delta, bias[:128], 1e-5)
    plain_total, plain = pointwise_triton.add_norm(h, delta, bias[:128], 1e-5)
    assert torch.equal(total, plain_total)
    close(after_norm, fp8_rows(plain)[1])
    quantized_triton.LINEAR_TILE, quantized_triton.SPLIT_K_TILE = Tile(32, 32, 2), Tile(64, 16, 3)
    quantized_triton.SWIGLU_TILE, quantized_triton.EXACT_K = Tile(32, 16, 2), 16
    wanted = (packed.double() * scale[..., None]) @ (matrix.double() * by_row[:, None]).T
    close(quantized_triton.linear(packed, scale, matrix, by_row, None, torch.float32), wanted, 1e-4)
    close(quantized_triton.linear(packed, scale, matrix, by_row, bias, torch.float32), wanted + bias, 1e-4)
    parts = quantized_triton.split_k(packed, scale, matrix, by_row)
    assert parts.shape == (quantized_triton.SPLIT_K, 2, 5, 192) and parts.dtype == torch.float32
    close(parts.sum(0), wanted, 1e-4)
    gate, up = wanted.chunk(2, -1)
    close(quantized_triton.swiglu(packed, scale, matrix, by_row, torch.float32), functional.silu(gate) * up, 1e-3)


def int4_products() -> None:
    random = torch.Generator().manual_seed(0)
    h, bias = torch.randn(2, 5, 128, generator=random), torch.randn(192, generator=random)
    numbers = torch.randint(0, 16, (192, 4, 2, 16), generator=random, dtype=torch.uint8)
    scale = torch.randn(192, 4, 2, generator=random)
    step, low = scale[..., None].unbind(2)
    wanted = h @ (numbers.flatten(2) * step + low).view(192, 128).T
    packed = (numbers[:, :, 0] | numbers[:, :, 1] << 4).view(192, 64)
    close(quantized_triton.int4_linear(h, packed, scale), wanted, 1e-3)
    close(quantized_triton.int4_linear(h, packed, scale, bias), wanted + bias, 1e-3)
    close(quantized_triton.int4_split_k(h, packed, scale).sum(0), wanted, 1e-3)


def fp8_rows(h: Tensor) -> tuple[Tensor, Tensor]:
    top = h.abs().amax(-1).clamp(min=1e-30)
    return (h * (448 / top)[..., None]).to(torch.float8_e4m3fn), top / 448


def network(dialect: Dialect, sampler: Sampler, calls: list[int], **kind: Any) -> None:
    """All of them in a network that decodes: shared keys, a cache, rows that begin late."""
    shape = Shape(128, 2, 4, 2, 192, 61, theta=1e4, eps=1e-5, context=64, **kind)
    random = torch.Generator().manual_seed(0)
    made = Transformer(shape).to_empty(device="cpu")
    for parameter in made.parameters():
        parameter.normal_(float(parameter.dim() == 1), 0.15, generator=random)
    with patch("uncode.backbones.transformer.linear.MAX_TRANSPOSED", 0):  # stored as on a GPU
        made.fuse()
    model = TransformerDenoiser(made, dialect, mask_id=0, eos_ids=(1,))
    model.open = in_one_forward(model)  # type: ignore[method-assign]
    canvas = Canvas.after_prompt([[5, 6, 7], [8]], 3, 0)
    plain = decode(model, canvas, sampler)
    with ExitStack() as stack:
        names = ("attention._is_kernel_shape", "attention.use_triton", "pointwise.use_triton", "experts.use_triton")
        for name in ("linear.is_skinny", *names):
            stack.enter_context(patch(f"uncode.backbones.transformer.{name}", lambda *_: True))
        counted = [stack.enter_context(patch.object(home, name, wraps=getattr(home, name))) for home, name in KERNELS]
        found = decode(model, canvas, sampler)
    assert [each.call_count for each in counted] == calls
    assert torch.equal(found.tokens, plain.tokens)
    close(found.logp, plain.logp, 1e-3)


def in_one_forward(model: TransformerDenoiser) -> Callable[[int, int], TransformerSession]:
    """`model.open` for sessions that compute all rows in one forward, as on a GPU."""
    opens = model.open

    def opened(rows: int, length: int) -> TransformerSession:
        session = opens(rows, length)
        session.in_parts = False
        return session

    return opened


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    constraints()
    belief()
    not_a_number()
    for kind in FUSED if SOAK else FUSED[:2]:
        layers(kind)
    few_rows(torch.float32)
    if SOAK:
        few_rows(torch.float16)
    fp8_products()
    int4_products()
    network(DREAM, presets.semi_ar(blocks=2, cache="dual"), [6, 12, 6, 6], qkv_bias=True)  # in two layers, three steps
    network(SDAR, presets.confidence(block_length=2), [6, 12, 6, 6], qk_norm=True, block_length=2)
    mixtures()
    kind = {"qk_norm": True, "block_length": 2, "rotary_dim": 16, "mixture": MIXTURES[1]}
    network(LLADA2, presets.confidence(block_length=2), [9, 9, 6, 6], **kind)  # a layer with an MLP, one with experts
    print("alike")
