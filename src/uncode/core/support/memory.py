"""How much memory is free; checked before a large allocation."""

from __future__ import annotations

from pathlib import Path

import torch

from ..errors import UncodeError

MIN_CHECKED_BYTES = 1 << 26
"""Allocations below this size are not checked: the check takes longer than the allocation."""
MAX_PLAUSIBLE_BYTES = 10**15
"""No machine has more bytes."""
BYTES_PER_TOKEN = 64
"""What a token of a canvas takes on its way to the decoder: ids, masks, records, and copies of them."""


def require_memory(need: int, device: torch.device, what: str, instead: str) -> None:
    """Raise unless `need` bytes are free on the device; `what` needs them, and `instead` is what else to do."""
    there = free_bytes(device) if need >= MIN_CHECKED_BYTES else None
    if there is not None and need > there:
        about = f"about {gigabytes(need)}, but {device} has {gigabytes(there)} free"
        needed = about if need < MAX_PLAUSIBLE_BYTES else "more memory than any machine has"
        raise UncodeError(f"{what} needs {needed}: {instead}.")


def require_memory_for_canvas(tokens: int) -> None:
    """Raise unless a canvas with so many tokens can be held on the host."""
    require_memory(
        tokens * BYTES_PER_TOKEN, torch.device("cpu"), f"a canvas of {tokens:,} tokens", "use a shorter length"
    )


def free_bytes(device: torch.device) -> int | None:
    """Free bytes on the device; None where that cannot be found out."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # torch takes these again
        return int(torch.cuda.mem_get_info(device)[0]) + unused
    table = Path("/proc/meminfo")
    if device.type != "cpu" or not table.is_file():
        return None
    lines = (line.split(":") for line in table.read_text().splitlines())
    sizes = {key: int(value.split()[0]) * 1024 for key, value in lines}
    return sizes.get("MemAvailable", 0) + sizes.get("SwapFree", 0) or None


def gigabytes(count: int) -> str:
    """A number of bytes, from a thousand GB on in TB."""
    return f"{count / 1e9:.1f} GB" if count < 1e12 else f"{count / 1e12:,.1f} TB"
