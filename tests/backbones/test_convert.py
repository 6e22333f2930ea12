"""Pickled weights to safetensors, by a process that can do nothing else."""

from __future__ import annotations

import json
import os
import pickle
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import uncode
from tests.checkpoints import checkpoint, llada_config
from tests.cli.running import run
from tests.forked import Forked
from uncode import UncodeError
from uncode.backbones.loading import unpickle
from uncode.backbones.loading.convert import convert


def pickled(path: Path, shards: int = 1, zipped: bool = True, **changes: Any) -> tuple[Path, dict[str, Tensor]]:
    """A checkpoint of LLaDA with its weights as pickle alone."""
    folder = checkpoint(path, "llada", 0)
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    weights |= changes.pop("weights", {})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    names = [f"pytorch_model-{n + 1:05}-of-{shards:05}.bin" for n in range(shards)]
    places = {name: names[at % shards] for at, name in enumerate(weights)}
    for file in names:
        part = {name: tensor for name, tensor in weights.items() if places[name] == file}
        target = file if shards > 1 else "pytorch_model.bin"
        torch.save(part, folder / target, _use_new_zipfile_serialization=zipped)
    if shards > 1:
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
    return folder, weights


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that reads a pickle is a fork of this one: it imports nothing again, and gives up its rights too."""

    def run_module(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        def act() -> None:
            sys.argv = command[3:]
            unpickle.main()

        assert command[1:4] == ["-P", "-m", unpickle.__name__]
        with Forked(act) as process:
            out, err = process.communicate()
        return subprocess.CompletedProcess(command, process.wait(), out.encode(), err.encode())

    plain = SimpleNamespace(run=run_module, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr(sys.modules[convert.__module__], "subprocess", plain)


def same(one: Tensor, other: Tensor) -> bool:
    return one.dtype == other.dtype and torch.equal(one, other)


@pytest.mark.parametrize(("shards", "zipped", "apart"), [(1, True, True), (1, False, False), (3, True, False)])
def test_the_refusal_names_the_command_and_the_result_loads(
    tmp_path: Path, shards: int, zipped: bool, apart: bool, request: pytest.FixtureRequest
) -> None:
    """Once with the process as it is, which imports torch for two seconds."""
    if not apart:
        request.getfixturevalue("forked")
    folder, weights = pickled(tmp_path / "model", shards, zipped)
    with pytest.raises(UncodeError, match="run `uncode convert ") as refused:
        uncode.load(folder)
    shown = run("convert", str(refused.value).split("`")[1].removeprefix("uncode convert "))
    files = sorted(folder.glob("model*"))
    assert shown.returncode == 0 and set(map(str, files)) == set(shown.stdout.splitlines()[:-1])
    assert shown.stdout.splitlines()[-1] == "21 tensors, 85.9 kB, F32."
    assert len(files) == (1 if shards == 1 else 4)
    found = {name: tensor for file in folder.glob("*.safetensors") for name, tensor in load_file(file).items()}
    assert found.keys() == weights.keys() and all(same(found[name], weights[name]) for name in weights)
    assert uncode.load(folder).parameters == sum(tensor.numel() for tensor in weights.values())
    if shards > 1:
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        assert index["metadata"]["total_size"] == sum(4 * tensor.numel() for tensor in weights.values())
        assert set(index["weight_map"].values()) == {f"model-0000{n}-of-00003.safetensors" for n in (1, 2, 3)}


@pytest.mark.usefixtures("forked")
def test_types_and_layouts_stay(tmp_path: Path) -> None:
    whole = torch.arange(24.0).reshape(4, 6)
    odd = {
        "half": whole.bfloat16(),
        "turned": whole.T,
        "part": whole[1:3, 2:],
        "ids": torch.arange(5),
        "flags": torch.tensor([True, False]),
        "number": torch.tensor(3.5, dtype=torch.float64),
        "empty": torch.zeros(0, 3),
        "spread": torch.ones(1).expand(4),
        "trained": torch.nn.Parameter(torch.ones(2)),
    }
    folder, weights = pickled(tmp_path / "model", weights=odd)
    done = convert(folder, tmp_path / "out")
    found = load_file(tmp_path / "out" / "model.safetensors")
    assert len(done.tensors) == len(weights) and all(same(found[name], weights[name].detach()) for name in weights)
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["config.json", "model.safetensors"]
    assert not list(folder.glob("*.safetensors"))


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("tying", [True, False])
def test_a_tensor_with_two_names_is_written_once_if_the_weights_are_tied(tmp_path: Path, tying: bool) -> None:
    shared = torch.randn(llada_config(0)["vocab_size"], llada_config(0)["d_model"])
    names = "model.transformer.wte.weight", "model.transformer.ff_out.weight"
    folder, weights = pickled(tmp_path, weight_tying=tying, weights=dict.fromkeys(names, shared))
    first, second = [name for name in weights if name in names]
    done = convert(folder)
    assert done.tied == ({second: first} if tying else {})
    assert load_file(folder / "model.safetensors").keys() == weights.keys() - done.tied.keys()


class Evil:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("kind", ["zipped", "old", "plain"])
def test_a_pickle_that_calls_something_is_refused_and_calls_nothing(tmp_path: Path, kind: str) -> None:
    folder, _ = pickled(tmp_path / "model")
    mark, file = tmp_path / "mark", folder / "pytorch_model.bin"
    if kind == "plain":
        file.write_bytes(pickle.dumps(Evil(mark), protocol=2))
    else:
        torch.save({"x": torch.zeros(2), "y": Evil(mark)}, file, _use_new_zipfile_serialization=kind == "zipped")
    before = sorted(folder.iterdir())
    shown = run("convert", str(folder))
    assert shown.returncode == 2 and "Traceback" not in shown.stderr
    assert "names posix.system, which makes no tensor" in shown.stderr or kind == "plain"
    assert not mark.exists() and sorted(folder.iterdir()) == before


@pytest.mark.skipif(sys.platform != "linux", reason="the filter of system calls is Linux's")
def test_the_process_could_do_nothing_even_if_a_pickle_were_run(tmp_path: Path) -> None:
    new, kept = tmp_path / "new", tmp_path / "kept"
    kept.write_text("kept")
    acts: list[Callable[[], object]] = [
        lambda: new.open("w"), new.mkdir, kept.unlink, os.fork, lambda: kept.rename(new),
        lambda: os.execv("/bin/true", ["true"]), socket.socket, lambda: os.kill(os.getppid(), 0),
        lambda: bytearray(1 << 40),
    ]  # fmt: skip

    def script() -> None:
        unpickle.give_up_rights(0)
        for number, act in enumerate(acts):
            with suppress(OSError, MemoryError):
                act()
                print("done", number)
        print("end")

    with Forked(script) as process:
        assert process.communicate() == ("end\n", "") and list(tmp_path.iterdir()) == [kept]


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: torch.save({"epoch": 3}, f / "pytorch_model.bin"), "holds 'epoch', which is a int and no tensor"),
        (lambda f: torch.save([torch.ones(1)], f / "pytorch_model.bin"), "holds a list, not weights by name"),
        (lambda f: torch.save({"z": torch.ones(2).to_sparse()}, f / "pytorch_model.bin"), "'z', a tensor of"),
        (lambda f: (f / "pytorch_model.bin").write_bytes(b"x" * 99), "is no file that torch.save wrote"),
        (lambda f: (f / "pytorch_model.bin").write_bytes(b""), "pytorch_model.bin' (cannot be read|is no file)"),
        (lambda f: (f / "pytorch_model.bin").unlink(), "has no pickled weights: expected pytorch_model.bin or"),
        (
            lambda f: (f / "model.safetensors").write_bytes(b""),
            "has a model.safetensors already: remove it, or .*--out",
        ),
        (lambda f: (f / "pytorch_model.bin.index.json").write_text("{}"), "has no weight_map of files in its folder"),
        (
            lambda f: (f / "pytorch_model.bin.index.json").write_text('{"weight_map": {"x": "../x.bin"}}'),
            "has no weight_map of files in its folder",
        ),
        (
            lambda f: (f / "pytorch_model.bin.index.json").write_text('{"weight_map": {"x": "x.bin"}}'),
            "lacks the shard x.bin, which its index names",
        ),
    ],
)
def test_what_is_no_checkpoint_is_refused_in_one_sentence(tmp_path: Path, change: Any, message: str) -> None:
    folder, _ = pickled(tmp_path)
    change(folder)
    before = sorted(folder.iterdir())
    shown = run("convert", str(folder))
    assert shown.returncode == 2 and len(shown.stderr.splitlines()) == 1 and sorted(folder.iterdir()) == before
    assert re.search(message, shown.stderr), shown.stderr


def test_a_folder_that_is_none() -> None:
    assert run("convert", "nowhere").stderr == "uncode: there is no folder 'nowhere'.\n"
