"""The belief in one pass over the logits, as Triton kernels: nothing of the vocabulary's width is written.

A first kernel divides the vocabulary into parts; each program writes the largest logit of its part and the sums of a
softmax measured from it. A second kernel rescales and merges the parts of a row. The sums without the best token must
not be lost to rounding, so it reads the one part that holds that token again. Parts depend on the vocabulary alone: a
row's belief is the same, to the bit, in any batch. Memory traffic: the logits once, and one part of a row twice.
"""

# mypy: ignore-errors
from __future__ import annotations

import os

import torch
import triton
import triton.language as tl
from torch import Tensor

from .noise import Draw, Purpose

LOG2_E = tl.constexpr(1.4426950408889634)
NO_TOKEN = tl.constexpr(2147483647)
"""No token."""
MIN_BITS = tl.constexpr(-200.0)
"""Bits below the largest logit at which exp2 is 0 in float32; stands for -inf."""
TOKEN = tl.constexpr(int(Purpose.TOKEN))
ON_A_GPU = tl.constexpr(os.environ.get("TRITON_INTERPRET") != "1")
VECTOR, VECTORS, QUADS, WARPS = 8, 512, 64, 2
"""Tokens that a thread loads together; such vectors of a part; quadruples of tokens drawn at a time; warps."""


@triton.jit
def _exp2(bits):
    """2**bits, in one instruction on a GPU; results below the smallest normal number are 0."""
    if ON_A_GPU:
        return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [bits], tl.float32, True, 1)
    else:
        return tl.exp2(bits)


