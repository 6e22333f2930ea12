"""Weights in fp8, int8 and int4: how far they are off, their products, and how they are loaded."""

from __future__ import annotations

import pickle
import sys
import weakref
from copy import deepcopy
from math import gcd
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import uncode
from tests.checkpoints import DIALECTS, WITH_EXPERTS, checkpoint, llada_config, llada_weights, save
from tests.covering import covering
from uncode import Canvas, UncodeError, decode, presets
from uncode.backbones.loading import checkpoint as checkpoints
from uncode.backbones.loading import memory
from uncode.backbones.loading.memory import ModelSize
from uncode.backbones.transformer import kernels as kernels_of
from uncode.backbones.transformer import quantized
from uncode.backbones.transformer.network import PROJECTIONS, Transformer
from uncode.backbones.transformer.quantized import (
    FORMATS,
    FP8,
    Fp8,
    JoinedQuantizedMatrix,
    PackedRows,
    QuantizedLinear,
    QuantizedMatrix,
    quantize_rows,
)
from uncode.backbones.transformer.shape import Shape
from uncode.cli.devices import WEIGHTS
from uncode.evals.run.models.model import weights_fingerprint

NAMES = tuple(FORMATS)
PACKED = [dialect for dialect in DIALECTS if dialect not in WITH_EXPERTS]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def network_of(folder: Path, dialect: str, number: int = 0, **options: Any) -> Transformer:
    model: Any = uncode.load(checkpoint(folder, dialect, number), device="cpu", **options)
    return model.network  # type: ignore[no-any-return]


