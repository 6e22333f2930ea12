"""Checkpoints of LLaDA and Dream from folders: what loads, what does not, and at which price."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from math import prod
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import uncode
from tests.checkpoints import (
    COUNT,
    DIALECTS,
    Config,
    Published,
    checkpoint,
    dream_config,
    dream_weights,
    llada_config,
    llada_weights,
    save,
)
from uncode import Canvas, UncodeError, decode, presets
from uncode.backbones import denoiser as denoisers
from uncode.backbones.dialects.llada import LLADA
from uncode.backbones.dialects.registry import DIALECTS as FAMILIES
from uncode.backbones.dialects.registry import named_dialect
from uncode.backbones.loading import memory
from uncode.backbones.loading.checkpoint import read_headers, usual_dtype
from uncode.backbones.loading.device import DTYPES
from uncode.backbones.loading.folder import INDEX
from uncode.backbones.loading.load import expected
from uncode.backbones.loading.memory import ModelSize
from uncode.backbones.transformer.network import Transformer
from uncode.models.names import check_name


def logits(model: Any) -> torch.Tensor:
    canvas = Canvas.after_prompt([[1, 2, 3]], length=5, mask_id=model.mask_id)
    return decode(model, canvas, presets.confidence()).logp


@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_file_or_many_are_the_same_model(tmp_path: Path, dialect: str) -> None:
    one, many = (uncode.load(checkpoint(tmp_path / str(n), dialect, 1, shards=n)) for n in (1, 4))
    assert torch.equal(logits(one), logits(many)) and one.about == {"model": "1"}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("number", range(COUNT))
def test_the_size_is_known_before_loading(tmp_path: Path, dialect: str, number: int) -> None:
    network = uncode.load(checkpoint(tmp_path, dialect, number)).network
    assert network.shape.parameters == sum(p.numel() for p in network.parameters())


def test_the_published_sizes() -> None:
    """FACTS of the released files: 16,031,162,368 and 15,231,233,024 bytes in bfloat16, 339 tensors for Dream."""
    sizes = {release.name: 2 * release.shape.parameters for family in FAMILIES for release in family.releases}
    assert sizes["GSAI-ML/LLaDA-8B-Instruct"] == sizes["GSAI-ML/LLaDA-1.5"] == 16_031_162_368
    assert sizes["Dream-org/Dream-v0-Instruct-7B"] == 15_231_233_024
    assert round(sizes["GSAI-ML/iLLaDA-8B-Base"] / 2e9, 2) == 7.62  # its model card
    assert round(sizes["JetLM/SDAR-8B-Chat"] / 2e9, 2) == 8.19  # Qwen3-8B
    assert round(sizes["Efficient-Large-Model/Fast_dLLM_v2_7B"] / 2e9, 2) == 7.62  # Qwen2.5-7B
    assert (
        round(sizes["inclusionAI/LLaDA2.0-mini"] / 2e9) == 16
        and round(sizes["inclusionAI/LLaDA-MoE-7B-A1B-Base"] / 2e9) == 7
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dtype(tmp_path: Path, dialect: str) -> None:
    config, weights = DIALECTS[dialect]
    half = {name: t.bfloat16() for name, t in weights(config(0), 0).items()}
    folder = save(tmp_path, config(0), half)
    assert uncode.load(folder, device="cpu").dtype == torch.float32
    assert uncode.load(folder, dtype="bfloat16").dtype == torch.bfloat16
    entries = read_headers(folder)
    assert usual_dtype(entries, torch.device("cuda")) == torch.bfloat16  # as stored
    wide = uncode.load(folder, dtype="float32")
    assert wide.dtype == torch.float32
    published = wide.dialect.published("blocks.0.down.weight")
    assert torch.equal(wide.network.layers[0].down.weight, half[published].float())
    assert uncode.load(folder, dtype=torch.float64).dtype == torch.float64
    with pytest.raises(UncodeError, match="did you mean 'bfloat16'"):
        uncode.load(folder, dtype="bfloat")
    with pytest.raises(UncodeError, match=r"not in torch\.int8"):
        uncode.load(folder, dtype=torch.int8)


def test_device(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, "llada", 0)
    assert uncode.load(folder, device="cpu").device == torch.device("cpu")
    with pytest.raises(UncodeError, match="'gpu' is no device"):
        uncode.load(folder, device="gpu")
    with pytest.raises(UncodeError, match="'meta' has no numbers"):
        uncode.load(folder, device="meta")
    if not torch.cuda.is_available():
        for missing in ("cuda", "mps"):
            with pytest.raises(UncodeError, match=r"there is no '\w+(:0)?' here: choose another device, such as cpu"):
                uncode.load(folder, device=missing)


def test_tied_embeddings(tmp_path: Path) -> None:
    config = llada_config(0) | {"weight_tying": True}
    weights = llada_weights(config, 0)
    head = weights.pop("model.transformer.ff_out.weight")
    tied = uncode.load(save(tmp_path / "tied", config, weights))
    assert tied.network.head.weight is tied.network.embed.weight and head.shape == tied.network.head.weight.shape
    both = weights | {"model.transformer.ff_out.weight": weights["model.transformer.wte.weight"].clone()}
    assert torch.equal(logits(tied), logits(uncode.load(save(tmp_path / "both", llada_config(0), both))))


# -- what is wrong is one error, and nothing is half loaded --------------------------------------


def truncated(folder: Path) -> None:
    file = sorted(folder.glob("*.safetensors"))[1]
    file.write_bytes(file.read_bytes()[:-100])


def edit_index(folder: Path, change: Any) -> None:
    index = json.loads((folder / INDEX).read_text())
    change(index["weight_map"])
    (folder / INDEX).write_text(json.dumps(index))


def test_a_folder_without_a_model_suggests_the_one_below(tmp_path: Path) -> None:
    with pytest.raises(UncodeError, match=rf"^'{tmp_path}' is no model: it has no config\.json\.$"):
        check_name(str(tmp_path))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    for refuse in (check_name, uncode.load):
        with pytest.raises(UncodeError, match=rf"has no config\.json; did you mean '{tmp_path}/model'\?$"):
            refuse(str(tmp_path))
    with pytest.raises(UncodeError, match="is a file: give its folder"):
        check_name(str(tmp_path / "model" / "config.json"))
    with pytest.raises(UncodeError, match="no model is named 'tny': did you mean tiny"):
        check_name("tny")
    check_name(str(tmp_path / "model"))


def test_a_forward_of_minutes_is_announced(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention of a layer is one operation, and Ctrl-C waits for it."""
    model: Any = uncode.load("tiny", device="cpu")
    monkeypatch.setattr(denoisers, "_seconds_per_flop", lambda: 1e-11)
    model.open(1, 2000)
    assert capsys.readouterr().err == ""
    model.open(1, 100_000)
    assert capsys.readouterr().err == (
        "a forward over 100,000 tokens takes about 833 s here, and Ctrl-C is noticed within about 104 s: use a shorter "
        "length or a GPU.\n"
    )
    denoisers.warn_if_long(model.network.shape, 1, 100_000, torch.device("cuda"))
    assert capsys.readouterr().err == ""


