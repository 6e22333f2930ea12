"""Kernels and layouts beside the plain code."""

from __future__ import annotations

import os
import subprocess
import sys
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.checkpoints import like_the_toy
from uncode.backbones.denoiser import TransformerDenoiser
from uncode.backbones.transformer import attention, linear
from uncode.backbones.transformer.kv_cache import LayerCache
from uncode.backbones.transformer.linear import JoinedMatrix, Matrix
from uncode.backbones.transformer.network import Layer, Transformer
from uncode.core.canvas import Canvas
from uncode.generation.decoding import decode
from uncode.samplers import presets


@pytest.mark.slow
def test_every_kernel_computes_what_the_plain_code_does() -> None:
    pytest.importorskip("triton", reason="kernels are made with triton, which is not everywhere")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.interpreted"],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "only 0-dimensional arrays can be converted to Python scalars" in done.stderr:
        pytest.skip("this Triton's interpreter cannot run a loop with this numpy")
    assert done.stdout == "alike\n", done.stderr[-2000:]


SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
POINTERS = {
    "_partial_sums": "logits:bf16 part_tops:fp32 part_sumexp:fp32 part_exp_bits:fp32 "
    "seeds:i64 offsets:i32 steps:i32 temperatures:fp64 peaks:fp64 picks:i32",
    "_merge_parts": "logits:bf16 part_tops:fp32 part_sumexp:fp32 part_exp_bits:fp32 peaks:fp64 picks:i32 "
    "top:fp32 best:i64 sumexp_others:fp32 exp_second:fp32 sum_exp_bits:fp32 drawn:i64",
    "_bar": "logits:bf16 out:bf16 classes:i32 places:i64 flags:i1",
    "_add_norm": "x:bf16 delta:{} weight:bf16 total:bf16 out:bf16 scale:fp32",
    "_apply_rope": "x:bf16 cos:fp32 sin:fp32 keys:bf16 values:bf16 columns:i64 q_norm:bf16 k_norm:bf16",
    "_silu_mul": "gate_up:bf16 out:bf16",
    "_silu_mul_fp8": "gate_up:bf16 packed:fp8e4nv scale:fp32",
    "_linear": "h:bf16 weight:bf16 bias:bf16 out:{}",
    "_swiglu": "h:bf16 weight:bf16 out:bf16",
    "_flash_attention": "q:bf16 keys:bf16 values:bf16 mask:i1 out:{} stats:fp32",
    "_quantize_rows": "h:bf16 packed:fp8e4nv scale:fp32",
    "_fp8_linear": "h:fp8e4nv scale_h:fp32 weight:fp8e4nv scale_w:fp32 bias:bf16 out:{}",
    "_fp8_swiglu": "h:fp8e4nv scale_h:fp32 weight:fp8e4nv scale_w:fp32 out:bf16",
    "_int4_linear": "h:bf16 weight:u8 scale:bf16 bias:bf16 out:{}",
    "_choose": "logits:fp32 bias:fp32 chosen:i32 weights:fp32",
    "_sort": "chosen:i32 order:i32 starts:i32",
    "_gate_up": "h:bf16 weight:bf16 order:i32 starts:i32 out:bf16",
    "_down": "inner:bf16 weight:bf16 order:i32 starts:i32 out:bf16",
    "_add_up": "found:bf16 weights:fp32 beside:bf16 out:bf16",
    "_merge_splits": "partial:fp32 stats:fp32 out:bf16",
}
"""Arguments that are pointers, and what they point to; {} depends on the constants, and follows them below."""
ATTENTION = {"HEADS": 28, "GROUP": 7, "WIDTH": 128, "QUERIES": 64, "STAGES": 3}
FP8 = {"K": 12288, "EXACT_K": 128}
CONSTANTS: dict[str, list[tuple[dict[str, Any], str]]] = {
    "_partial_sums": [({"VECTORS": 512, "VECTOR": 8, "QUADS": 64, "DRAWS": draws}, "") for draws in (False, True)],
    "_merge_parts": [({"PARTS": 31, "LANES": 32, "TOKENS": 4096, "DRAWS": draws}, "") for draws in (False, True)],
    "_bar": [({"TOKENS": 2048, "COLUMNS": 4}, "")],
    "_add_norm": [
        ({"WIDTH": 4096, "LANES": 4096, "SPLITS": splits, "PACKS": False}, kind)
        for splits, kind in ((1, "bf16"), (4, "fp32"))
    ],
    "_apply_rope": [
        (
            {"HEADS": 28, "KEY_HEADS": 4, "HEADS_EACH": 8, "HALF": 64, "TURNS": turns, "LANES": 64}
            | dict.fromkeys(("CACHED", "BY_ROW", "NORMED"), cached),
            "",
        )
        for cached, turns in ((False, 64), (True, 32))
    ],
    "_silu_mul": [({"LANES": 1024}, "")],
    "_silu_mul_fp8": [({"LANES": 16384}, "")],
    "_linear": [
        ({"K": 3584, "SPLIT_K": splits, "ROWS": 64, "HAS_BIAS": splits == 1, "TILE": tile}, kind)
        for splits, tile, kind in ((1, "LINEAR_TILE", "bf16"), (4, "SPLIT_K_TILE", "fp32"))
    ],
    "_swiglu": [({"K": 3584, "ROWS": rows, "TILE": "SWIGLU_TILE"}, "") for rows in (32, 64)],
    "_quantize_rows": [({"WIDTH": 12288, "LANES": 16384}, "")],
    "_fp8_linear": [
        (FP8 | {"SPLIT_K": splits, "ROWS": 128, "HAS_BIAS": splits == 1, "TILE": tile}, kind)
        for splits, tile, kind in ((1, "LINEAR_TILE", "bf16"), (4, "SPLIT_K_TILE", "fp32"))
    ],
    "_fp8_swiglu": [(FP8 | {"ROWS": rows, "TILE": "SWIGLU_TILE"}, "") for rows in (32, 128)],
    "_int4_linear": [
        (
            {
                "K": 4096,
                "GROUP": 128,
                "SPLIT_K": splits,
                "ROWS": 64,
                "BLOCK_N": 64,
                "STAGES": 4,
                "HAS_BIAS": splits == 1,
            },
            kind,
        )
        for splits, kind in ((1, "bf16"), (4, "fp32"))
    ],
    "_flash_attention": [
        (ATTENTION | {"MASKED": shared, "BY_QUERY": own, "ONE_SPLIT": complete, "BLOCK_KV": keys}, kind)
        for shared, own, complete, kind, keys in (
            (False, False, True, "bf16", 64),
            (True, False, True, "bf16", 32),
            (True, False, False, "fp32", 64),
            (False, True, False, "fp32", 64),
        )
    ],
    "_choose": [
        (
            {"EXPERTS": 256, "ACTIVE": 8, "GROUPS": groups, "OPEN": 4, "LANES": 256, "SLOTS": 8}
            | dict.fromkeys(("SIGMOID", "HAS_BIAS", "NORMED"), groups > 1)
            | {"WEIGHS_BIAS": False},
            "",
        )
        for groups in (1, 8)
    ],
    "_sort": [({"EXPERTS": 256, "BLOCK": 1024}, "")],
    "_gate_up": [
        ({"HIDDEN": 512, "K": 2048, "ROWS": rows, "EVEN": True, "TILE": "GATE_UP_TILE"}, "") for rows in (16, 64)
    ],
    "_down": [({"WIDTH": 2048, "K": 512, "ROWS": rows, "EVEN": True, "TILE": "DOWN_TILE"}, "") for rows in (16, 64)],
    "_add_up": [({"WIDTH": 2048, "ACTIVE": 8, "LANES": 1024, "BESIDE": True}, "")],
    "_merge_splits": [({"HEADS": 4, "WIDTH": 128}, "")],
}


