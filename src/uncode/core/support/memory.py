"""How much memory is free; checked before a large allocation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..errors import UncodeError

if TYPE_CHECKING:
    from ..canvas import Canvas
    from ..denoiser import Facts
    from ..pieces.policy import Sampler

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


def require_logits(canvas: Canvas, samplers: Sequence[Sampler], facts: Facts, whole_span: bool) -> None:
    """Raise unless one forward's logits fit: `[B, W, V]` in float32, with W the widest open block, or the span.

    What pieces remember per token takes as much again.
    """
    lengths = canvas.lengths.tolist()
    different = {(id(sampler), length): sampler for sampler, length in zip(samplers, lengths, strict=True)}
    widths = (sampler.policy.blocks.widest(np.array([length])) for (_, length), sampler in different.items())
    whole_span = whole_span or any(one.policy.stop.sees_beliefs or one.max_probes for one in different.values())
    widest = canvas.span if whole_span else max(int(width[0]) for width in widths)
    copies = 1 + max((_buffers_per_token(sampler) for sampler in different.values()), default=0)
    require_memory(
        4 * copies * canvas.rows * widest * facts.vocab_size,
        facts.device,
        f"a step that sees {canvas.rows * widest:,} positions",
        "use a shorter length, a smaller batch or shorter blocks",
    )


def _buffers_per_token(sampler: Sampler) -> int:
    pieces = list(sampler.pieces())
    declared = sum(buffer.per == "token" for piece in pieces for buffer in piece.buffers())
    return declared + any(piece.needs_drift for piece in pieces)


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