def edit_config(folder: Path, **values: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | values))


def edit_weights(folder: Path, change: Any) -> None:
    file = sorted(folder.glob("*.safetensors"))[0]
    weights = load_file(file)
    change(weights)
    save_file(weights, file)


def pickled(folder: Path) -> None:
    for file in folder.glob("model*"):
        file.unlink()
    torch.save({"x": torch.zeros(1)}, folder / "pytorch_model.bin")


def empty(folder: Path) -> None:
    for file in folder.glob("model*"):
        file.unlink()


NORM = "model.transformer.ln_f.weight"
FAULTS: dict[str, tuple[Any, str]] = {
    "a truncated shard": (truncated, r"model-00002-of-00003\.safetensors' is truncated"),
    "a shard of rubbish": (lambda f: sorted(f.glob("*.safetensors"))[0].write_bytes(b"x" * 999), "is truncated or no"),
    "an index without an entry": (
        lambda f: edit_index(f, lambda m: m.pop(NORM)),
        f"disagree; not in the index: {NORM}",
    ),
    "an index with too much": (
        lambda f: edit_index(f, lambda m: m.update({"model.extra": m[NORM]})),
        "disagree; only in the index: model.extra",
    ),
    "an index of another folder": (
        lambda f: edit_index(f, lambda m: m.update({NORM: "../x.safetensors"})),
        "names files outside the folder",
    ),
    "an index that is no JSON": (lambda f: (f / INDEX).write_text("{"), "cannot be read as JSON"),
    "an index without a map": (lambda f: (f / INDEX).write_text("{}"), "has no weight_map"),
    "a shard that is not there": (
        lambda f: sorted(f.glob("*.safetensors"))[2].unlink(),
        r"lacks the shard model-00003-of-00003\.safetensors",
    ),
    "another vocabulary": (
        lambda f: edit_config(f, vocab_size=64, embedding_size=64),
        r"of another shape: .*wte\.weight \[61, 32\] instead of \[64, 32\].*ff_out\.weight \[61, 32\]",
    ),
    "a tensor of another shape": (
        lambda f: edit_config(f, mlp_hidden_size=64),
        r"blocks\.0\.ff_out\.weight \[32, 48\] instead of \[32, 64\], model\.transformer\.blocks\.1",
    ),
    "a layer too few": (lambda f: edit_config(f, n_layers=3), r"missing: model\.transformer\.blocks\.2\.attn_norm"),
    "a layer too many": (lambda f: edit_config(f, n_layers=1), r"unexpected: model\.transformer\.blocks\.1\.attn"),
    "weights of integers": (
        lambda f: edit_weights(f, lambda w: w.update({k: t.to(torch.int8) for k, t in list(w.items())[:1]})),
        r"stored otherwise: model\.transformer\.blocks\.0\.\w+\.weight \(I8\)",
    ),
    "pickle only": (
        pickled,
        r"pickle only \(pytorch_model\.bin\), which can run code and is never read: run `uncode convert /",
    ),
    "no weights": (empty, "holds no weights"),
    "no configuration": (lambda f: (f / "config.json").unlink(), "it has no config.json"),
    "a configuration that is no JSON": (lambda f: (f / "config.json").write_text("[]"), "one JSON object"),
    "another family": (lambda f: edit_config(f, model_type="gpt2"), "is a 'gpt2' model, not a masked"),
    "no family": (
        lambda f: edit_config(f, model_type=None),
        r'has no model_type: add the line "model_type": "llada", to it',
    ),
    "no family and no class": (
        lambda f: edit_config(f, model_type=None, architectures=None),
        r'has no model_type: add the line "model_type": "llada", to it',
    ),
    "no family, of BERT": (
        lambda f: edit_config(f, model_type=None, architectures=["BertForMaskedLM"]),
        r'add the line "model_type": "bert", to it',
    ),
    "nothing that tells the family": (
        lambda f: edit_config(f, model_type=None, architectures=None, d_model=None),
        r'add the line that names the model\'s family, such as "model_type": "bert", to it',
    ),
    "a mixture of experts": (lambda f: edit_config(f, model_type="sdar_moe"), "is a mixture of experts"),
    "experts of the same name": (lambda f: edit_config(f, num_experts=64), "is a mixture of experts"),
    "a class of experts": (lambda f: edit_config(f, architectures=["SDARMoeForCausalLM"]), "is a mixture of experts"),
    "another block": (lambda f: edit_config(f, block_type="sequential"), "block_type='sequential'; uncode runs"),
    "a norm of queries": (lambda f: edit_config(f, attention_layer_norm=True), "attention_layer_norm=True"),
    "no width": (lambda f: edit_config(f, d_model=None), "has no 'd_model'"),
    "a width of letters": (lambda f: edit_config(f, d_model="32"), "'d_model' in config.json should be a number"),
    "no heads": (lambda f: edit_config(f, n_heads=0), "'n_heads' in config.json should be a number above 0"),
    "a mask of letters": (lambda f: edit_config(f, mask_token_id="x"), "should be numbers, not 'x' and 58"),
    "half a tokenizer": (lambda f: (f / "tokenizer_config.json").write_text("{}"), "neither tokenizer.json nor vocab"),
    "no mask": (lambda f: edit_config(f, mask_token_id=None), "names no mask_token_id"),
    "a mask outside": (lambda f: edit_config(f, mask_token_id=61), "do not lie inside the vocabulary"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_folder_is_one_clear_error(tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = checkpoint(tmp_path, "llada", 0, shards=3)
    breaks, message = FAULTS[fault]
    breaks(folder)
    allocated: list[Any] = []
    monkeypatch.setattr("uncode.backbones.loading.load.fill", lambda *args: allocated.append(args))
    with pytest.raises(UncodeError, match=message) as caught:
        uncode.load(folder)
    assert "\n" not in str(caught.value) and not allocated


@pytest.mark.parametrize("fault", ["renamed", "missing", "surplus", "another shape", "not tied", "no head"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_weights_that_do_not_fit_are_listed(dialect: str, fault: str, tmp_path: Path) -> None:
    config_of, weights_of = DIALECTS[dialect]
    config = config_of(0)
    family = named_dialect(config, tmp_path)
    assert family is not None
    tied = config | {"weight_tying" if dialect == "llada" else "tie_word_embeddings": True}
    head, norm = family.published("head.weight"), family.published("norm.weight")
    weights = weights_of(config, 0)
    product = next(name for name in weights if name.endswith("up_proj.weight"))
    if fault == "renamed":
        weights["odd"] = weights.pop(product)
        sentence = f"missing: {product}; unexpected: odd"
    elif fault == "missing":
        del weights[norm]
        sentence = f"missing: {norm}"
    elif fault == "surplus":
        weights["more"] = torch.ones(2)
        sentence = "unexpected: more"
    elif fault == "another shape":
        weights[norm] = torch.ones(3)
        sentence = f"of another shape: {norm} [3] instead of [32]"
    elif fault == "not tied":
        config, sentence = tied, f"unexpected: {head}"
    else:
        del weights[head]
        sentence = f"missing: {head}"
    with pytest.raises(UncodeError, match=f"do not fit its configuration; {re.escape(sentence)}"):
        uncode.load(save(tmp_path, config, weights), device="cpu")


def test_long_lists_are_cut(tmp_path: Path) -> None:
    folder = save(tmp_path, llada_config(0) | {"n_layers": 9}, llada_weights(llada_config(0), 0))
    with pytest.raises(UncodeError, match="and 43 more"):
        uncode.load(folder)


def test_defaults_of_the_configuration(tmp_path: Path) -> None:
    """Values that a configuration leaves open: as many key heads as heads, a hidden width by its ratio, theta."""
    config = llada_config(0) | {"n_kv_heads": None, "mlp_hidden_size": None, "mlp_ratio": 1.5, "rms_norm_eps": None}
    full = uncode.load(save(tmp_path / "full", llada_config(0), llada_weights(llada_config(0), 0)))
    assert torch.equal(
        logits(uncode.load(save(tmp_path / "short", config, llada_weights(llada_config(0), 0)))), logits(full)
    )
    modern = {key: value for key, value in dream_config(0).items() if key != "rope_theta"}
    modern["rope_parameters"] = {"rope_type": "default", "rope_theta": 1e6}  # as transformers 5 writes it
    dream = uncode.load(save(tmp_path / "dream", modern, dream_weights(dream_config(0), 0)))
    assert dream.network.shape.theta == 1e6
    scaled = modern | {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e6}}
    with pytest.raises(UncodeError, match="rope_type='linear'"):
        uncode.load(save(tmp_path / "scaled", scaled, dream_weights(dream_config(0), 0)))


@pytest.mark.parametrize("name", ["~nobody-here/model", "x" * 5000, "a/b/c", "", "model\n"])
def test_a_name_of_no_model_is_refused(name: str) -> None:
    with pytest.raises(UncodeError, match="there is no folder"):
        uncode.load(name)


def test_a_local_folder_has_no_revision(tmp_path: Path) -> None:
    with pytest.raises(UncodeError, match="has no revisions"):
        uncode.load(checkpoint(tmp_path, "llada", 0), revision="main")


# -- memory --------------------------------------------------------------------------------------

BIG: Config = llada_config(0) | {
    "d_model": 1024,
    "n_heads": 8,
    "n_kv_heads": 8,
    "mlp_hidden_size": 4096,
    "n_layers": 20,
    "vocab_size": 90000,
    "embedding_size": 90000,
    "mask_token_id": 89999,
    "eos_token_id": 89998,
}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process is read from /proc")
def test_loading_streams(tmp_path: Path) -> None:
    """A checkpoint of 1 GB in bfloat16 costs at its peak no more than the model and its largest tensor, plus 10 %."""
    names = expected(Transformer(LLADA.shape(BIG)), LLADA)
    noise = torch.randn(1 << 20).bfloat16()
    weights = {
        name: noise.repeat(-(-prod(shape) // len(noise)))[: prod(shape)].view(shape) for name, shape in names.items()
    }
    total, largest = (f(2 * t.numel() for t in weights.values()) for f in (sum, max))
    assert total > 1e9
    save(tmp_path, BIG, weights, shards=3)
    del weights
    script = """
        import re, sys, torch, uncode
        from pathlib import Path
        def peak(): return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
        uncode.load(sys.argv[1], device="cpu")  # everything that is imported on the way is there now
        before = peak()
        model = uncode.load(sys.argv[2], device="cpu", dtype=sys.argv[3], weights=sys.argv[4] or None)
        print(peak() - before)
    """
    small = checkpoint(tmp_path / "small", "llada", 0)
    for dtype, weights in (("bfloat16", None), ("float32", None), ("bfloat16", "fp8"), ("bfloat16", "int4")):
        words = [sys.executable, "-c", textwrap.dedent(script), str(small), str(tmp_path), dtype, weights or ""]
        grown = int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        model = LLADA.shape(BIG).weight_bytes(DTYPES[dtype].itemsize, weights)
        assert grown >= model  # it really is in memory, not on the disk
        assert grown - model <= 1.1 * largest, f"{dtype}, {weights}: {(grown - model) / 1e6:.0f} MB beyond the model"


def test_large_models_are_announced(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    memory.announce("org/tiny", ModelSize.plain(1000, torch.float32), cpu)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(memory, "free_bytes", lambda device: 20_000_000_000)
    memory.announce("org/big", ModelSize.plain(8_015_581_184, torch.bfloat16), cpu)
    shown = capsys.readouterr().err
    assert shown == "org/big: 8.02 B parameters, 16.0 GB in bfloat16; cpu has 20.0 GB free.\n"
    with pytest.raises(UncodeError, match=r"32\.1 GB in float32, but cpu has 20\.0 GB free: choose a smaller dtype"):
        memory.announce("org/big", ModelSize.plain(8_015_581_184, torch.float32), cpu)


# -- several devices, models in memory -----------------------------------------------------------


@pytest.mark.parametrize("device_map", ["auto", {"": "cpu"}])
def test_device_map(tmp_path: Path, device_map: Any) -> None:
    pytest.importorskip("accelerate")
    folder = checkpoint(tmp_path, "dream", 1)
    spread = uncode.load(folder, device_map=device_map, dtype="float64")  # on a GPU, if there is one
    torch.testing.assert_close(logits(spread), logits(uncode.load(folder, dtype="float64")), atol=1e-10, rtol=0)


@pytest.mark.parametrize("dialect", ["dream", "sdar", "llada2"])
def test_layers_that_wait_in_another_memory(dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Norms of heads and routers too, whose modules are not called. Here every layer waits, and none on a GPU."""
    accelerate = pytest.importorskip("accelerate")

    def offload(network: Transformer, places: Any, **options: Any) -> None:
        for layer in network.layers:
            accelerate.cpu_offload(layer, torch.device("cpu"), **options)

    monkeypatch.setattr(accelerate, "dispatch_model", offload)
    folder = checkpoint(tmp_path, dialect, 1)
    places = {"": "cpu", "layers.1": "cpu:0"}
    spread: Any = uncode.load(folder, device_map=places, dtype="float64")
    assert all(weight.is_meta for weight in spread.network.layers.parameters())
    wanted = logits(uncode.load(folder, device="cpu", dtype="float64"))
    torch.testing.assert_close(logits(spread), wanted, atol=1e-10, rtol=0)


def test_device_map_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = checkpoint(tmp_path, "dream", 1)
    with pytest.raises(UncodeError, match="not both"):
        uncode.load(folder, device="cpu", device_map="auto")
    for wrong in ("balance", 3):
        with pytest.raises(UncodeError, match=r"is 'auto' or a mapping of module names, not"):
            uncode.load(folder, device_map=wrong)  # type: ignore[arg-type]
    with pytest.raises(UncodeError, match="'foo' is no device"):
        uncode.load(folder, device_map={"": "foo"})
    with pytest.raises(UncodeError, match="says nothing about 'layers"):
        uncode.load(folder, device_map={"embed": "cpu"})
    with pytest.raises(UncodeError, match="too small for the model"):
        uncode.load(folder, device_map={"": "cpu", "layers.1": "disk"})
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(UncodeError, match=r"device_map needs accelerate: pip install 'uncode\[devices\]'"):
        uncode.load(folder, device_map="auto")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_wrap_shares_the_weights_of_a_published_model(tmp_path: Path, dialect: str) -> None:
    config, weights = (
        f(*args) for f, args in zip(DIALECTS[dialect], [(2,), (DIALECTS[dialect][0](2), 2)], strict=True)
    )
    published = Published(config, weights)
    model = uncode.wrap(published)
    name = model.dialect.published("blocks.0.out.weight")
    assert model.network.layers[0].out.weight.data_ptr() == weights[name].data_ptr()
    assert torch.equal(logits(model), logits(uncode.load(checkpoint(tmp_path, dialect, 2))))
    assert model.about == {"model": "org/published"}
    assert uncode.wrap(published, mask_id=7).mask_id == 7
    weights.pop(name)
    with pytest.raises(UncodeError, match="org/published' do not fit"):
        uncode.wrap(published)


def test_a_tied_head_that_the_published_model_lists_twice() -> None:
    config, weights = DIALECTS["sdar"][0](1), DIALECTS["sdar"][1](DIALECTS["sdar"][0](1), 1)
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model: Any = uncode.wrap(Published(config, weights))
    assert model.network.head.weight is model.network.embed.weight
    weights["lm_head.weight"] = weights["lm_head.weight"].clone()
    with pytest.raises(UncodeError, match=r"unexpected: lm_head\.weight"):
        uncode.wrap(Published(config, weights))


def test_dream_has_its_own_unsupported_settings(tmp_path: Path) -> None:
    for key, value in (("hidden_act", "gelu"), ("rope_scaling", {"type": "yarn"}), ("use_sliding_window", True)):
        folder = save(tmp_path / key, dream_config(0) | {key: value}, dream_weights(dream_config(0), 0))
        with pytest.raises(UncodeError, match=f"this Dream checkpoint has {key}="):
            uncode.load(folder)
