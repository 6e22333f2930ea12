"""Logits without the tokens that a constraint forbids, as a Triton kernel: one pass, and no flags of `[B, W, V]`.

A token is allowed at a column if its class is. A program reads the classes of its tokens once, and then the flags of
these classes for each of its columns. Memory traffic: the logits are read and written once, the classes once a group of
columns.
"""

# mypy: ignore-errors
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

TOKENS, COLUMNS, WARPS = 2048, 4, 8
"""Tokens and columns of a program; its warps."""


@triton.jit
def _bar(
    logits, stride_row, stride_column, out, vocab, width, classes, places, flags, count,
    TOKENS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Copy the logits of a row, -inf where the flag of a token's class is not set.

    Grid: (rows, groups of columns, parts of the vocabulary).
    """
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(2)
    token = part * TOKENS + tl.arange(0, TOKENS)
    inside = token < vocab
    table, own = tl.load(places + 2 * row), tl.load(places + 2 * row + 1)
    held = inside & (own >= 0)
    of_class = tl.load(classes + table * vocab + token, mask=held, other=0)
    for at in tl.static_range(COLUMNS):
        column = tl.program_id(1).to(tl.int64) * COLUMNS + at
        here = inside & (column < width)
        x = tl.load(logits + row * stride_row + column * stride_column + token, mask=here, other=0.0).to(tl.float32)
        flag = tl.load(flags + (own * width + column) * count + of_class, mask=held & here, other=1)
        x = tl.where(flag != 0, x, float("-inf"))
        tl.store(out + (row * width + column) * vocab + token, x, mask=here)


def barred(logits: Tensor, classes: Tensor, places: Tensor, flags: Tensor) -> Tensor:
    """Logits `[B, W, V]` with -inf for tokens whose class has no flag. Row b's tokens are of the classes
    `classes[places[b, 0]]`, of `[A, V]`, and its flags are `flags[places[b, 1]]`, of `[n, W, C]`; where that is -1, the
    row stays as it is."""
    rows, width, vocab = logits.shape
    logits = logits if logits.stride(-1) == 1 else logits.contiguous()
    out = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
    grid = rows, triton.cdiv(width, COLUMNS), triton.cdiv(vocab, TOKENS)
    with torch.cuda.device_of(logits):  # a kernel starts on the current device, wherever its tensors lie
        _bar[grid](
            logits, logits.stride(0), logits.stride(1), out, vocab, width, classes, places, flags, flags.shape[-1],
            TOKENS=TOKENS, COLUMNS=COLUMNS, num_warps=WARPS,
        )  # fmt: skip
    return out