def logits_of(network: Transformer, rows: int = 2, columns: int = 9) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(1, network.shape.vocab, (rows, columns), generator=generator)
    angles = torch.rand(1, 1, columns, network.shape.head_width // 2, generator=generator)
    with torch.no_grad():
        return network.logits(*network(tokens, (angles.cos(), angles.sin())))


def kinds(network: Transformer) -> set[type]:
    return {type(matrix) for layer in network.layers for matrix in layer.matrices}  # type: ignore[union-attr]


# -- formats -------------------------------------------------------------------------------------


def test_the_command_line_knows_all_formats() -> None:
    assert set(WEIGHTS) == set(FORMATS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [16, 48, 256, 704])
def test_a_packed_number_is_off_by_at_most_half_a_step(name: str, width: int) -> None:
    weight = normal(33, width) * torch.logspace(-4, 4, 33)[:, None]
    weight[3] = 0.0
    kind = FORMATS[name]
    packed, scale = kind.pack(weight)
    found = kind.unpack_rows(packed, scale, torch.float32)
    off = (found - weight).abs()
    assert not found[3].any() and found.isfinite().all()
    if name == "fp8":  # three bits of mantissa; below its normal numbers e4m3 has steps of 2 ** -9
        allowed = torch.maximum(weight.abs() / 16, scale[:, None] * 2.0**-10)
    elif name == "int8":
        allowed = scale[:, None] / 2
    else:  # step and lowest number are rounded to 8 bits
        groups = weight.view(33, -1, gcd(width, 128))
        least, most = groups.amin(-1, keepdim=True), groups.amax(-1, keepdim=True)
        allowed = ((most - least) / 30 * 1.1 + (least.abs() + most.abs()) / 128).expand_as(groups).reshape(33, width)
    assert (off <= allowed * 1.001 + 1e-30).all()


@pytest.mark.parametrize(("name", "bits"), [("fp8", 8), ("int8", 8), ("int4", 4)])
def test_the_memory_of_a_matrix(name: str, bits: int) -> None:
    packed, scale = FORMATS[name].pack(normal(64, 256))
    assert packed.nbytes == 64 * 256 * bits // 8
    assert scale.nbytes == (64 * 2 * 4 if name == "int4" else 64 * 4)


def test_a_matrix_is_packed_block_by_block_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    weight, h = normal(37, 64), normal(5, 64, seed=1)
    for kind in FORMATS.values():
        whole = kind.pack(weight)
        product = kind.linear(h, *whole)
        with monkeypatch.context() as patched:
            patched.setattr(quantized, "CPU_BLOCK", 256)
            parts = kind.pack(weight)
            torch.testing.assert_close(kind.linear(h, *parts), product, atol=1e-5, rtol=1e-5)
        assert all(torch.equal(a.float(), b.float()) for a, b in zip(whole, parts, strict=True))


def test_fp8_is_widened_exactly() -> None:
    """The fast way of a CPU, for all numbers but the two that are none."""
    every = torch.arange(256, dtype=torch.uint8).view(FP8)
    wanted = every.float()
    found = quantized._widen_fp8(every)
    assert torch.equal(found[~wanted.isnan()], wanted[~wanted.isnan()]) and wanted.isnan().sum() == 2


def test_the_formula_of_the_activations() -> None:
    h = torch.tensor([[0.5, -2.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    packed, scale, dtype = quantize_rows(h[None])
    assert dtype == h.dtype
    assert packed.shape == (1, 2, 4) and scale.shape == (1, 2)
    assert packed[0, 0].float().tolist() == [112.0, -448.0, 224.0, 0.0] and scale[0, 0] == torch.tensor(2 / 448)
    assert not packed[0, 1].float().any()
    assert quantize_rows(torch.tensor([[float("nan"), 1.0]]))[0].float().isnan().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_products_are_those_of_the_formula(dtype: torch.dtype) -> None:
    h, weight, bias = normal(2, 3, 48, seed=1).to(dtype), normal(80, 48).to(dtype), normal(80, seed=2).to(dtype)
    rounding = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float64: 1e-5}[dtype]
    for name, kind in FORMATS.items():
        packed, scale = kind.pack(weight)
        if name == "fp8":
            numbers, own, _ = quantize_rows(h)
            wanted = (numbers.double() @ packed.double().T) * own.double()[..., None] * scale.double()
        else:
            wanted = h.double() @ kind.unpack_rows(packed, scale, dtype).double().T
        found = kind.linear(h, packed, scale, bias)
        assert found.dtype == dtype
        torch.testing.assert_close(found.double(), wanted + bias.double(), atol=10 * rounding, rtol=rounding)
        torch.testing.assert_close(kind.linear(h, packed, scale).double(), wanted, atol=10 * rounding, rtol=rounding)
        assert torch.equal(kind.split_k(h, packed, scale), kind.linear(h, packed, scale))
        gate, up = kind.linear(h, packed, scale).chunk(2, -1)
        assert torch.equal(kind.swiglu(h, packed, scale), functional.silu(gate) * up)


# -- networks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dialect", "name"), covering(PACKED, NAMES))
def test_loading_packed_is_packing_what_was_loaded(tmp_path: Path, dialect: str, name: str) -> None:
    """Bias of Dream's projections included; head, embedding and norms stay as they are."""
    packed, plain = network_of(tmp_path, dialect, weights=name), network_of(tmp_path, dialect)
    whole = logits_of(plain)
    before = dict(deepcopy(plain).named_parameters())
    plain.quantize(name)
    assert kinds(packed) == kinds(plain) == {JoinedQuantizedMatrix} and packed.weights == plain.weights == name
    mine, theirs = (dict([*one.named_parameters(), *one.named_buffers()]) for one in (packed, plain))
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[key].float(), theirs[key].float()) for key in mine)
    found = logits_of(packed)
    assert torch.equal(found, logits_of(plain))
    assert 0 < float((found - whole).abs().max()) < 0.5 * float(whole.abs().max())
    for key, parameter in before.items():
        if key.split(".")[-2] not in PROJECTIONS or key.endswith("bias"):
            assert torch.equal(mine[key], parameter)


@pytest.mark.parametrize(("dialect", "name"), covering(PACKED, NAMES))
def test_joined_projections_are_the_same_network(tmp_path: Path, dialect: str, name: str) -> None:
    network = network_of(tmp_path, dialect, weights=name, dtype="float64")
    joined = logits_of(network)
    layer: Any = network.layers[0]
    assert layer.k.weight.untyped_storage().data_ptr() == layer.matrices.qkv.weight.untyped_storage().data_ptr()
    assert layer.k.scale.untyped_storage().data_ptr() == layer.matrices.qkv.scale.untyped_storage().data_ptr()
    network.separate_moved_layers()
    assert kinds(network) == {JoinedQuantizedMatrix}  # nothing has moved
    copy = deepcopy(network)
    assert kinds(copy) == {QuantizedMatrix}
    torch.testing.assert_close(logits_of(copy), joined, atol=1e-6, rtol=1e-6)
    copy.fuse()
    assert kinds(copy) == {JoinedQuantizedMatrix} and torch.equal(logits_of(copy), joined)
    for linear in copy.modules():  # as `to` does on the way to another device
        if isinstance(linear, QuantizedLinear):
            linear.weight.data, linear.scale = linear.weight.clone(), linear.scale.clone()
    copy.separate_moved_layers()
    assert kinds(copy) == {QuantizedMatrix}
    torch.testing.assert_close(logits_of(copy), joined, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_copies_and_pickles(tmp_path: Path, name: str) -> None:
    network = network_of(tmp_path, "dream", weights=name)
    wanted = logits_of(network)
    torch.save(network, tmp_path / "network.pt")
    copies = [torch.load(tmp_path / "network.pt", weights_only=False), deepcopy(network)]
    if name != "fp8":  # a plain pickle of torch cannot hold fp8
        copies.append(pickle.loads(pickle.dumps(network)))
    for copy in copies:
        assert kinds(copy) == {QuantizedMatrix} and copy.weights == name
        torch.testing.assert_close(logits_of(copy), wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("dialect", "name"), covering(PACKED, NAMES))
def test_a_row_is_the_same_alone_and_in_a_batch(tmp_path: Path, dialect: str, name: str) -> None:
    model: Any = uncode.load(checkpoint(tmp_path, dialect, 0), device="cpu", weights=name)
    prompts = [[1, 2, 3], [4], [5, 6]]
    for sampler in (presets.confidence(block_length=4), presets.confidence(block_length=4, cache="dual")):
        together = decode(model, Canvas.after_prompt(prompts, length=12, mask_id=model.mask_id), sampler)
        for row, prompt in enumerate(prompts):
            alone = decode(model, Canvas.after_prompt([prompt], length=12, mask_id=model.mask_id), sampler)
            assert torch.equal(alone.generated[0], together.generated[row])
    assert together.header["weights"] == name and together.header["dtype"] == "float32"
    back = uncode.Trace.from_json(together.to_json())
    assert back.header["weights"] == name


def test_a_packed_network_is_neither_converted_nor_trained(tmp_path: Path) -> None:
    for name in NAMES:
        network = network_of(tmp_path, "llada", weights=name)
        before = logits_of(network)
        for convert in (network.double, network.half, network.bfloat16, lambda: network.to(torch.float16)):  # noqa: B023
            with pytest.raises(UncodeError, match=f"a network with {name} weights cannot be converted: load it with"):
                convert()
        with pytest.raises(UncodeError, match="cannot be trained: load it without `weights=`"):
            network.requires_grad_(True)
        with pytest.raises(UncodeError, match=f"has {name} weights already: load it again for fp8"):
            network.quantize("fp8")
        assert torch.equal(logits_of(network.to("cpu").eval()), before)
        assert kinds(network) == {JoinedQuantizedMatrix}


def test_a_fingerprint_knows_the_format(tmp_path: Path) -> None:
    """So a run folder of one format takes no answers of another."""
    folder = checkpoint(tmp_path, "llada", 0)
    models = [uncode.load(folder, device="cpu", weights=name) for name in (None, *NAMES)]
    assert len({weights_fingerprint(model.weights(), {}) for model in models}) == 4
    assert repr(models[1]) == f"TransformerDenoiser({folder.name}, fp8 weights, torch.float32, cpu)"


# -- loading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_one_matrix_at_a_time_is_held_whole(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the next matrix is allocated, the last one has been packed and freed."""
    folder, alive, most = checkpoint(tmp_path, "llada", 1), dict[int, weakref.ref[Tensor]](), list[int]()
    original = checkpoints.empty_tensor

    def empty(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        if len(shape) == 2:  # no piece of a file
            most.append(sum(reference() is not None for reference in alive.values()))
        tensor = original(shape, dtype, device)
        if len(shape) == 2 and shape[0] != llada_config(1)["vocab_size"]:  # neither a norm, the embedding nor the head
            alive[len(alive)] = weakref.ref(tensor)
        return tensor

    monkeypatch.setattr(checkpoints, "empty_tensor", empty)
    uncode.load(folder, device="cpu", weights=name)
    assert len(alive) == 7 * llada_config(1)["n_layers"] and max(most) == 0


def test_packed_loading_is_as_strict(tmp_path: Path) -> None:
    config, weights = llada_config(0), llada_weights(llada_config(0), 0)
    name = "model.transformer.blocks.0.q_proj.weight"
    for number, changed in enumerate(({}, {name: weights[name][:-1].contiguous()})):
        folder = tmp_path / str(number)
        save(folder, config, {key: value for key, value in weights.items() if key != name} | changed)
        with pytest.raises(UncodeError, match=r"do not fit its configuration; (missing|of another shape): model\.tran"):
            uncode.load(folder, device="cpu", weights="fp8")


def test_what_cannot_be_packed_is_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "llada", 4)
    with pytest.raises(UncodeError, match="'int3' is not a format of weights: did you mean 'int"):
        uncode.load(folder, weights="int3")
    with pytest.raises(UncodeError, match="of a multiple of 16 numbers, and this model has rows of 40: take int8"):
        uncode.load(folder, weights="int4", device="cpu")
    with pytest.raises(UncodeError, match="the toy model takes no options"):
        uncode.load("toy", weights="int8")


@pytest.mark.parametrize("name", NAMES)
def test_packed_layers_over_several_devices(tmp_path: Path, name: str) -> None:
    accelerate = pytest.importorskip("accelerate")
    folder = checkpoint(tmp_path, "dream", 0)
    model: Any = uncode.load(folder, device="cpu", weights=name)
    canvas = Canvas.after_prompt([[1, 2, 3], [4]], length=12, mask_id=model.mask_id)
    wanted = decode(model, canvas, presets.semi_ar(blocks=3, cache="dual")).tokens
    for device_map in ("auto", {"": "cpu"}):
        spread = uncode.load(folder, device_map=device_map, weights=name, dtype="float32")
        assert torch.equal(decode(spread, canvas, presets.semi_ar(blocks=3, cache="dual")).tokens.cpu(), wanted)
    accelerate.cpu_offload(model.network.layers[1], execution_device="cpu")
    found = decode(model, canvas, presets.semi_ar(blocks=3, cache="dual")).tokens
    assert torch.equal(found, wanted) and any(weight.is_meta for weight in model.network.parameters())


def test_the_memory_of_packed_weights_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NAMES:
        network = network_of(tmp_path, "dream", weights=name)
        held = sum(tensor.nbytes for tensor in (*network.parameters(), *network.buffers()))
        assert network.shape.weight_bytes(4, name) == held
    shape = Shape(4096, 32, 32, 32, 12288, 126464, theta=5e5, eps=1e-5, context=4096)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 8_000_000_000)
    memory.announce("org/big", ModelSize.of(shape, torch.bfloat16, "int4"), torch.device("cpu"))
    shown = capsys.readouterr().err
    assert shown == "org/big: 8.02 B parameters, 5.8 GB in int4 and bfloat16; cpu has 8.0 GB free.\n"
    with pytest.raises(UncodeError, match=r"9\.1 GB in fp8 and bfloat16, but cpu has 8\.0 GB free: .*`weights=`"):
        memory.announce("org/big", ModelSize.of(shape, torch.bfloat16, "fp8"), torch.device("cpu"))


# -- the GPU's products --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "depth", "rows", "skinny"),
    [(12288, 4096, 64, True), (4608, 3584, 32, True), (12288, 4096, 65, False), (256, 512, 32, False)],
)
def test_which_fp8_products_are_skinny(
    width: int, depth: int, rows: int, skinny: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    h, weight = torch.empty(1, rows, depth, device="meta"), torch.empty(width, depth, device="meta", dtype=FP8)
    assert not quantized.is_skinny(h, weight, torch.bfloat16)  # not on a GPU
    monkeypatch.setattr(quantized, "pays_on", lambda *_: True)
    assert quantized.is_skinny(h, weight, torch.bfloat16) == skinny


def test_few_rows_take_the_kernels_and_many_scaled_mm(monkeypatch: pytest.MonkeyPatch) -> None:
    h, kind = normal(3, 48, seed=1).bfloat16(), Fp8()
    packed, scale = kind.pack(normal(64, 48))
    wanted = [f(h, packed, scale) for f in (kind.linear, kind.swiglu, kind.split_k)]

    def product(
        numbers: Tensor, own: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None, dtype: torch.dtype
    ) -> Tensor:
        return quantized._plain_product(PackedRows(numbers, own, dtype), weight, scale, bias)

    kernels: Any = ModuleType("quantized_triton")
    pointwise: Any = ModuleType("pointwise_triton")
    pointwise.quantize_rows = quantized._fp8_rows
    kernels.linear = product
    kernels.swiglu = lambda packed_h, scale_h, weight, scale, dtype: quantized.silu_mul(
        product(packed_h, scale_h, weight, scale, None, dtype)
    )
    kernels.split_k = lambda packed_h, scale_h, weight, scale: torch.stack(
        [
            product(packed_h[:, part], scale_h, weight[:, part], scale, None, torch.float32)
            for part in (slice(0, 24), slice(24, 48))
        ]
    )
    for module in (kernels, pointwise):
        monkeypatch.setitem(sys.modules, f"{kernels_of.__name__}.{module.__name__}", module)
        monkeypatch.setattr(kernels_of, module.__name__, module, raising=False)
    with monkeypatch.context() as few:
        few.setattr(quantized, "is_skinny", lambda *_: True)
        few.setattr(quantized, "has_fp8", lambda h: True)
        few.setattr(quantized, "use_triton", lambda h: True)
        found = [f(h, packed, scale) for f in (kind.linear, kind.swiglu, kind.split_k)]
    assert torch.equal(found[0], wanted[0]) and torch.equal(found[1], wanted[1])
    assert found[2].shape == (2, 3, 64) and found[2].dtype == torch.float32
    torch.testing.assert_close(found[2].sum(0), wanted[2].float(), atol=1e-1, rtol=1e-2)

    def scaled(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor, **options: Any) -> Tensor:
        assert a.is_contiguous() and b.t().is_contiguous() and scale_a.shape == (3, 1) and scale_b.shape == (1, 64)
        return (a.float() @ b.float() * scale_a * scale_b + bias.float()).to(options["out_dtype"])

    monkeypatch.setattr(quantized, "_may_scale", lambda h, weight: True)
    monkeypatch.setattr(torch, "_scaled_mm", scaled)
    bias = normal(64, seed=2).bfloat16()
    with_bias = kind.linear(h[None], packed, scale, bias)
    assert with_bias.shape == (1, 3, 64) and with_bias.dtype == torch.bfloat16
    monkeypatch.undo()
    assert torch.equal(with_bias, kind.linear(h[None], packed, scale, bias))
    assert not quantized._may_scale(quantize_rows(h), packed)  # not on a CPU


def test_a_plain_map_is_what_is_packed() -> None:
    linear = nn.Linear(32, 16)
    packed = QuantizedLinear(linear.requires_grad_(False), FORMATS["int8"])
    assert (packed.in_features, packed.out_features) == (32, 16) and packed.bias is linear.bias
    h = normal(4, 32)
    torch.testing.assert_close(packed(h), linear(h), atol=2e-2, rtol=0)
