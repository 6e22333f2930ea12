"""How much memory a model needs and how much is free, said before the model is loaded."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch

from ...core.errors import UncodeError
from ...core.support.memory import free_bytes, gigabytes
from ..transformer.shape import Shape

WORTH_A_LINE = 1 << 30


@dataclass(frozen=True)
class ModelSize:
    """What a model takes."""

    parameters: int
    bytes: int
    kind: str
    """The dtype, and the format of the weights where they are packed."""
    can_be_packed: bool = False
    """Whether `weights=` would make it smaller."""

    @classmethod
    def plain(cls, parameters: int, dtype: torch.dtype) -> ModelSize:
        """A model with all parameters in one dtype."""
        return cls(parameters, parameters * dtype.itemsize, str(dtype).removeprefix("torch."))

    @classmethod
    def of(cls, shape: Shape, dtype: torch.dtype, weights: str | None) -> ModelSize:
        """A transformer, with its layers' weights in a format."""
        kind = str(dtype).removeprefix("torch.")
        named = kind if weights is None else f"{weights} and {kind}"
        return cls(
            shape.parameters,
            shape.weight_bytes(dtype.itemsize, weights),
            named,
            weights != "int4" and shape.mixture is None,
        )


def announce(name: str, size: ModelSize, *devices: torch.device) -> None:
    """One line about a large model; an error if it cannot fit on the devices together."""
    line, where, there = check_memory(name, size, *devices)
    if size.bytes >= WORTH_A_LINE:
        known = "free memory unknown" if there is None else f"{gigabytes(there)} free"
        print(f"{line}; {where} has {known}.", file=sys.stderr)


def check_memory(name: str, size: ModelSize, *devices: torch.device) -> tuple[str, str, int | None]:
    """What a model needs, where it shall go and how much is free there; an error if that is too little."""
    free = [free_bytes(device) for device in devices]
    there = None if None in free else sum(size or 0 for size in free)
    where = " and ".join(map(str, devices))
    line = f"{name}: {size.parameters / 1e9:.2f} B parameters, {gigabytes(size.bytes)} in {size.kind}"
    if there is not None and size.bytes > there:
        packed = "pack its weights (`weights=`), " if size.can_be_packed else ""
        raise UncodeError(
            f"{line}, but {where} has {gigabytes(there)} free: "
            f"choose a smaller dtype or another device, {packed}or spread it over several with a device_map."
        )
    return line, where, there
