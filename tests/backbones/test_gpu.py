"""What runs on a GPU alone: kernels for few rows beside float64, at the sizes of real models, and steps that no look
of the host holds up."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from inspect import signature
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.checkpoints import like_the_toy
from uncode.backbones.denoiser import TransformerDenoiser
from uncode.backbones.dialects.fast_dllm import FAST_DLLM_V2
from uncode.backbones.dialects.llada import LLADA
from uncode.backbones.dialects.llada2 import LLADA2
from uncode.backbones.dialects.sdar import SDAR
from uncode.backbones.transformer import attention, cuda_graph, experts, linear, pointwise, quantized
from uncode.backbones.transformer.mixture import Mixture
from uncode.backbones.transformer.network import Transformer
from uncode.backbones.transformer.shape import Shape
from uncode.core.canvas import Canvas
from uncode.core.pieces.blocks import SlidingWindow
from uncode.core.pieces.cache import BlockCache, PrefixCache, WindowCache
from uncode.core.pieces.policy import Policy, Sampler
from uncode.core.pieces.score import Confidence, ExponentialPosition
from uncode.core.pieces.select import Exactly, TopK
from uncode.core.stepper.forwards import LookAhead
from uncode.core.support.transfer import Download
from uncode.frequency import FrequencyTable
from uncode.generation.decoding import decode, steps
from uncode.samplers import presets

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")

LIKE_LLADA, LIKE_DREAM = (4096, 12288, 12288), (3584, 4608, 18944)
"""Width, columns of queries, keys and values, and hidden width."""
KINDS = [torch.bfloat16, torch.float16]


def draw(*shape: int, dtype: torch.dtype, scale: float = 1.0) -> Tensor:
    random = torch.Generator("cuda").manual_seed(sum(shape))
    return (torch.randn(*shape, generator=random, device="cuda") * scale).to(dtype)


def close(found: Tensor, wanted: Tensor) -> None:
    """Within two units of the last place of the largest numbers."""
    eps = torch.finfo(found.dtype if found.dtype != torch.float32 else torch.bfloat16).eps
    assert float((found.double() - wanted).abs().max()) <= 2 * eps * float(wanted.abs().max())


@pytest.fixture(autouse=True)
def _without_gradients() -> Iterator[None]:
    with torch.inference_mode():
        yield


here = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] != 9, reason="needs compute capability 9"
)


@here
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("sizes", [LIKE_LLADA, LIKE_DREAM])
@pytest.mark.parametrize("rows", [1, 7, 32, 64])
def test_skinny_products(rows: int, sizes: tuple[int, int, int], dtype: torch.dtype) -> None:
    from uncode.backbones.transformer.kernels import linear_triton

    width, joint, hidden = sizes
    h = draw(1, rows, width, dtype=dtype)
    qkv, bias = draw(joint, width, dtype=dtype, scale=0.02), draw(joint, dtype=dtype)
    assert linear.is_skinny(h, qkv)
    close(linear_triton.linear(h, qkv, bias), functional.linear(h.double(), qkv.double(), bias.double()))
    close(linear_triton.linear(h, qkv), functional.linear(h.double(), qkv.double()))
    both = draw(2 * hidden, width, dtype=dtype, scale=0.02)
    gate, up = functional.linear(h.double(), both.double()).chunk(2, -1)
    close(linear_triton.swiglu(h, both), functional.silu(gate) * up)
    wide, down = draw(1, rows, hidden, dtype=dtype), draw(width, hidden, dtype=dtype, scale=0.02)
    close(linear_triton.split_k(wide, down).sum(0), functional.linear(wide.double(), down.double()))


@here
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("rows", [1, 32, 300])
def test_rows_in_fp8(rows: int, dtype: torch.dtype) -> None:
    """By the kernels, alone and after a norm, bit for bit as by the plain code."""
    from uncode.backbones.transformer.kernels import pointwise_triton

    x, parts, weight = (
        draw(1, rows, 4096, dtype=dtype),
        draw(4, 1, rows, 4096, dtype=torch.float32),
        draw(4096, dtype=dtype),
    )
    x[0, 0] = parts[:, 0, 0] = 0
    total, numbers, scale = pointwise_triton.add_norm_fp8(x, parts, weight, 1e-5)
    plain_total, h = pointwise.add_norm(x, parts, weight, 1e-5)
    assert torch.equal(total, plain_total)
    both = torch.cat((h, h), -1)
    found, found_scale = pointwise_triton.silu_mul_fp8(both)
    wanted, wanted_scale = pointwise_triton.quantize_rows(pointwise_triton.silu_mul(both))
    assert torch.equal(found_scale, wanted_scale) and torch.equal(found.view(torch.uint8), wanted.view(torch.uint8))
    for found, found_scale in ((numbers, scale), pointwise_triton.quantize_rows(h)):
        wanted, wanted_scale = quantized._fp8_rows(h.float())
        assert torch.equal(found_scale, wanted_scale) and torch.equal(found.view(torch.uint8), wanted.view(torch.uint8))


@here
@pytest.mark.parametrize("name", quantized.FORMATS)
@pytest.mark.parametrize("sizes", [LIKE_LLADA, LIKE_DREAM])
@pytest.mark.parametrize("rows", [1, 32, 64, 100, 300])
def test_packed_products(rows: int, sizes: tuple[int, int, int], name: str) -> None:
    """Beside float64 products of what is packed: by the kernels for few rows, `_scaled_mm` and plain ones for many."""
    (width, joint, hidden), kind = sizes, quantized.FORMATS[name]

    def product(x: Tensor, packed: tuple[Tensor, Tensor]) -> Tensor:
        rows = quantized.quantize_rows(x)
        wide = rows.numbers.double() * rows.scale.double()[..., None] if name == "fp8" else x.double()
        return wide @ kind.unpack_rows(*packed, torch.float64).T

    h, bias = draw(1, rows, width, dtype=torch.bfloat16), draw(joint, dtype=torch.bfloat16)
    qkv, both, down = (
        kind.pack(draw(*shape, dtype=torch.bfloat16, scale=0.02))
        for shape in ((joint, width), (2 * hidden, width), (width, hidden))
    )
    close(kind.linear(h, *qkv, bias), product(h, qkv) + bias.double())
    close(kind.linear(h, *qkv), product(h, qkv))
    gate, up = product(h, both).chunk(2, -1)
    opened = kind.swiglu(h, *both)
    if isinstance(opened, quantized.PackedRows):
        by_two = quantized.quantize_rows(pointwise.silu_mul(kind.linear(h, *both)))
        assert torch.equal(opened.scale, by_two.scale)
        assert torch.equal(opened.numbers.view(torch.uint8), by_two.numbers.view(torch.uint8))
    else:
        close(opened, functional.silu(gate) * up)
    wide = draw(1, rows, hidden, dtype=torch.bfloat16)
    parts = kind.split_k(wide, *down)
    assert (parts.dim() == 4) == (name != "int8" and rows <= (128 if name == "fp8" else 64))
    close(parts.sum(0) if parts.dim() == 4 else parts, product(wide, down))


@here
@pytest.mark.parametrize("name", quantized.FORMATS)
def test_a_packed_network_decodes_by_graphs_as_without(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = Shape(4096, 2, 32, 32, 12288, 1024, theta=500000.0, eps=1e-5, context=4096)
    network = Transformer(shape).to(torch.bfloat16).to_empty(device="cuda")
    for parameter in network.parameters():
        parameter.normal_(float(parameter.dim() == 1), 0.02)
    network.fuse()
    network.quantize(name)
    model = TransformerDenoiser(network, LLADA, mask_id=0, eos_ids=(1,))
    canvas = Canvas.after_prompt([[5, 6, 7, 8] * 20, [9, 3]], 64, 0)
    sampler = presets.semi_ar(blocks=2, cache="dual", steps=16)
    captured = decode(model, canvas, sampler)
    monkeypatch.setattr(cuda_graph, "MAX_TOKENS", 0)
    assert torch.equal(decode(model, canvas, sampler).tokens, captured.tokens)


@here
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(("heads", "key_heads"), [(32, 32), (28, 4)])
@pytest.mark.parametrize(("batch", "queries"), [(1, 32), (2, 32), (1, 1), (9, 5)])
def test_attention_of_few_queries(batch: int, queries: int, heads: int, key_heads: int, dtype: torch.dtype) -> None:
    q = draw(batch, queries, heads * 128, dtype=dtype).view(batch, queries, heads, 128).transpose(1, 2)
    k, v = draw(2, batch, key_heads, 701, 128, dtype=dtype)[:, :, :, :700]
    seen = torch.rand(batch, 1, 1, 700, device="cuda") < 0.5
    seen[..., :300], seen[..., -1] = False, True  # rows that begin late
    assert attention._is_kernel_shape(q, k, v, None)
    for mask in (None, seen):
        wide = (t.double() for t in (q, k, v))
        wanted = functional.scaled_dot_product_attention(*wide, attn_mask=mask, enable_gqa=True)
        close(attention.attention(q, k, v, mask), wanted.transpose(1, 2).flatten(2))


@here
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(("heads", "width"), [(4, 64), (32, 128)])
@pytest.mark.parametrize("length", [33, 150, 256])
@pytest.mark.parametrize("batch", [1, 40])
def test_attention_of_short_rows(batch: int, length: int, heads: int, width: int, dtype: torch.dtype) -> None:
    from uncode.backbones.transformer.kernels import attention_triton

    qkv = draw(batch, length, 3 * heads * width, dtype=dtype).view(batch, length, 3 * heads, width).transpose(1, 2)
    q, k, v = qkv.split(heads, 1)
    starts = torch.randint(0, length, (batch, 1, 1, 1), device="cuda")
    seen = torch.arange(length, device="cuda") >= starts
    wanted = functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=seen)
    close(attention_triton.flash_attention(q, k, v, seen), wanted.transpose(1, 2).flatten(2))
    if heads == 4:
        assert attention._is_kernel_shape(q, k, v, seen)
        assert torch.equal(attention.attention(q, k, v, seen), attention_triton.flash_attention(q, k, v, seen))


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("rows", [1, 3])
def test_a_window_step_waits_for_its_facts_alone(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sync a step, beside a forward that runs already; one captured graph for the whole decode."""
    toy = like_the_toy("llada", 5)
    network = deepcopy(toy.network).float().cuda()
    model = TransformerDenoiser(network, LLADA, mask_id=toy.mask_id, eos_ids=toy.eos_ids)
    policy = Policy(Confidence() + ExponentialPosition(0.3), TopK(Exactly(2)), SlidingWindow(16, columns=16))
    sampler = Sampler(policy, cache=WindowCache(margin=8, every=None, prompt_every=None))
    canvas = Canvas.after_prompt([[1, 2, 3] * 4, [4] * 7, [5] * 12][:rows], length=96, mask_id=toy.mask_id)
    run, looks, launched = steps(model, canvas, sampler), list[bool](), list[object]()
    looked, kept = Download.__call__, LookAhead.keep_logits
    monkeypatch.setattr(LookAhead, "keep_logits", lambda self, *args: (launched.append(args), kept(self, *args)))

    def look(self: Download) -> Any:
        torch.cuda.set_sync_debug_mode("default")
        looks.append(len(launched) > len(looks))  # the next forward is under way
        found = looked(self)
        torch.cuda.set_sync_debug_mode("error")
        return found

    for _ in range(4):
        next(run)
    launched.clear()
    monkeypatch.setattr(Download, "__call__", look)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(20):
            next(run)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert looks == [True] * 20 and len(run.state.session.graphs.graphs) == 1  # type: ignore[attr-defined]


