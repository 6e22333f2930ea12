"""The place of this process in a run of several, from the environment that `accelerate launch` and torchrun set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ...core.errors import UncodeError, require


@dataclass(frozen=True)
class ProcessPlace:
    """This process of a run. `local` is its number on its own machine, which chooses its GPU."""

    process: int = 0
    processes: int = 1
    local: int = 0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> ProcessPlace:
        """Read RANK, WORLD_SIZE and LOCAL_RANK. Without them the run has one process."""
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
        given = [name for name in names[:2] if environment.get(name)]
        if not given:
            return cls()
        require(len(given) == 2, f"{given[0]} is set and the other of RANK and WORLD_SIZE is not: set both or neither.")
        try:
            place = cls(*(int(environment.get(name) or 0) for name in names))
        except ValueError:
            raise UncodeError(f"{', '.join(names)} must be whole numbers: start the run with torchrun.") from None
        fits = 0 <= place.process < place.processes
        require(fits, f"RANK is {place.process}, but WORLD_SIZE is {place.processes}: start the run with torchrun.")
        return place

    def device(self, wanted: str | None) -> str | None:
        """The device of this process: its own GPU, unless a device was asked for."""
        import torch

        if wanted not in (None, "cuda") or self.processes == 1 or not torch.cuda.is_available():
            return wanted
        return f"cuda:{self.local % torch.cuda.device_count()}"
