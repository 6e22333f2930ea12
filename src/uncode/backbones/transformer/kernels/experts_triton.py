"""A mixture of experts as Triton kernels, without a host sync: the choice of the experts, the order of the rows by
expert, and products that read the weights of the chosen experts alone.

A row and one of its experts are a *pick*: row `t` and its n-th expert are pick `t * active + n`. The picks are sorted
by expert. A program of a product owns some columns of the output of one expert; it loops over that expert's picks, and
returns at once where there is none. So weights are read once for every 16 to 64 picks, and those of other experts not
at all. Many rows go through `torch.nn.functional.grouped_mm`, which takes the same order.
"""

# mypy: ignore-errors
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional

from ..mixture import TINY, Mixture
from .linear_triton import Tile
from .pointwise_triton import silu_mul

GATE_UP_TILE, DOWN_TILE = Tile(64, 64, 4), Tile(128, 64, 4)
"""Of the gate and of the up projection each; of the down projection."""
ROWS = (16, 32, 64)
"""Picks that a product takes at a time: the least of these that holds the picks of an average expert."""
MAX_PICKS_OF_AN_EXPERT = 128
"""On average, up to which the kernels take the products."""
PICKS_AT_A_TIME = 1024


@triton.jit
def _choose(
    logits, bias, chosen, weights, scale, tiny,
    EXPERTS: tl.constexpr, ACTIVE: tl.constexpr, GROUPS: tl.constexpr, OPEN: tl.constexpr, SIGMOID: tl.constexpr,
    HAS_BIAS: tl.constexpr, WEIGHS_BIAS: tl.constexpr, NORMED: tl.constexpr, LANES: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """The experts of one row and their weights. Grid: (rows,). Of equals the one with the lowest number is taken."""
    row, lane, slot = tl.program_id(0).to(tl.int64), tl.arange(0, LANES), tl.arange(0, SLOTS)
    inside = lane < EXPERTS
    value = tl.load(logits + row * EXPERTS + lane, mask=inside, other=float("-inf"))
    if SIGMOID:
        scores = 1.0 / (1.0 + tl.exp(-value))
    else:
        scores = tl.exp(value - tl.max(value, 0))
        scores = scores / tl.sum(scores, 0)
    ranked = scores
    if HAS_BIAS:
        ranked += tl.load(bias + lane, mask=inside, other=0.0)
    known = ranked if WEIGHS_BIAS else scores
    ranked = tl.where(inside, ranked, float("-inf"))
    if GROUPS > 1:
        group = lane // (EXPERTS // GROUPS)
        both = tl.full((LANES,), float("-inf"), tl.float32)  # at each lane, of its group
        for number in tl.static_range(GROUPS):
            own = tl.where(inside & (group == number), ranked, float("-inf"))
            first = tl.max(own, 0)
            at = tl.min(tl.where(own == first, lane, LANES), 0)
            second = tl.max(tl.where(lane == at, float("-inf"), own), 0)
            both = tl.where(inside & (group == number), first + second, both)
        is_open = lane < 0
        for _ in tl.static_range(OPEN):
            best = tl.max(both, 0)
            at = tl.min(tl.where(both == best, group, GROUPS), 0)
            is_open = is_open | (group == at)
            both = tl.where(group == at, float("-inf"), both)
        ranked = tl.where(is_open, ranked, float("-inf"))
    experts, found = tl.zeros((SLOTS,), tl.int32), tl.zeros((SLOTS,), tl.float32)
    for number in tl.static_range(ACTIVE):
        best = tl.max(ranked, 0)
        at = tl.min(tl.where(ranked == best, lane, EXPERTS - 1), 0)  # never outside, not even of NaN
        experts = tl.where(slot == number, at, experts)
        found = tl.where(slot == number, tl.sum(tl.where(lane == at, known, 0.0), 0), found)
        ranked = tl.where(lane == at, float("-inf"), ranked)
    if NORMED:
        found = found / (tl.sum(found, 0) + tiny)
    to = row * ACTIVE + slot
    tl.store(chosen + to, experts, mask=slot < ACTIVE)
    tl.store(weights + to, found * scale, mask=slot < ACTIVE)


@triton.jit(do_not_specialize=["picks"])
def _sort(chosen, order, starts, picks, EXPERTS: tl.constexpr, BLOCK: tl.constexpr):
    """The picks of one expert, in their order, behind those of the experts before it. Grid: (experts,). Every program
    reads all picks, twice."""
    expert, lane = tl.program_id(0), tl.arange(0, BLOCK)
    before = tl.zeros((BLOCK,), tl.int32)
    for at in range(0, picks, BLOCK):
        found = tl.load(chosen + at + lane, mask=at + lane < picks, other=EXPERTS)
        before += (found < expert).to(tl.int32)
    start = tl.sum(before, 0)
    tl.store(starts + expert, start)
    for at in range(0, picks, BLOCK):
        own = (tl.load(chosen + at + lane, mask=at + lane < picks, other=EXPERTS) == expert).to(tl.int32)
        tl.store(order + start + tl.cumsum(own, 0) - own, at + lane, mask=own == 1)
        start += tl.sum(own, 0)
    tl.store(starts + EXPERTS, picks, mask=expert == EXPERTS - 1)


@triton.jit
def _weights(at, there, EVEN: tl.constexpr):
    """A tile of weights, which few programs read."""
    if EVEN:
        return tl.load(at, eviction_policy="evict_first")
    return tl.load(at, mask=there, other=0.0)


@triton.jit
def _gate_up(
    h, weight, order, starts, out, active,
    HIDDEN: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    STAGES: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """`silu(h @ gate.T) * (h @ up.T)` of the picks of one expert, in their sorted order. Grid: (hidden / BLOCK_N,
    experts)."""
    expert, k = tl.program_id(1).to(tl.int64), tl.arange(0, BLOCK_K)
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    first, stop = tl.load(starts + expert), tl.load(starts + expert + 1)
    own, there = weight + expert * 2 * HIDDEN * K, (column < HIDDEN)[:, None]
    for at in range(first, stop, ROWS):
        row = at + tl.arange(0, ROWS)
        is_row = row < stop
        token = tl.load(order + row, mask=is_row, other=0) // active
        inputs = h + token.to(tl.int64)[None] * K + k[:, None]
        gates = own + column[:, None] * K + k[None]
        gate, up = tl.zeros((BLOCK_N, ROWS), tl.float32), tl.zeros((BLOCK_N, ROWS), tl.float32)
        for step in tl.range(0, tl.cdiv(K, BLOCK_K), num_stages=STAGES):
            rest = k < K - step * BLOCK_K
            x = tl.load(inputs, mask=is_row[None] & rest[:, None], other=0.0)
            inside = there & rest[None]
            gate = tl.dot(_weights(gates, inside, EVEN), x, gate, input_precision="ieee")
            up = tl.dot(_weights(gates + HIDDEN * K, inside, EVEN), x, up, input_precision="ieee")
            gates += BLOCK_K
            inputs += BLOCK_K
        dtype: tl.constexpr = out.dtype.element_ty
        gate, up = gate.to(dtype).to(tl.float32), up.to(dtype).to(tl.float32)
        silu = (gate / (1.0 + tl.exp(-gate))).to(dtype).to(tl.float32)
        to = out + row.to(tl.int64)[None] * HIDDEN + column[:, None]
        tl.store(to, silu * up, mask=is_row[None] & there)


@triton.jit
def _down(
    inner, weight, order, starts, out,
    WIDTH: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    STAGES: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """`inner @ down.T` of the picks of one expert, written where each pick is. Grid: (width / BLOCK_N, experts)."""
    expert, k = tl.program_id(1).to(tl.int64), tl.arange(0, BLOCK_K)
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    first, stop = tl.load(starts + expert), tl.load(starts + expert + 1)
    own, there = weight + expert * WIDTH * K, (column < WIDTH)[:, None]
    for at in range(first, stop, ROWS):
        row = at + tl.arange(0, ROWS)
        is_row = row < stop
        pick = tl.load(order + row, mask=is_row, other=0).to(tl.int64)
        inputs = inner + row.to(tl.int64)[None] * K + k[:, None]
        weights = own + column[:, None] * K + k[None]
        total = tl.zeros((BLOCK_N, ROWS), tl.float32)
        for step in tl.range(0, tl.cdiv(K, BLOCK_K), num_stages=STAGES):
            rest = k < K - step * BLOCK_K
            x = tl.load(inputs, mask=is_row[None] & rest[:, None], other=0.0)
            total = tl.dot(_weights(weights, there & rest[None], EVEN), x, total, input_precision="ieee")
            weights += BLOCK_K
            inputs += BLOCK_K
        tl.store(out + pick[None] * WIDTH + column[:, None], total, mask=is_row[None] & there)


@triton.jit
def _add_up(
    found, weights, beside, out, WIDTH: tl.constexpr, ACTIVE: tl.constexpr, LANES: tl.constexpr, BESIDE: tl.constexpr
):  # fmt: skip
    """The weighted sum of a row's picks, and what stands beside it. Grid: (rows, width / LANES)."""
    row, lane = tl.program_id(0).to(tl.int64), tl.program_id(1) * LANES + tl.arange(0, LANES)
    inside = lane < WIDTH
    dtype: tl.constexpr = out.dtype.element_ty
    total = tl.zeros((LANES,), tl.float32)
    for number in tl.static_range(ACTIVE):
        pick = row * ACTIVE + number
        total += tl.load(found + pick * WIDTH + lane, mask=inside, other=0.0).to(tl.float32) * tl.load(weights + pick)
    if BESIDE:
        total = total.to(dtype).to(tl.float32) + tl.load(beside + row * WIDTH + lane, mask=inside, other=0.0)
    tl.store(out + row * WIDTH + lane, total, mask=inside)


def choose(logits: Tensor, bias: Tensor | None, mixture: Mixture) -> tuple[Tensor, Tensor]:
    """Each row's experts `[T, active]` and their weights in float32; see :func:`~..experts.choose`."""
    logits = logits.contiguous()
    chosen = logits.new_empty(len(logits), mixture.active, dtype=torch.int32)
    weights = torch.empty_like(chosen, dtype=torch.float32)
    lanes = triton.next_power_of_2(mixture.experts)
    with torch.cuda.device_of(logits):
        _choose[(len(logits),)](
            logits, logits if bias is None else bias, chosen, weights, mixture.scale, TINY, EXPERTS=mixture.experts,
            ACTIVE=mixture.active, GROUPS=mixture.groups, OPEN=mixture.open_groups, SIGMOID=mixture.score == "sigmoid",
            HAS_BIAS=bias is not None, WEIGHS_BIAS=mixture.weighs_bias, NORMED=mixture.normed, LANES=lanes,
            SLOTS=triton.next_power_of_2(mixture.active), num_warps=max(1, lanes // 256),
        )  # fmt: skip
    return chosen, weights


def sort(chosen: Tensor, experts: int) -> tuple[Tensor, Tensor]:
    """The picks sorted by expert, and where those of each expert start, `[experts + 1]`."""
    order, starts = torch.empty_like(chosen).view(-1), chosen.new_empty(experts + 1)
    with torch.cuda.device_of(chosen):
        _sort[(experts,)](chosen, order, starts, len(order), EXPERTS=experts, BLOCK=PICKS_AT_A_TIME, num_warps=4)
    return order, starts


def products(h: Tensor, order: Tensor, starts: Tensor, active: int, gate_ups: Tensor, downs: Tensor) -> Tensor:
    """The output of each pick's expert, `[picks, width]`, by the kernels."""
    (experts, width, hidden), picks = downs.shape, len(order)
    rows = next((each for each in ROWS if picks <= each // 2 * experts), ROWS[-1])
    inner, out = h.new_empty(picks, hidden), h.new_empty(picks, width)
    with torch.cuda.device_of(h):
        _gate_up[(triton.cdiv(hidden, GATE_UP_TILE.block_n), experts)](
            h, gate_ups, order, starts, inner, active, HIDDEN=hidden, K=width, ROWS=rows,
            BLOCK_N=GATE_UP_TILE.block_n, BLOCK_K=GATE_UP_TILE.block_k, STAGES=_stages(GATE_UP_TILE, h),
            EVEN=_divides(GATE_UP_TILE, hidden, width), num_warps=4,
        )  # fmt: skip
        _down[(triton.cdiv(width, DOWN_TILE.block_n), experts)](
            inner, downs, order, starts, out, WIDTH=width, K=hidden, ROWS=rows, BLOCK_N=DOWN_TILE.block_n,
            BLOCK_K=DOWN_TILE.block_k, STAGES=_stages(DOWN_TILE, h), EVEN=_divides(DOWN_TILE, width, hidden),
            num_warps=4,
        )  # fmt: skip
    return out


def grouped(h: Tensor, order: Tensor, starts: Tensor, active: int, gate_ups: Tensor, downs: Tensor) -> Tensor:
    """The same by torch's grouped products."""
    ends, at = starts[1:], order.long()
    inner = silu_mul(functional.grouped_mm(h[at // active], gate_ups.transpose(1, 2), offs=ends))
    found = functional.grouped_mm(inner, downs.transpose(1, 2), offs=ends)
    return torch.empty_like(found).index_copy_(0, at, found)


def _stages(tile: Tile, h: Tensor) -> int:
    """A tile's pipeline stages: in float32 half as many, since GPUs of compute capability 8.6 and 8.9 have 99 KB of
    shared memory."""
    return tile.stages * 2 // h.element_size()


def _divides(tile: Tile, n: int, k: int) -> bool:
    return n % tile.block_n == 0 and k % tile.block_k == 0


def mix(
    h: Tensor,
    logits: Tensor,
    bias: Tensor | None,
    mixture: Mixture,
    gate_ups: Tensor,
    downs: Tensor,
    beside: Tensor | None = None,
) -> Tensor:
    """What the chosen experts make of the rows of `h` `[T, width]`, weighted and added up, and `beside` added to it."""
    h = h.contiguous()
    chosen, weights = choose(logits, bias, mixture)
    order, starts = sort(chosen, mixture.experts)
    is_wide = len(order) > MAX_PICKS_OF_AN_EXPERT * mixture.experts
    product = grouped if is_wide and h.dtype == torch.bfloat16 and hasattr(functional, "grouped_mm") else products
    found, out = product(h, order, starts, mixture.active, gate_ups, downs), torch.empty_like(h)
    width, lanes = h.shape[1], min(triton.next_power_of_2(h.shape[1]), 1024)
    with torch.cuda.device_of(h):
        _add_up[(len(h), triton.cdiv(width, lanes))](
            found, weights, h if beside is None else beside.contiguous(), out, WIDTH=width, ACTIVE=mixture.active,
            LANES=lanes, BESIDE=beside is not None, num_warps=4, enable_fp_fusion=False,
        )  # fmt: skip
    return out
