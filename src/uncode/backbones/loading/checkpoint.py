"""Weights from safetensors files: surveyed whole before anything is allocated, then streamed tensor by tensor.

Pickle is never read. Tensors are read in pieces and not mapped: a mapped file counts as memory in use, and
the weights of a large model would stand there twice.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ...core.errors import UncodeError, require
from ...core.support.allocate import empty_tensor
from ...util.progress import reading_bar
from ..dialects.dialect import Part
from ..transformer.quantized import QuantizedLinear
from .folder import INDEX, SINGLE, has_pickle, read_json

_READ_BYTES, _READERS = 1 << 22, 4
_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


@dataclass(frozen=True)
class StoredTensor:
    """One tensor of a checkpoint, not yet read."""

    file: Path
    shape: tuple[int, ...]
    kind: str
    """Its type as the file calls it."""
    start: int
    """Where in the file its numbers begin."""

    @property
    def is_float(self) -> bool:
        return self.kind in _DTYPES

    @property
    def dtype(self) -> torch.dtype:
        return _DTYPES[self.kind]

    @property
    def count(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.count * self.dtype.itemsize


def read_headers(folder: Path) -> dict[str, StoredTensor]:
    """Name, shape and type of every tensor in a folder's safetensors files, from their headers."""
    if (folder / INDEX).is_file():
        return _sharded(folder)
    if (folder / SINGLE).is_file():
        return read_header(folder / SINGLE)
    pickled = sorted(p.name for pattern in ("*.bin", "*.pt", "*.pth") for p in folder.glob(pattern))
    if pickled:
        how = f"run `uncode convert {folder}`" if has_pickle(folder) else "convert them to safetensors"
        raise UncodeError(
            f"'{folder}' has its weights as pickle only ({pickled[0]}), which can run code and is never read: "
            f"{how}, or take a revision that has safetensors."
        )
    raise UncodeError(f"'{folder}' holds no weights: expected {SINGLE} or {INDEX}.")


def _sharded(folder: Path) -> dict[str, StoredTensor]:
    index = read_json(folder / INDEX).get("weight_map")
    require(isinstance(index, dict) and len(index) > 0, f"'{folder / INDEX}' has no weight_map: download it again.")
    assert isinstance(index, dict)
    inside = all(isinstance(name, str) and Path(name).name == name for name in index.values())
    require(inside, f"'{folder / INDEX}' names files outside the folder.")
    found: dict[str, StoredTensor] = {}
    for file in sorted(set(index.values())):
        require(
            (folder / file).is_file(), f"'{folder}' lacks the shard {file}, which its index names: download it again."
        )
        found |= read_header(folder / file)
    complain(
        f"the index of '{folder}' and its shards disagree",
        {"only in the index": sorted(set(index) - set(found)), "not in the index": sorted(set(found) - set(index))},
    )
    return found


def read_header(file: Path) -> dict[str, StoredTensor]:
    """The entries of one file, which begins with the length of its header and the header, in JSON."""
    try:
        with safe_open(file, framework="pt"):  # checks the header against the file's size
            pass
        with file.open("rb") as stored:
            size = int.from_bytes(stored.read(8), "little")
            header = json.loads(stored.read(size))
    except (SafetensorError, OSError) as error:
        raise UncodeError(f"'{file}' is truncated or no safetensors file ({error}): download it again.") from error
    header.pop("__metadata__", None)
    return {
        name: StoredTensor(file, tuple(e["shape"]), e["dtype"], 8 + size + e["data_offsets"][0])
        for name, e in header.items()
    }


def usual_dtype(entries: Mapping[str, StoredTensor], device: torch.device) -> torch.dtype:
    """The type most of a checkpoint is stored in; on a CPU at least float32, few of them compute in half of it."""
    sizes: Counter[torch.dtype] = Counter()
    for entry in entries.values():
        if entry.is_float:
            sizes[entry.dtype] += entry.bytes
    stored = sizes.most_common(1)[0][0] if sizes else torch.float32
    return torch.promote_types(stored, torch.float32) if device.type == "cpu" else stored


def check_dtypes(entries: Mapping[str, StoredTensor]) -> None:
    """Raise unless every tensor is one that can be read: quantised weights cannot."""
    strange = sorted(f"{name} ({e.kind})" for name, e in entries.items() if not e.is_float)
    complain(f"uncode reads weights stored as {', '.join(_DTYPES)}", {"stored otherwise": strange})


