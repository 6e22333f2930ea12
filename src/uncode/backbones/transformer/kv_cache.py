"""The KV cache: rotated keys and values of every layer, written in place.

On a CPU :meth:`LayerCache.write` writes it; on a GPU the RoPE kernel does (`kernels.pointwise_triton.rope_and_cache`).

A buffer has one column more than the canvas, `[B, key heads, L + 1, d]`. With a shifted window a forward computes one
column whose keys are never read; it writes them to that spare column, so that no kernel needs a branch. Rows that have
left a captured batch write into their own buffer rows, which no row uses any more.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class LayerCache:
    """One layer's cached keys and values, and the columns that a forward writes."""

    buffers: list[Tensor]
    """Keys and values. Empty until the first write: only then is it known on which device the layer runs."""
    shape: tuple[int, ...]
    """Of each buffer: `(B or more, key heads, L + 1, d)`."""
    columns: Tensor
    """Where the forward's keys and values go: `[T]`, or `[B, T]` where rows differ."""
    rows: Tensor | None = None
    """The rows of the forward, where it computes a part of the batch; else it computes the first rows."""

    def allocated(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """The buffers, made beside `like` if there are none yet."""
        if not self.buffers:
            self.buffers.extend(like.new_zeros(self.shape) for _ in range(2))
        keys, values = self.buffers
        return keys, values

    def write(self, keys: Tensor, values: Tensor) -> None:
        """Store rotated keys and values `[B, key heads, T, d]` in place."""
        columns = self.columns.to(keys.device)
        for buffer, new in zip(self.allocated(keys), (keys, values), strict=True):
            if self.rows is not None:
                heads = torch.arange(new.shape[1])[:, None]
                buffer[self.rows[:, None, None], heads, columns.view(-1, 1, new.shape[2])] = new
            elif columns.dim() == 1:
                buffer[: len(new)].index_copy_(2, columns, new)
            else:
                buffer[: len(new)].scatter_(2, columns[:, None, :, None].expand_as(new), new)

    def read(self, rows: int) -> tuple[Tensor, Tensor]:
        """Keys and values of the rows of the forward, without the spare column."""
        own = slice(rows) if self.rows is None else self.rows
        keys, values = (buffer[own, :, : self.shape[2] - 1] for buffer in self.buffers)
        return keys, values


class KVCache:
    """Keys and values of all layers.

    The buffers keep their address while rows leave and others take their place, because a captured CUDA graph reads
    and writes them by address.
    """

    def __init__(self, layers: int, key_heads: int, head_width: int, rows: int, length: int) -> None:
        self.key_heads, self.head_width, self.length = key_heads, head_width, length
        self.rows = self.capacity = rows
        self.buffers: list[list[Tensor]] = [[] for _ in range(layers)]

    def layers(self, columns: Tensor, rows: Tensor | None = None) -> list[LayerCache]:
        """Every layer's cache, for a forward that writes `columns`: of these rows, or of the first ones."""
        shape = (self.capacity, self.key_heads, self.length + 1, self.head_width)
        return [LayerCache(buffers, shape, columns, rows) for buffers in self.buffers]

    def allocate(self, like: Tensor) -> None:
        """Make the buffers beside `like` if there are none yet. Parts of a batch must not each make them."""
        for layer in self.layers(like):
            layer.allocated(like)

    def reserve(self, rows: int, most: int) -> bool:
        """Make room for so many rows. Returns whether the buffers moved. They have room for a power of two, or for
        `most` rows, so that they seldom move."""
        self.rows = 0  # nothing in them is kept
        moves = self.add(min(1 << (rows - 1).bit_length(), most), 0, 0)
        self.rows = rows
        return moves

    def resize(self, length: int) -> None:
        """Buffers of as many rows for another number of columns, without content."""
        self.length, self.buffers = length, [[] for _ in self.buffers]

    def clear(self) -> None:
        """Nothing is kept, and the buffers stay where they are."""
        for pair in self.buffers:
            for buffer in pair:
                buffer.zero_()

    @property
    def bytes(self) -> int:
        return sum(buffer.nbytes for pair in self.buffers for buffer in pair)

    def copy_to(self, other: KVCache, rows: Tensor) -> None:
        """The first entries of this cache become `rows` of the other."""
        for mine, theirs in zip(self.buffers, other.buffers, strict=True):
            for source, target in zip(mine, theirs, strict=True):
                target.index_copy_(0, rows.to(target.device), source[: len(rows)])

    def copy_from(self, other: KVCache, rows: Tensor) -> None:
        """`rows` of the other cache become the first entries of this one."""
        for layer, theirs in zip(self.layers(rows), other.buffers, strict=True):
            for source, target in zip(theirs, layer.allocated(theirs[0]), strict=True):
                target[: len(rows)] = source[rows.to(source.device)]

    def add(self, rows: int, left: int, right: int) -> bool:
        """Make room for more rows and columns; negative numbers drop columns. Returns whether the buffers moved."""
        moves = left != 0 or right != 0 or self.rows + rows > self.capacity
        if moves:
            self.length += left + right
            used = [[buffer[: self.rows] for buffer in pair] for pair in self.buffers]
            self.capacity = max(self.capacity, self.rows + rows)
            more = (0, 0, left, right, 0, 0, 0, self.capacity - self.rows)
            self.buffers = [[functional.pad(buffer, more) for buffer in pair] for pair in used]
        self.rows += rows
        return moves

    def keep(self, rows: Tensor) -> None:
        """Only these rows stay, in this order. Of gigabytes, only the rows that move are copied; to know which, a GPU
        syncs."""
        moves = [(to, source) for to, source in enumerate(rows.tolist()) if to != source]
        buffers = [buffer for pair in self.buffers for buffer in pair if moves]
        moved = {device: torch.tensor(moves, device=device).unbind(-1) for device in {b.device for b in buffers}}
        for buffer in buffers:
            to, source = moved[buffer.device]
            buffer[to] = buffer[source]
        self.rows = len(rows)
