"""Warn before a forward that takes over a minute on a CPU, because Ctrl-C takes effect only between operations.

Attention over L positions is one operation of L x L products for each layer. At 100,000 positions it takes seconds
to minutes, while it needs little memory.
"""

from __future__ import annotations

import sys
import time

import torch

from .network import Shape

WORTH_A_WARNING = 60.0
"""Seconds of one forward."""
_WORTH_A_MEASUREMENT = 1e12
"""Floating-point operations below which no CPU needs a minute."""
_SIDE = 512


def flops_of(shape: Shape, rows: int, length: int) -> float:
    """Floating-point operations of one forward: the weights for every token, and attention for every pair of them."""
    return 2.0 * shape.parameters * rows * length + 4.0 * shape.layers * shape.width * rows * length**2


def warn_if_long(shape: Shape, rows: int, length: int, device: torch.device) -> None:
    """One line on standard error where a forward will take more than a minute on a CPU."""
    work = flops_of(shape, rows, length)
    if device.type != "cpu" or work < _WORTH_A_MEASUREMENT:
        return
    seconds = work * _seconds_per_flop()
    if seconds > WORTH_A_WARNING:
        line = f"a forward over {rows * length:,} tokens takes about {seconds:,.0f} s here"
        stop = f"Ctrl-C is noticed within about {seconds / shape.layers:,.0f} s"
        print(f"{line}, and {stop}: use a shorter length or a GPU.", file=sys.stderr)


def _seconds_per_flop() -> float:
    """Of a matrix product on this machine: the best of eight, since other processes disturb some."""
    square = torch.ones(_SIDE, _SIDE)
    times = []
    for _ in range(8):
        began = time.perf_counter()
        torch.mm(square, square)
        times.append(time.perf_counter() - began)
    return min(times) / (2.0 * _SIDE**3)