def check_shapes(found: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]], where: str) -> None:
    """Raise one error that lists every name that is missing, unexpected or of another shape."""
    complain(
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


def complain(what: str, faults: Mapping[str, list[str]], most: int = 20) -> None:
    """Raise one error with all faults, long lists cut; nothing where there is none."""
    clauses = []
    for kind, names in faults.items():
        if names:
            more = f" and {len(names) - most} more" if len(names) > most else ""
            clauses.append(f"{kind}: {', '.join(names[:most])}{more}")
    if clauses:
        raise UncodeError(f"{what}; {'; '.join(clauses)}.")


class Source(NamedTuple):
    """Numbers of a stored tensor that go to one place."""

    entry: StoredTensor
    skipped: int
    """Numbers before them."""
    numbers: int


def fill(
    network: nn.Module,
    entries: Mapping[str, StoredTensor],
    parts: Callable[[str, tuple[int, ...]], Sequence[Part]],
    device_of: Callable[[str], torch.device],
    dtype_of: Callable[[str], torch.dtype],
) -> None:
    """Give every parameter its memory and its numbers, one after the other. A parameter that is stored in several
    parts is filled in place. A matrix that is to be packed is packed as soon as it was read, so at most one is held in
    its wide dtype."""
    sizes = {name: _stored_size(network, name) for name, _ in network.named_parameters()}
    found = {
        name: [
            Source(entries[part.name], part.start * prod(part.shape[1:]), prod(part.shape))
            for part in parts(name, size)
        ]
        for name, size in sizes.items()
    }
    total = sum(source.numbers * source.entry.dtype.itemsize for sources in found.values() for source in sources)
    done = 0
    with reading_bar("loading") as on_bytes:
        for name, sources in found.items():
            tensor = empty_tensor(sizes[name], dtype_of(name), device_of(name))
            for count in _read(sources, tensor.view(-1)):
                done += count
                on_bytes(done, total)
            assign(network, name, tensor)
            del tensor  # before the next one is allocated


def _stored_size(network: nn.Module, name: str) -> tuple[int, ...]:
    """The size of a parameter in a checkpoint, which int4 packs two numbers to a byte."""
    owner, _, part = name.rpartition(".")
    module = network.get_submodule(owner)
    if isinstance(module, QuantizedLinear) and part == "weight":
        return module.out_features, module.in_features
    return tuple(network.get_parameter(name).shape)


def _read(sources: Sequence[Source], flat: Tensor) -> Iterator[int]:
    """Copy numbers from their files, one source after the other, in pieces; yields the bytes of each. While one thread
    copies, others read."""
    own, pieces, end = threading.local(), list[tuple[StoredTensor, int, Tensor]](), 0
    for entry, skipped, count in sources:
        step = _READ_BYTES // entry.dtype.itemsize
        for at in range(0, count, step):
            part = flat[end + at : end + min(at + step, count)]
            pieces.append((entry, entry.start + (skipped + at) * entry.dtype.itemsize, part))
        end += count
    largest = max((len(part) * entry.dtype.itemsize for entry, _, part in pieces), default=0)

    def copy(piece: tuple[StoredTensor, int, Tensor]) -> int:
        entry, start, part = piece
        if not hasattr(own, "bytes"):
            own.bytes = empty_tensor((largest,), torch.uint8, torch.device("cpu"))
            if flat.is_cuda:  # pinned memory is copied to a GPU without a detour
                own.bytes = own.bytes.pin_memory()
        numbers = own.bytes[: len(part) * entry.dtype.itemsize]
        with entry.file.open("rb") as stored:
            stored.seek(start)
            got = stored.readinto(memoryview(numbers.numpy()))
        require(got == numbers.nbytes, f"'{entry.file}' became shorter while it was read.")
        part.copy_(numbers.view(entry.dtype))
        return got

    with ThreadPoolExecutor(_READERS) as pool:
        yield from pool.map(copy, pieces)


def assign(network: nn.Module, name: str, tensor: Tensor) -> None:
    """Replace a parameter by a tensor, in every module that shares it. The weight of a quantised map is packed."""
    owner, _, part = name.rpartition(".")
    quantized = network.get_submodule(owner)
    if isinstance(quantized, QuantizedLinear) and part == "weight":
        quantized.store(tensor)
        return
    old = network.get_parameter(name)
    new = nn.Parameter(tensor, requires_grad=False)
    for module in network.modules():
        for kind, parameter in list(module.named_parameters(recurse=False)):
            if parameter is old:
                setattr(module, kind, new)
