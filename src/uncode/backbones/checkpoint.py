"""Weights from safetensors files: surveyed whole before anything is allocated, then streamed tensor by tensor.

Pickle is never read. A file is opened anew for every tensor, so that no more of it stays mapped into
memory than the tensor being copied.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from tqdm import tqdm

from ..core.errors import UncodeError, require

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
_BITS = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


@dataclass(frozen=True)
class Entry:
    """One tensor of a checkpoint, not yet read."""

    file: Path
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


def read_json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UncodeError(f"'{file}' cannot be read as JSON ({error}): download it again.") from error
    require(isinstance(found, dict), f"'{file}' should hold one JSON object.")
    return dict(found)


def survey(folder: Path) -> dict[str, Entry]:
    """Name, shape and type of every tensor in a folder's safetensors files, from their headers."""
    if (folder / INDEX).is_file():
        return _sharded(folder)
    if (folder / SINGLE).is_file():
        return _header(folder / SINGLE)
    pickled = sorted(p.name for pattern in ("*.bin", "*.pt", "*.pth") for p in folder.glob(pattern))
    if pickled:
        raise UncodeError(
            f"'{folder}' has its weights as pickle only ({pickled[0]}), which can run code and is never read: "
            "convert them to safetensors, or take a revision that has them."
        )
    raise UncodeError(f"'{folder}' holds no weights: expected {SINGLE} or {INDEX}.")


def _sharded(folder: Path) -> dict[str, Entry]:
    index = read_json(folder / INDEX).get("weight_map")
    require(isinstance(index, dict) and len(index) > 0, f"'{folder / INDEX}' has no weight_map: download it again.")
    assert isinstance(index, dict)
    inside = all(isinstance(name, str) and Path(name).name == name for name in index.values())
    require(inside, f"'{folder / INDEX}' names files outside the folder.")
    found: dict[str, Entry] = {}
    for file in sorted(set(index.values())):
        require(
            (folder / file).is_file(), f"'{folder}' lacks the shard {file}, which its index names: download it again."
        )
        found |= _header(folder / file)
    _complain(
        f"the index of '{folder}' and its shards disagree",
        {"only in the index": sorted(set(index) - set(found)), "not in the index": sorted(set(found) - set(index))},
    )
    return found


def _header(file: Path) -> dict[str, Entry]:
    try:
        with safe_open(file, framework="pt") as stored:
            slices = {name: stored.get_slice(name) for name in stored.keys()}  # noqa: SIM118
            return {name: Entry(file, tuple(s.get_shape()), _dtype(file, name, s)) for name, s in slices.items()}
    except (SafetensorError, OSError) as error:
        raise UncodeError(f"'{file}' is truncated or no safetensors file ({error}): download it again.") from error


def _dtype(file: Path, name: str, stored: Any) -> torch.dtype:
    kind = stored.get_dtype()
    require(kind in _BITS, f"'{name}' in '{file}' is stored as {kind}: uncode reads {', '.join(_BITS)}.")
    return _BITS[kind]


def main_dtype(entries: Mapping[str, Entry]) -> torch.dtype:
    """The type most of a checkpoint is stored in."""
    sizes: Counter[torch.dtype] = Counter()
    for entry in entries.values():
        sizes[entry.dtype] += entry.bytes
    return sizes.most_common(1)[0][0]


def match(found: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]], where: str) -> None:
    """Raise one error that lists every name that is missing, unexpected or of another shape."""
    _complain(
        f"the weights in '{where}' do not fit its configuration",
        {
            "missing": sorted(set(expected) - set(found)),
            "unexpected": sorted(set(found) - set(expected)),
            "of another shape": [
                f"{name} {list(found[name])} instead of {list(shape)}"
                for name, shape in expected.items()
                if found.get(name, shape) != shape
            ],
        },
    )


def _complain(what: str, faults: Mapping[str, list[str]], most: int = 20) -> None:
    """Raise one error with all faults, long lists cut; nothing where there is none."""
    clauses = []
    for kind, names in faults.items():
        if names:
            more = f" and {len(names) - most} more" if len(names) > most else ""
            clauses.append(f"{kind}: {', '.join(names[:most])}{more}")
    if clauses:
        raise UncodeError(f"{what}; {'; '.join(clauses)}.")


def fill(
    network: nn.Module,
    entries: Mapping[str, Entry],
    published: Callable[[str], str],
    place: Callable[[str], torch.device],
    dtype: torch.dtype,
) -> None:
    """Give every parameter its memory and its numbers, one after the other."""
    parameters = dict(network.named_parameters())
    total = sum(entries[published(name)].bytes for name in parameters)
    with tqdm(total=total, unit="B", unit_scale=True, desc="loading", delay=2, disable=None, leave=False) as bar:
        for name in parameters:
            entry = entries[published(name)]
            assign(network, name, _read(entry, published(name), place(name), dtype))
            bar.update(entry.bytes)


def _read(entry: Entry, name: str, device: torch.device, dtype: torch.dtype) -> Tensor:
    """A copy of one tensor on the device; the file is mapped no longer than that takes."""
    with safe_open(entry.file, framework="pt") as stored:
        return torch.empty(entry.shape, dtype=dtype, device=device).copy_(stored.get_tensor(name))


def assign(network: nn.Module, name: str, tensor: Tensor) -> None:
    """Put a tensor in a parameter's place, in every module that shares it."""
    old = network.get_parameter(name)
    new = nn.Parameter(tensor, requires_grad=False)
    for module in network.modules():
        for kind, parameter in list(module.named_parameters(recurse=False)):
            if parameter is old:
                setattr(module, kind, new)