@triton.jit
def _relative_bits(x, peak):
    """The logit less the peak, in bits (d / ln 2). NaN stays NaN; without a peak (all -inf) nothing is subtracted."""
    safe = tl.where(peak == float("-inf"), 0.0, peak)
    return tl.maximum((x - safe) * LOG2_E, MIN_BITS, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _relative_bits_fast(x, peak):
    """The same by one fused multiply-add, a millionth off: enough for parts that do not hold the best token."""
    safe = tl.where(peak == float("-inf"), 0.0, peak)
    return tl.maximum(tl.fma(x, LOG2_E, safe * -LOG2_E), MIN_BITS, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _noisy(x, quad, word_index, seed, offset, step, temperature):
    """Logits by the temperature, with the noise of :class:`PhiloxNoise`, in float64; a hash serves four tokens."""
    a, b, c, d = tl.philox(seed, quad, offset, step, TOKEN)
    word = tl.where(word_index == 0, a, tl.where(word_index == 1, b, tl.where(word_index == 2, c, d)))
    uniform = (word.to(tl.uint32, bitcast=True).to(tl.float64) + 0.5) * 2.3283064365386963e-10
    return x.to(tl.float64) / temperature - tl.log(-tl.log(uniform))


@triton.jit
def _partial_sums(
    logits, stride, vocab, part_tops, part_sumexp, part_exp_bits,
    seeds, offsets, steps, temperatures, peaks, picks,
    VECTORS: tl.constexpr, VECTOR: tl.constexpr, QUADS: tl.constexpr, DRAWS: tl.constexpr,
):  # fmt: skip
    """One part of one row: its largest logit, the sums of exp2(bits) and of exp2(bits) * bits.

    Grid: (rows, parts).
    """
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    vector = (part * VECTORS + tl.arange(0, VECTORS))[:, None] * VECTOR
    token = vector + tl.arange(0, VECTOR)[None]
    x = tl.load(logits + row * stride + token, mask=token < vocab, other=float("-inf")).to(tl.float32)
    top = tl.max(x, 1)
    bits = _relative_bits_fast(x, top[:, None])
    exps = _exp2(bits)
    sumexp, exp_bits = tl.sum(exps, 1), tl.sum(exps * bits, 1)
    peak = tl.max(top, 0)
    top_bits = _relative_bits(top, peak)
    rescale = _exp2(top_bits)
    at = row * tl.num_programs(1) + part
    tl.store(part_tops + at, peak)
    tl.store(part_sumexp + at, tl.sum(rescale * sumexp, 0))
    tl.store(part_exp_bits + at, tl.sum(rescale * (exp_bits + top_bits * sumexp), 0))
    if DRAWS:  # some tokens at a time, out of the cache: logarithms in float64 need many registers
        seed, offset, step, temperature = (
            tl.load(seeds + row),
            tl.load(offsets + row),
            tl.load(steps + row),
            tl.load(temperatures),
        )
        high, pick = tl.full([], float("-inf"), tl.float64), tl.full([], NO_TOKEN, tl.int32)
        quad_starts, word_index = tl.arange(0, QUADS)[:, None] * 4, tl.arange(0, 4)[None]
        for start in range(0, VECTORS * VECTOR, QUADS * 4):
            first = part * VECTORS * VECTOR + start + quad_starts
            drawn = first + word_index
            logit = tl.load(logits + row * stride + drawn, mask=drawn < vocab, other=float("-inf"))
            noisy = _noisy(logit, first // 4, word_index, seed, offset, step, temperature)
            best = tl.max(tl.max(noisy, 1), 0)
            found = tl.min(tl.min(tl.where(noisy == best, drawn, NO_TOKEN), 1), 0)
            pick = tl.where(best > high, found, pick)
            high = tl.maximum(best, high)
        tl.store(peaks + at, high)
        tl.store(picks + at, pick)


@triton.jit
def _merge_parts(
    logits, stride, vocab, part_tops, part_sumexp, part_exp_bits,
    peaks, picks, top, best, sumexp_others, exp_second, sum_exp_bits, drawn,
    PARTS: tl.constexpr, LANES: tl.constexpr, TOKENS: tl.constexpr, DRAWS: tl.constexpr,
):  # fmt: skip
    """A row's belief: the part with its best token is read again, the others are rescaled. Grid: (rows,)."""
    row, lane = tl.program_id(0).to(tl.int64), tl.arange(0, LANES)
    at, inside = row * PARTS + lane, lane < PARTS
    tops = tl.load(part_tops + at, mask=inside, other=float("-inf"))
    peak = tl.max(tops, 0)
    best_part = tl.minimum(tl.min(tl.where(tops == peak, lane, PARTS), 0), PARTS - 1)
    token = best_part * TOKENS + tl.arange(0, TOKENS)
    x = tl.load(logits + row * stride + token, mask=token < vocab, other=float("-inf")).to(tl.float32)
    first = tl.minimum(tl.min(tl.where(x == peak, token, NO_TOKEN), 0), vocab - 1)
    bits = _relative_bits(x, peak)
    exps = tl.where(token == first, 0.0, _exp2(bits))
    other = inside & (lane != best_part)
    sumexp = tl.load(part_sumexp + at, mask=other, other=0.0)
    exp_bits = tl.load(part_exp_bits + at, mask=other, other=0.0)
    top_bits = _relative_bits(tops, peak)
    rescale = tl.where(other, _exp2(top_bits), 0.0)
    nan_if_impossible = peak - peak  # 0, or not a number where nothing is possible
    tl.store(top + row, peak)
    tl.store(best + row, first)
    tl.store(sumexp_others + row, tl.sum(exps, 0) + tl.sum(rescale * sumexp, 0) + nan_if_impossible)
    tl.store(sum_exp_bits + row, tl.sum(exps * bits, 0) + tl.sum(rescale * (exp_bits + top_bits * sumexp), 0))
    tl.store(exp_second + row, tl.maximum(tl.max(exps, 0), tl.max(rescale, 0)))
    if DRAWS:
        noisy = tl.load(peaks + at, mask=inside, other=float("-inf"))
        pick = tl.load(picks + at, mask=inside, other=NO_TOKEN)
        chosen = tl.min(tl.where(noisy == tl.max(noisy, 0), pick, NO_TOKEN), 0)
        tl.store(drawn + row, tl.minimum(chosen, vocab - 1))


def sums(logits: Tensor, draw: Draw | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """Of logits `[B, W, V]`: the largest, its token, a belief's `sumexp_others`, `exp_second` and `sum_exp_bits`, and
    the drawn token."""
    shape, device = logits.shape[:-1], logits.device
    flat = logits.reshape(-1, logits.shape[-1])
    rows, vocab = flat.shape
    tokens, draws = VECTORS * VECTOR, draw is not None
    parts = triton.cdiv(vocab, tokens)
    partial = [torch.empty(rows, parts, device=device) for _ in range(3)]
    best, drawn = (torch.empty(rows, device=device, dtype=torch.int64) for _ in range(2))
    top, sumexp_others, exp_second, sum_exp_bits = (torch.empty(rows, device=device) for _ in range(4))
    peaks = torch.empty(rows if draws else 1, parts, device=device, dtype=torch.float64)
    picks = torch.empty(rows if draws else 1, parts, device=device, dtype=torch.int32)
    noise = [best] * 4 if draw is None else _per_position(draw, shape)
    with torch.cuda.device_of(logits):  # a kernel starts on the current device, wherever its tensors lie
        _partial_sums[(rows, parts)](
            flat, flat.stride(0), vocab, *partial, *noise, peaks, picks, VECTORS=VECTORS, VECTOR=VECTOR,
            QUADS=QUADS, DRAWS=draws, num_warps=WARPS, enable_fp_fusion=True,
        )  # fmt: skip
        _merge_parts[(rows,)](
            flat, flat.stride(0), vocab, *partial,
            peaks, picks, top, best, sumexp_others, exp_second, sum_exp_bits, drawn, PARTS=parts,
            LANES=triton.next_power_of_2(parts), TOKENS=tokens, DRAWS=draws, num_warps=WARPS, enable_fp_fusion=True,
        )  # fmt: skip
    found = [t.view(shape) for t in (top, best, sumexp_others, exp_second, sum_exp_bits)]
    return *found, drawn.view(shape) if draws else None


def _per_position(draw: Draw, shape: torch.Size) -> list[Tensor]:
    """Seed, offset and step of every position, and the temperature."""
    seeds, offsets, steps = (t.expand(shape).reshape(-1) for t in (draw.noise.seeds, draw.offsets, draw.noise.steps))
    temperature = torch.full((1,), draw.temperature, dtype=torch.float64, device=seeds.device)
    return [seeds, offsets.int(), steps.int(), temperature]
