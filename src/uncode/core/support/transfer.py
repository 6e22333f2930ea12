"""Small copies between host and device that do not wait for the device's other work.

A blocking copy waits for the forward that is running. So does an operation that mixes tensors of host and device.
"""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

PINNED_BYTES = 1 << 14
"""An array of this size is pinned first: a copy out of pageable memory may wait for the device's other work."""


def upload(array: NDArray[Any], device: torch.device) -> Tensor:
    """The array as a tensor of the device; on a CPU they share their memory."""
    tensor = torch.from_numpy(array)
    if device.type != "cuda":
        return tensor.to(device)
    return (tensor.pin_memory() if array.nbytes >= PINNED_BYTES else tensor).to(device, non_blocking=True)


class Download:
    """A tensor on its way to the host. Work that is launched later does not delay it.

    The host sleeps until the copy has arrived. Polling would keep a core busy, and processes that share a GPU wait
    for it most of the time.
    """

    def __init__(self, tensor: Tensor) -> None:
        self._there = tensor.to("cpu", non_blocking=tensor.is_cuda)
        self._arrived = _arrival(tensor.device) if tensor.is_cuda else None

    def __call__(self) -> NDArray[Any]:
        """Wait for it."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return self._there.numpy()


def _arrival(device: torch.device) -> torch.cuda.Event:
    """An event after all work that was launched on this device so far. Waiting for it sleeps."""
    event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(device))
    return event


def number(value: float, like: Tensor, dtype: torch.dtype) -> Tensor:
    """One number, where `like` is."""
    return torch.full((), value, dtype=dtype, device=like.device)
