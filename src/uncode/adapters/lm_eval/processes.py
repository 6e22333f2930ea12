"""Data parallel runs: lm-eval divides the examples by rank, and gathers texts and grades on rank 0."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ...evals.run.processes import ProcessPlace

LM_EVAL_DEVICE = "cuda:0"
"""What lm-eval asks for if the user names no device, on a machine without a GPU too."""


class ProcessGroup:
    """This process and the others, which `accelerate launch` or torchrun has started."""

    def __init__(self) -> None:
        self.place = ProcessPlace.from_environment()
        if self.place.processes > 1 and not dist.is_initialized():
            dist.init_process_group("gloo")  # for texts and grades; no tensor leaves its GPU

    def device(self, wanted: str | None) -> str | None:
        """The device of this process."""
        return self.place.device(None if wanted == LM_EVAL_DEVICE else wanted)

    def all_gather(self, tensor: Tensor) -> Tensor:
        """The tensors of all processes, one after the other."""
        mine = tensor.detach().cpu().reshape(-1)
        found = [torch.empty_like(mine) for _ in range(self.place.processes)]
        dist.all_gather(found, mine)
        return torch.cat(found)

    def gather_object(self, value: Any, dst: int = 0) -> list[Any] | None:
        """The objects of all processes, on process `dst`; None on the others."""
        found: list[Any] | None = [None] * self.place.processes if self.place.process == dst else None
        dist.gather_object(value, found, dst=dst)
        return found

    def barrier(self) -> None:
        """Wait for all processes."""
        dist.barrier()
