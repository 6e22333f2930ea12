"""How much memory a model needs and how much is free, said before the model is loaded."""

from __future__ import annotations

import sys

import torch

from ...core.errors import UncodeError
from ...core.support.memory import free_bytes, gigabytes

WORTH_A_LINE = 1 << 30


def announce(name: str, parameters: int, dtype: torch.dtype, *devices: torch.device) -> None:
    """One line about a large model; an error if it cannot fit on the devices together."""
    line, where, there = check_memory(name, parameters, dtype, *devices)
    if parameters * dtype.itemsize >= WORTH_A_LINE:
        known = "free memory unknown" if there is None else f"{gigabytes(there)} free"
        print(f"{line}; {where} has {known}.", file=sys.stderr)


def check_memory(name: str, parameters: int, dtype: torch.dtype, *devices: torch.device) -> tuple[str, str, int | None]:
    """What a model needs, where it shall go and how much is free there; an error if that is too little."""
    need = parameters * dtype.itemsize
    free = [free_bytes(device) for device in devices]
    there = None if None in free else sum(size or 0 for size in free)
    where, kind = " and ".join(map(str, devices)), str(dtype).removeprefix("torch.")
    line = f"{name}: {parameters / 1e9:.2f} B parameters, {gigabytes(need)} in {kind}"
    if there is not None and need > there:
        raise UncodeError(
            f"{line}, but {where} has {gigabytes(there)} free: "
            "choose a smaller dtype or another device, or spread it over several with a device_map."
        )
    return line, where, there
