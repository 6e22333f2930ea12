"""Data parallel runs: the processes that `accelerate launch` or `torchrun` has started, by their environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class Processes:
    """This process among the others. lm-eval divides the examples by rank, and gathers the grades on rank 0."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0

    @classmethod
    def start(cls) -> Processes:
        """Join the process group, if there are others. Gloo is enough: only grades and texts are exchanged."""
        rank, world_size, local = (
            int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0))
        )
        if world_size > 1 and not dist.is_initialized():
            dist.init_process_group("gloo")
        return cls(rank, world_size, local)

    def device(self, wanted: str | None) -> str | None:
        """The device of this process. lm-eval asks for cuda:0 by default, on a machine without a GPU too."""
        if wanted is None or not wanted.startswith("cuda"):
            return wanted
        if not torch.cuda.is_available():
            return None
        return f"cuda:{self.local_rank % torch.cuda.device_count()}" if self.world_size > 1 else wanted

    def all_gather(self, tensor: Tensor) -> Tensor:
        """The tensors of all processes, one after the other."""
        if self.world_size == 1:
            return tensor
        mine = tensor.detach().cpu().reshape(-1)
        found = [torch.empty_like(mine) for _ in range(self.world_size)]
        dist.all_gather(found, mine)
        return torch.cat(found)

    def gather_object(self, value: Any, dst: int = 0) -> list[Any] | None:
        """The objects of all processes, on process `dst`; None on the others."""
        if self.world_size == 1:
            return [value]
        found: list[Any] | None = [None] * self.world_size if self.rank == dst else None
        dist.gather_object(value, found, dst=dst)
        return found

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.world_size > 1:
            dist.barrier()
