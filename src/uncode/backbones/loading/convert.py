"""Pickled weights to safetensors: a separate process reads each file, and can do nothing but write tensors.

A pickle can name any function to call. So it is read by `torch.load(weights_only=True)`, which calls none but those
that make tensors, in a process that has given up its rights before (`unpickle.py`).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import UncodeError, require
from ...sandbox.confined import confined_python
from ...util.paths import make_folder
from ...util.write import new_file, write_whole
from .checkpoint import StoredTensor, read_header
from .folder import INDEX, PICKLED, PICKLED_INDEX, SINGLE, has_pickle, read_json

BESIDE = ("*.json", "*.txt", "*.model", "*.jinja")
"""Files of a checkpoint besides its weights: the configuration and the tokenizer."""
OnShard = Callable[[int, int], None]


@dataclass(frozen=True)
class Converted:
    """What :func:`convert` wrote."""

    files: tuple[Path, ...]
    """The safetensors files, and their index where there are several."""
    tensors: tuple[StoredTensor, ...]
    bytes: int
    tied: dict[str, str]
    """Names that were left out because they share the tensor of another name, which is the value."""


def convert(folder: Path, out: Path | None = None, on_progress: OnShard = lambda done, total: None) -> Converted:
    """Write the pickled weights of a checkpoint as safetensors, into its folder or into `out`.

    Types and shards stay as they are. A tensor with several names is written once, under the first of them, unless
    config.json says that its weights are not tied. With `out`, the configuration and the tokenizer are copied. Each
    file is written whole or not at all; the index is written last.
    """
    shards, target = _shards(folder), folder if out is None else out
    there = next((name for name in (INDEX, SINGLE) if (target / name).exists()), None)
    require(there is None, f"'{target}' has a {there} already: remove it, or choose another `out=`.")
    make_folder(target)
    ties, tied, found = _may_be_tied(folder), dict[str, str](), dict[str, StoredTensor]()
    on_progress(0, len(shards))
    for number, (shard, name) in enumerate(shards.items(), 1):
        with new_file(target / name) as file:
            tied |= _unpickle(folder / shard, file.fileno(), ties)
        found |= read_header(target / name)
        on_progress(number, len(shards))
    files = [target / name for name in shards.values()]
    total = 0
    for path in files:
        size = path.stat().st_size
        total += size - min((entry.start for entry in found.values() if entry.file == path), default=size)
    if out is not None:
        beside = {path for pattern in BESIDE for path in folder.glob(pattern)} - {folder / PICKLED_INDEX}
        for path in sorted(beside):
            write_whole(out / path.name, path.read_bytes())
    if (folder / PICKLED_INDEX).is_file():
        places = {name: entry.file.name for name, entry in sorted(found.items())}
        index = {"metadata": {"total_size": total}, "weight_map": places}
        write_whole(target / INDEX, json.dumps(index, indent=2) + "\n")
        files.append(target / INDEX)
    return Converted(tuple(files), tuple(found.values()), total, tied)


def _shards(folder: Path) -> dict[str, str]:
    """The pickled files of a checkpoint, each with the name of its safetensors file."""
    require(folder.is_dir(), f"there is no folder '{folder}'.")
    require(has_pickle(folder), f"'{folder}' has no pickled weights: expected {PICKLED} or {PICKLED_INDEX}.")
    if not (folder / PICKLED_INDEX).is_file():
        return {PICKLED: SINGLE}
    places = read_json(folder / PICKLED_INDEX).get("weight_map")
    named = sorted(set(places.values())) if isinstance(places, dict) and places else []
    inside = len(named) > 0 and all(isinstance(name, str) and Path(name).name == name for name in named)
    require(inside, f"'{folder / PICKLED_INDEX}' has no weight_map of files in its folder: download it again.")
    missing = next((name for name in named if not (folder / name).is_file()), None)
    require(missing is None, f"'{folder}' lacks the shard {missing}, which its index names: download it again.")
    return {name: Path(name).stem.replace("pytorch_model", "model") + ".safetensors" for name in named}


def _may_be_tied(folder: Path) -> bool:
    """Whether names may share a tensor, by config.json. Transformers takes them for tied where it says nothing."""
    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    return bool(config.get("weight_tying", config.get("tie_word_embeddings", True)))


def _unpickle(source: Path, output: int, ties: bool) -> dict[str, str]:
    """Let another process write the tensors of `source` to the descriptor. Returns the names that it left out."""
    words = (str(source.resolve()), str(output), str(int(ties)))
    command, environment = confined_python(f"{__package__}.unpickle", *words)
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, pass_fds=[output], check=False
    )
    lines = done.stderr.decode(errors="replace").splitlines() or [""]
    try:
        report: Any = json.loads(lines[-1])
    except ValueError:
        raise UncodeError(f"'{source}' could not be converted: its process ended ({lines[-1][-200:]}).") from None
    if "refused" in report:
        raise UncodeError(f"'{source}' {report['refused']}: nothing of it was run and nothing written.")
    return dict(report["tied"])