@pytest.mark.parametrize("name", POINTERS)
def test_every_kernel_compiles_for_a_gpu(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Down to machine code of compute capability 9.0, which needs no GPU. With the last constants, which need most
    code; under `make verify` with all of them.
    """
    triton = pytest.importorskip("triton", reason="kernels are made with triton, which is not everywhere")
    from triton.backends.compiler import GPUTarget

    from uncode.backbones.transformer import kernels
    from uncode.core import belief_triton
    from uncode.core.stepper import constraints_triton

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    names = ("pointwise", "linear", "attention", "experts", "quantized")
    homes = (belief_triton, constraints_triton, *(import_module(f"{kernels.__name__}.{name}_triton") for name in names))
    home = next(home for home in homes if hasattr(home, name))
    kernel = getattr(home, name)
    for given, kind in CONSTANTS[name] if SOAK else CONSTANTS[name][-1:]:
        tile = getattr(home, given["TILE"])._asdict() if "TILE" in given else {}
        constants = {key: value for key, value in given.items() if key != "TILE"}
        constants |= {key.upper(): value for key, value in tile.items()}
        pairs = [entry.split(":") for entry in POINTERS[name].format(kind).split()]
        plain = {argument: "fp32" if argument in ("eps", "scale", "tiny") else "i32" for argument in kernel.arg_names}
        signature = plain | {key: f"*{of}" for key, of in pairs} | dict.fromkeys(constants, "constexpr")
        places = {(kernel.arg_names.index(key),): value for key, value in constants.items()}
        source = triton.compiler.ASTSource(fn=kernel, signature=signature, constexprs=places)
        made = triton.compile(
            source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4, "enable_fp_fusion": False}
        )
        assert len(made.asm["cubin"]) > 1000
        assert made.metadata.shared <= 227 * 1024  # what a program may have there


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_products_of_experts_fit_every_gpu(dtype: torch.dtype) -> None:
    """Those of compute capability 8.6 and 8.9 have 99 KB of shared memory for a program."""
    pytest.importorskip("triton", reason="kernels are made with triton, which is not everywhere")
    from uncode.backbones.transformer.kernels import experts_triton

    h = torch.empty(1, dtype=dtype)
    for tile, matrices in ((experts_triton.GATE_UP_TILE, 2), (experts_triton.DOWN_TILE, 1)):
        columns = matrices * tile.block_n + experts_triton.ROWS[-1]
        stage = columns * tile.block_k * dtype.itemsize
        assert experts_triton._stages(tile, h) * stage <= 99 * 1024


@pytest.mark.parametrize("dialect", ["llada", "dream"])  # Dream's projections have biases, and fewer key heads
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fused_projections_are_the_same_network(dialect: str, dtype: torch.dtype) -> None:
    network = deepcopy(like_the_toy(dialect, 5).network).to(dtype)
    assert formats(network) == {Matrix}  # a copy is not joined
    tokens = torch.randint(1, network.shape.vocab, (2, 9), generator=torch.Generator().manual_seed(0))
    angles = torch.rand(1, 1, 9, network.shape.head_width // 2, dtype=dtype)
    before = {name: parameter.clone() for name, parameter in network.named_parameters()}
    apart = network.logits(*network(tokens, (angles.cos(), angles.sin())))
    with torch.enable_grad():
        learning = network.logits(*network(tokens, (angles.cos(), angles.sin())))
    network.fuse()
    assert formats(network) == {JoinedMatrix}
    together = network.logits(*network(tokens, (angles.cos(), angles.sin())))
    torch.testing.assert_close(together, apart, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(learning, apart, atol=1e-4, rtol=1e-4)
    for name, parameter in network.named_parameters():
        assert torch.equal(parameter, before[name])
    layer = network.layers[0]
    assert isinstance(layer, Layer) and isinstance(layer.matrices.qkv, JoinedMatrix)
    assert layer.k.weight.untyped_storage().data_ptr() == layer.matrices.qkv.weight.untyped_storage().data_ptr()
    network.separate_moved_layers()
    assert formats(network) == {JoinedMatrix}  # nothing has moved
    assert formats(deepcopy(network)) == {Matrix}


def formats(network: Transformer) -> set[type[Matrix]]:
    """The formats of a network's weights."""
    return {type(matrix) for layer in network.layers for matrix in layer.matrices}  # type: ignore[union-attr]


class Int8Matrix(Matrix):
    """Weights in 8 bits with a scale for each output: another format is one class."""

    def __init__(self, *linears: nn.Linear) -> None:
        super().__init__(*linears)
        weight = torch.cat([linear.weight for linear in linears])
        self.scale = weight.abs().amax(1) / 127
        self.weight = (weight / self.scale[:, None]).round().to(torch.int8)
        self.bias = None if linears[0].bias is None else torch.cat([linear.bias for linear in linears])

    def product(self, h: torch.Tensor) -> torch.Tensor:
        output = nn.functional.linear(h, self.weight.to(h.dtype)) * self.scale
        return output if self.bias is None else output + self.bias

    def split_k(self, h: torch.Tensor) -> torch.Tensor:
        return self.product(h)


def test_another_weight_format_is_one_class() -> None:
    network = deepcopy(like_the_toy("dream", 5).network)
    tokens = torch.randint(1, network.shape.vocab, (2, 9), generator=torch.Generator().manual_seed(0))
    angles = torch.rand(1, 1, 9, network.shape.head_width // 2, dtype=torch.float64)
    with torch.no_grad():
        plain = network.logits(*network(tokens, (angles.cos(), angles.sin())))
        network.store_as(Int8Matrix)
        found = network.logits(*network(tokens, (angles.cos(), angles.sin())))
    network.separate_moved_layers()
    assert formats(network) == {Int8Matrix}
    assert not torch.equal(found, plain)
    assert float((found - plain).abs().max()) < 0.05 * float(plain.abs().max())


@pytest.mark.parametrize("index", [torch.tensor([[2, 3, 4]]), torch.tensor([[0, 5, 1], [8, 2, 2]])])
def test_wanted_columns_equal_those_of_a_full_forward(index: torch.Tensor) -> None:
    network = like_the_toy("dream", 5).network
    tokens = torch.randint(1, network.shape.vocab, (2, 9), generator=torch.Generator().manual_seed(0))
    angles = torch.rand(1, 1, 9, network.shape.head_width // 2, dtype=torch.float64)
    whole = network.logits(*network(tokens, (angles.cos(), angles.sin())))
    partial = network.logits(*network(tokens, (angles.cos(), angles.sin()), wanted=index))
    rows = torch.arange(2)[:, None]
    torch.testing.assert_close(partial, whole[rows, index.expand(2, -1)], atol=1e-12, rtol=0)


def test_a_fused_network_trains_and_moves() -> None:
    network = deepcopy(like_the_toy("llada", 5).network)
    network.fuse()
    network.requires_grad_(True)
    angles = torch.rand(1, 1, 4, network.shape.head_width // 2)
    rope = angles.cos().double(), angles.sin().double()
    network.logits(*network(torch.arange(1, 5)[None], rope)).sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())
    assert network.embed.weight.dtype == torch.float64
    network.float()
    network.separate_moved_layers()
    assert formats(network) == {Matrix}
    with torch.no_grad():
        network(torch.arange(1, 5)[None], (angles.cos(), angles.sin()))


def test_keys_and_values_are_cached_in_their_columns() -> None:
    stored: list[torch.Tensor] = []
    fresh = torch.arange(1.0, 9.0).view(2, 1, 2, 2)
    LayerCache(stored, (3, 1, 6, 2), torch.tensor([4, 1])).write(fresh, -fresh)
    keys, values = stored
    assert keys[0, 0].tolist() == [[0, 0], [3, 4], [0, 0], [0, 0], [1, 2], [0, 0]]
    later = LayerCache(stored, (3, 1, 6, 2), torch.tensor([[5, 0], [2, 5]]))
    later.write(fresh, -fresh)
    seen, _ = later.read(2)
    assert seen.shape == (2, 1, 5, 2)  # without the spare column
    assert seen[:, 0, [0, 2]].tolist() == [[[3, 4], [0, 0]], [[0, 0], [5, 6]]]
    assert torch.equal(values, -keys) and not keys[2].any() and stored[0] is keys


def test_offloaded_layers_keep_their_kv_cache() -> None:
    accelerate = pytest.importorskip("accelerate")
    shared = like_the_toy("llada", 5)
    model = TransformerDenoiser(
        deepcopy(shared.network), shared.dialect, mask_id=shared.mask_id, eos_ids=shared.eos_ids
    )
    canvas = Canvas.after_prompt([[1, 2, 3], [4]], length=12, mask_id=model.mask_id)
    wanted = decode(model, canvas, presets.semi_ar(blocks=3, cache="dual")).tokens
    accelerate.cpu_offload(model.network.layers[1], execution_device="cpu")
    found = decode(model, canvas, presets.semi_ar(blocks=3, cache="dual")).tokens
    assert torch.equal(found, wanted)
    assert any(weight.is_meta for weight in model.network.parameters())
    assert not any(weight.is_meta for weight in shared.network.parameters())  # other tests read it


@pytest.mark.parametrize(
    ("width", "depth", "rows", "skinny"),
    [
        (12288, 4096, 32, True),  # LLaDA's gates
        (4608, 3584, 64, True),  # Dream's queries, keys and values
        (3584, 18944, 1, True),
        (12288, 4096, 65, False),
        (256, 256, 32, False),  # small
        (12300, 4096, 32, False),  # no multiple of a tile
        (4096, 4100, 32, False),
    ],
)
def test_which_products_are_skinny(
    width: int, depth: int, rows: int, skinny: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    h, weight = torch.empty(1, rows, depth, device="meta"), torch.empty(width, depth, device="meta")
    assert not linear.is_skinny(h, weight)  # not on a GPU
    monkeypatch.setattr(linear, "pays_on", lambda _: True)
    assert linear.is_skinny(h, weight) == skinny
    assert not linear.is_skinny(h.half(), weight) and not linear.is_skinny(
        h, torch.empty(depth, width, device="meta").t()
    )


@pytest.mark.parametrize(
    ("heads", "width", "queries", "keys", "masked", "ours"),
    [
        (4, 64, 150, 150, True, True),
        (4, 64, 256, 256, True, True),
        (4, 64, 257, 257, True, False),
        (4, 64, 150, 150, False, False),
        (4, 64, 32, 700, True, False),
        (4, 32, 150, 150, True, False),
        (32, 128, 32, 700, False, True),
        (32, 128, 64, 700, True, True),
        (32, 128, 65, 700, False, False),
        (32, 128, 150, 150, True, False),
    ],
)
def test_attention_is_ours_where_it_was_measured_to_pay(
    heads: int, width: int, queries: int, keys: int, masked: bool, ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "pays_on", lambda _: True)
    q, k = torch.empty(2, heads, queries, width), torch.empty(2, heads, keys, width)
    mask = torch.ones(2, 1, 1, keys, dtype=torch.bool) if masked else None
    assert attention._is_kernel_shape(q, k, k, mask) is ours
