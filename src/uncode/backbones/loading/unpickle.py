"""The process that reads one pickled file of weights and writes it as safetensors to a descriptor that it is given.

It gives up its rights before it reads: from then on it can open no file for writing, start no process and reach no
network, and its memory, its time and its output are limited. `torch.load(weights_only=True)` then calls no function
that a pickle names, but for those that make tensors.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...sandbox.guest.confine import confine_to

KINDS = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""The types of safetensors by those of torch."""
SPARE_BYTES = 1 << 30
BYTES_PER_SECOND = 10_000_000
"""No disk is slower. The limit on processor time comes from it."""
_REFUSED_NAME = re.compile(r"GLOBAL ([\w.]+)|Unsupported class ([\w.]+)|global ([\w.]+)")


class Refused(Exception):
    """A file that is not weights, in the words of the error message."""


def main() -> None:
    """`argv`: the pickled file, the descriptor to write to, whether names may be tied (1 or 0). The last line on
    standard error is a report as JSON."""
    source, output, ties = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1"
    torch.set_num_threads(1)  # no thread can be started after this
    size = source.stat().st_size
    give_up_rights(size)
    try:
        tensors = read_weights(source)
        report = write_weights(output, tensors, ties)
    except Refused as refused:
        report = {"refused": str(refused)}
    except MemoryError:
        report = {"refused": "needs more memory than its size allows"}
    except OSError as error:
        report = {"refused": f"cannot be written out ({error.strerror or error})"}
    os.write(2, json.dumps(report).encode() + b"\n")


def give_up_rights(size: int) -> None:
    """Confine this process. The limits allow for a file of `size` bytes, and a copy of it."""
    confine_to(60 + size // BYTES_PER_SECOND, 2 * size + SPARE_BYTES)


def read_weights(source: Path) -> dict[str, Tensor]:
    """The tensors of a state dict by name."""
    try:
        found: Any = torch.load(source, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(source) or None)
    except pickle.UnpicklingError as error:
        names = _REFUSED_NAME.search(str(error))
        called = next((name for name in names.groups() if name), "") if names else ""
        raise Refused(
            f"names {called}, which makes no tensor" if called else "is no file that torch.save wrote"
        ) from None
    except (RuntimeError, EOFError, ValueError, KeyError) as error:
        raise Refused(f"cannot be read ({(str(error).splitlines() or [type(error).__name__])[0][:200]})") from None
    if not isinstance(found, Mapping):
        raise Refused(f"holds a {type(found).__name__}, not weights by name")
    for name, tensor in found.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise Refused(f"holds {str(name)[:80]!r}, which is a {type(tensor).__name__} and no tensor")
        if tensor.dtype not in KINDS or tensor.layout is not torch.strided:
            raise Refused(f"holds {name[:80]!r}, a tensor of {tensor.dtype}, which safetensors cannot store")
    return {name: tensor.detach() for name, tensor in found.items()}


def write_weights(output: int, tensors: Mapping[str, Tensor], ties: bool) -> dict[str, Any]:
    """Write a safetensors file: the length of the header, the header, the tensors. Returns the report.

    Of names that share one tensor the first is written, if there may be `ties`.
    """
    first, tied = dict[Any, str](), dict[str, str]()
    for name, tensor in tensors.items():
        place = (
            tensor.untyped_storage().data_ptr(),
            tensor.storage_offset(),
            tensor.shape,
            tensor.stride(),
            tensor.dtype,
        )
        kept = first.setdefault(place, name) if ties and tensor.numel() else name
        if kept != name:
            tied[name] = kept
    written = sorted(tensors.keys() - tied.keys(), key=lambda name: (-tensors[name].itemsize, name))
    header, at = dict[str, Any]({"__metadata__": {"format": "pt"}}), 0
    for name in written:
        tensor = tensors[name]
        end = at + tensor.numel() * tensor.itemsize
        header[name] = {"dtype": KINDS[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(output, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in written:
            file.write(tensors[name].contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return {"tied": tied}


if __name__ == "__main__":
    main()
