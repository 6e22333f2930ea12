"""How much memory there is, asked before much of it is taken."""

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

WORTH_A_LOOK = 1 << 26
"""Bytes below which nobody asks: finding out takes longer than having them."""
ABSURD = 10**15
"""Bytes that no machine has."""
BYTES_PER_TOKEN = 64
"""What a token of a canvas takes on its way to the decoder: ids, masks, records, and copies of them."""


def require_memory(need: int, device: torch.device, what: str, instead: str) -> None:
    """Raise unless `need` bytes are free on the device; `what` needs them, and `instead` is what else to do."""
    there = free(device) if need >= WORTH_A_LOOK else None
    if there is not None and need > there:
        about = f"about {gigabytes(need)}, but {device} has {gigabytes(there)} free"
        raise UncodeError(f"{what} needs {about if need < ABSURD else 'more memory than any machine has'}: {instead}.")


def require_room_for(tokens: int) -> None:
    """Raise unless a canvas with so many tokens can be held on the host."""
    require_memory(
        tokens * BYTES_PER_TOKEN, torch.device("cpu"), f"a canvas of {tokens:,} tokens", "use a shorter length"
    )


def require_logits(canvas: Canvas, samplers: Sequence[Sampler], facts: Facts, whole_span: bool) -> None:
    """Raise unless one forward's logits fit: `[B, W, V]` in float32, with W the widest open block (or the span)."""
    lengths = canvas.lengths.cpu().numpy()
    ends = (sampler.policy.blocks(lengths[row : row + 1]) for row, sampler in enumerate(samplers))
    widest = canvas.span if whole_span else max(int(np.diff(each, prepend=0).max()) for each in ends)
    require_memory(
        4 * canvas.rows * widest * facts.vocab_size,
        facts.device,
        f"a step that sees {canvas.rows * widest:,} positions",
        "use a shorter length, a smaller batch or shorter blocks",
    )


def free(device: torch.device) -> int | None:
    """Bytes that can still be taken, or None where nobody can tell."""
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # torch's own, to be used again
        return int(torch.cuda.mem_get_info(device)[0]) + kept
    table = Path("/proc/meminfo")
    if device.type != "cpu" or not table.is_file():
        return None
    lines = (line.split(":") for line in table.read_text().splitlines())
    sizes = {key: int(value.split()[0]) * 1024 for key, value in lines}
    return sizes.get("MemAvailable", 0) + sizes.get("SwapFree", 0) or None


def gigabytes(count: int) -> str:
    """A number of bytes, from a thousand GB on in TB."""
    return f"{count / 1e9:.1f} GB" if count < 1e12 else f"{count / 1e12:,.1f} TB"
