"""Memory for a model: how much it needs and how much there is, said before it is loaded; and the memory itself."""

from __future__ import annotations

import mmap
import sys
from math import prod

import torch
from torch import Tensor

from ...core.errors import UncodeError
from ...core.support.memory import free, gigabytes

WORTH_A_LINE = 1 << 30


def announce(name: str, parameters: int, dtype: torch.dtype, *devices: torch.device) -> None:
    """One line about a large model; an error if it cannot fit on the devices together."""
    line, where, there = check_room(name, parameters, dtype, *devices)
    if parameters * dtype.itemsize >= WORTH_A_LINE:
        known = "free memory unknown" if there is None else f"{gigabytes(there)} free"
        print(f"{line}; {where} has {known}.", file=sys.stderr)


def check_room(name: str, parameters: int, dtype: torch.dtype, *devices: torch.device) -> tuple[str, str, int | None]:
    """What a model needs, where it shall go and how much is free there; an error if that is too little."""
    need = parameters * dtype.itemsize
    room = [free(device) for device in devices]
    there = None if None in room else sum(size or 0 for size in room)
    where, kind = " and ".join(map(str, devices)), str(dtype).removeprefix("torch.")
    line = f"{name}: {parameters / 1e9:.2f} B parameters, {gigabytes(need)} in {kind}"
    if there is not None and need > there:
        raise UncodeError(
            f"{line}, but {where} has {gigabytes(there)} free: "
            "choose a smaller dtype or another device, or spread it over several with a device_map."
        )
    return line, where, there


def room(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Memory for a tensor; on the CPU whole pages of its own, for an allocator may round up by a seventh."""
    size = prod(shape) * dtype.itemsize
    if device.type != "cpu" or size < mmap.PAGESIZE or not hasattr(mmap, "MAP_PRIVATE"):
        return torch.empty(shape, dtype=dtype, device=device)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(pages, dtype=dtype).view(shape)
