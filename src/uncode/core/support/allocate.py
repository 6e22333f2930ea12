"""Memory for large tensors."""

from __future__ import annotations

import mmap
from math import prod

import torch
from torch import Tensor


def empty_tensor(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor without values. On a CPU it has separate whole pages: an allocator may round up by a seventh."""
    size = prod(shape) * dtype.itemsize
    if device.type != "cpu" or size < mmap.PAGESIZE or not hasattr(mmap, "MAP_PRIVATE"):
        return torch.empty(shape, dtype=dtype, device=device)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(pages, dtype=dtype).view(shape)