@here
@pytest.mark.parametrize("queries", [4, 9, 64])
def test_attention_with_a_mask_for_each_query(queries: int) -> None:
    """As where a block of a block-causal model opens: the queries of the block before see less."""
    from uncode.backbones.transformer.kernels import attention_triton

    q, k, v = (draw(3, heads, n, 128, dtype=torch.bfloat16) for heads, n in ((16, queries), (8, 700), (8, 700)))
    blocks = torch.arange(700 - queries, 700, device="cuda") // 4
    seen = (torch.arange(700, device="cuda") // 4 <= blocks[:, None]).expand(3, 1, -1, -1).clone()
    seen[0, ..., :90] = False
    assert attention._is_kernel_shape(q, k, v, seen)
    wanted = functional.scaled_dot_product_attention(
        q.double(), k.double(), v.double(), attn_mask=seen, enable_gqa=True
    )
    close(attention_triton.flash_attention(q, k, v, seen), wanted.transpose(1, 2).flatten(2))


@here
@pytest.mark.parametrize("shift", [0, 1])
def test_the_exact_cache_of_a_wide_block_causal_model(shift: int) -> None:
    """In bfloat16 with the kernels and captured graphs: the beliefs of a decode without a cache, but for rounding."""
    shape = Shape(2048, 2, 16, 8, 4096, 1024, 1e6, 1e-6, 512, head_dim=128, qk_norm=not shift, block_length=4)
    network = Transformer(shape).to(torch.bfloat16).to_empty(device="cuda")
    random = torch.Generator("cuda").manual_seed(0)
    for parameter in network.parameters():
        parameter.normal_(float(parameter.dim() == 1), 0.02, generator=random)
    network.fuse()
    model = TransformerDenoiser(network, FAST_DLLM_V2 if shift else SDAR, mask_id=0, eos_ids=(1,))
    canvas = Canvas.after_prompt([list(range(5, 40)), [8, 9], list(range(50, 63))], length=[24, 31, 40], mask_id=0)
    left_to_right = presets.left_to_right(block_length=4)
    found, wanted = (
        decode(model, canvas, left_to_right.caching(cache)) for cache in (BlockCache(), PrefixCache(refresh=1))
    )
    first = found.commit_step == 0  # before a token that rounding has chosen
    torch.testing.assert_close(found.logp[first], wanted.logp[first], atol=0.05, rtol=0)


MIXTURES = {
    "llada2": Mixture(
        256, 8, 512, 512, (0,), "sigmoid", has_bias=True, groups=8, open_groups=4, normed=True, scale=2.5
    ),
    "llada_moe": Mixture(64, 8, 1024),
}


@pytest.mark.parametrize("rows", [1, 32, 500, 3000])
@pytest.mark.parametrize("name", MIXTURES)
def test_experts(name: str, rows: int) -> None:
    """The choice, the order, and the products by the kernels and by torch's grouped ones, beside float64."""
    from uncode.backbones.transformer.kernels import experts_triton

    mixture, width = MIXTURES[name], 2048
    count, hidden = mixture.experts, mixture.hidden
    h, beside = (draw(rows, width, dtype=torch.bfloat16, scale=scale) for scale in (1.0, 0.5))
    gate_ups = draw(count, 2 * hidden, width, dtype=torch.bfloat16, scale=0.02)
    downs = draw(count, width, hidden, dtype=torch.bfloat16, scale=0.02)
    logits, bias = draw(rows, count, dtype=torch.float32), draw(count, dtype=torch.float32, scale=0.1)
    own_bias = bias if mixture.has_bias else None
    chosen, weights = experts.choose(logits, own_bias, mixture)
    found, own = experts_triton.choose(logits, own_bias, mixture)
    assert (found == chosen).float().mean() > 0.999  # two scores may be as good as equal
    torch.testing.assert_close(own, weights, atol=1e-4, rtol=1e-4)
    order, starts = experts_triton.sort(found, count)
    assert torch.equal(order.long(), found.flatten().argsort(stable=True))
    given = (h, order, starts, mixture.active, gate_ups, downs)
    wanted = torch.empty(rows * mixture.active, width, dtype=torch.float64, device="cuda")
    for expert in range(count):
        mine = (found.flatten() == expert).nonzero().flatten()
        gate, up = functional.linear(h[mine // mixture.active].double(), gate_ups[expert].double()).chunk(2, -1)
        wanted[mine] = functional.linear(functional.silu(gate) * up, downs[expert].double())
    close(experts_triton.products(*given), wanted)
    if hasattr(functional, "grouped_mm"):
        close(experts_triton.grouped(*given), wanted)
    mixed = (wanted.view(rows, mixture.active, width) * own[..., None]).sum(1) + beside
    close(experts_triton.mix(h, logits, own_bias, mixture, gate_ups, downs, beside), mixed)


@here
def test_a_mixture_of_experts_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a host sync: graphs are captured and replayed, and the exact cache gives the beliefs without a cache."""
    captured, capture = list[object](), cuda_graph.CapturedForward.capture
    monkeypatch.setattr(
        cuda_graph.CapturedForward, "capture", lambda self, *args: (captured.append(self), capture(self, *args))
    )
    more = {"head_dim": 128, "qk_norm": True, "block_length": 4, "rotary_dim": 64, "mixture": MIXTURES["llada2"]}
    network = Transformer(Shape(2048, 2, 16, 4, 5120, 1024, 6e5, 1e-6, 512, **more)).to(torch.bfloat16)  # type: ignore[arg-type]
    network = network.to_empty(device="cuda")
    random = torch.Generator("cuda").manual_seed(0)
    for parameter in network.parameters():
        parameter.normal_(float(parameter.dim() == 1), 0.02, generator=random)
    network.fuse()
    model = TransformerDenoiser(network, LLADA2, mask_id=0, eos_ids=(1,))
    canvas = Canvas.after_prompt([list(range(5, 40)), [8, 9], list(range(50, 63))], length=[24, 31, 40], mask_id=0)
    left_to_right = presets.left_to_right(block_length=4)
    found, wanted = (
        decode(model, canvas, left_to_right.caching(cache)) for cache in (BlockCache(), PrefixCache(refresh=1))
    )
    assert captured
    first = found.commit_step == 0  # before a token that rounding has chosen
    torch.testing.assert_close(found.logp[first], wanted.logp[first], atol=0.05, rtol=0)


@pytest.mark.parametrize("cache", ["none", "prefix", "dual", "window"])
def test_a_second_answer_of_the_same_size_captures_nothing(cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes over graphs and KV cache of the first, and is as in a model that has not answered before."""
    captured, capture = list[object](), cuda_graph.CapturedForward.capture
    monkeypatch.setattr(
        cuda_graph.CapturedForward, "capture", lambda self, *args: (captured.append(self), capture(self, *args))
    )
    toy = like_the_toy("llada", 5)
    network = deepcopy(toy.network).float().cuda()
    sampler = presets.semi_ar(blocks=4, steps=24, cache="none" if cache == "window" else cache)  # type: ignore[arg-type]
    if cache == "window":
        policy = Policy(Confidence(), TopK(Exactly(2)), SlidingWindow(16, columns=16))
        sampler = Sampler(policy, cache=WindowCache())

    def answer(model: TransformerDenoiser, prompt: list[int]) -> Tensor:
        return decode(model, Canvas.after_prompt([prompt], length=96, mask_id=toy.mask_id), sampler).tokens

    def fresh() -> TransformerDenoiser:
        return TransformerDenoiser(network, LLADA, mask_id=toy.mask_id, eos_ids=toy.eos_ids)

    one, other = [1, 2, 3] * 4, [4, 5, 6] * 4
    model = fresh()
    first, count = answer(model, one), len(captured)
    assert torch.equal(answer(model, other), answer(fresh(), other))
    before = len(captured)
    assert torch.equal(answer(model, one), first)
    assert count and (cache == "window" or len(captured) == before == 2 * count)


FORESEEN = [
    "uniform",
    "confidence",
    "entropy",
    "margin",
    "left_to_right",
    "semi_ar",
    "tau_leaping",
    "uncode",
    "uncode_tau",
]


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("options", [{}, {"temperature": 0.7}, {"cache": "dual"}], ids=str)
@pytest.mark.parametrize("name", FORESEEN)
def test_no_step_waits_for_the_device(name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks, which schedules foresee, the host runs ahead."""
    preset = presets.PRESETS[name]
    if options.keys() - signature(preset).parameters.keys():
        pytest.skip(f"{name} has no such option")
    toy = like_the_toy("llada", 5)
    network = deepcopy(toy.network).float().cuda()
    model = TransformerDenoiser(network, LLADA, mask_id=toy.mask_id, eos_ids=toy.eos_ids)
    table = FrequencyTable(torch.arange(1, network.shape.vocab + 1), "a ramp")
    sampler = preset(**options, **({"frequency": table} if name.startswith("uncode") else {}))
    rows = steps(model, Canvas.after_prompt([[1, 2, 3], [4]], length=96, mask_id=toy.mask_id), sampler)
    for _ in range(4):  # a block's first step is looked at, and shapes that are new are captured
        next(rows)
    monkeypatch.delattr("uncode.core.support.transfer.Download.__call__")  # a look, which torch does not tell
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(6):
            next(rows)
    finally:
        torch.cuda.set_sync_debug_mode("default")
