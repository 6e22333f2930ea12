"""The canvas: rows of tokens, some given, some to be filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .errors import require
from .reprs import counted

Ids = Tensor | Sequence[int] | Sequence[Sequence[int]]


@dataclass(frozen=True)
class Canvas:
    """Tokens `[B, L]`, which of them are given, and the span that is to be generated.

    Prompts are padded on the left, so the generated span `[start, L)` is a rectangle; a row that
    asks for fewer tokens than the longest is padded on its right. Padding is neither valid nor
    masked. A masked position holds `mask_id`; everything else that is valid is given.
    """

    tokens: Tensor
    valid: Tensor
    mask_id: int
    start: int

    @classmethod
    def after_prompt(cls, ids: Ids, length: int | Sequence[int], mask_id: int, pad_id: int | None = None) -> Canvas:
        """A canvas of `length` masks after each prompt. `ids` is `[B, P]` or a list of unequal lists."""
        rows = _rows(ids)
        require(len(rows) > 0, "a canvas needs at least one row.")
        lengths = [length] * len(rows) if isinstance(length, int) else length
        whole = isinstance(lengths, Sequence) and all(isinstance(n, int) for n in lengths)
        require(whole, f"the length to generate is a whole number or one per row, not {length!r}.")
        require(len(lengths) == len(rows), f"{len(lengths)} lengths were given for {len(rows)} prompts.")
        require(min(lengths) > 0, "the length to generate must be at least 1.")
        masks = [row.new_full((n,), mask_id) for row, n in zip(rows, lengths, strict=True)]
        return cls._assemble(rows, masks, mask_id, pad_id)

    @classmethod
    def infill(cls, ids: Ids, mask_id: int, pad_id: int | None = None) -> Canvas:
        """A canvas whose masks stand anywhere in `ids`; all other tokens are given.

        The span runs from the first masked column to the end, so rows are aligned at their first mask.
        """
        rows = _rows(ids)
        require(len(rows) > 0, "a canvas needs at least one row.")
        firsts = [int((row == mask_id).nonzero()[0]) if bool((row == mask_id).any()) else -1 for row in rows]
        require(min(firsts) >= 0, f"row {firsts.index(-1) if -1 in firsts else 0} of the canvas has no masks to fill.")
        heads = [row[:first] for row, first in zip(rows, firsts, strict=True)]
        tails = [row[first:] for row, first in zip(rows, firsts, strict=True)]
        return cls._assemble(heads, tails, mask_id, pad_id)

    @classmethod
    def _assemble(cls, heads: list[Tensor], tails: list[Tensor], mask_id: int, pad_id: int | None) -> Canvas:
        start, width = max(len(h) for h in heads), max(len(t) for t in tails)
        pad = pad_id if pad_id is not None else int(mask_id == 0)
        require(pad != mask_id, "the padding id must differ from the mask id.")
        tokens = heads[0].new_full((len(heads), start + width), pad)
        valid = torch.zeros_like(tokens, dtype=torch.bool)
        for row, (head, tail) in enumerate(zip(heads, tails, strict=True)):
            columns = slice(start - len(head), start + len(tail))
            tokens[row, columns] = torch.cat([head, tail])
            valid[row, columns] = True
        return cls(tokens, valid, mask_id, start)

    def __repr__(self) -> str:
        columns = counted(self.tokens.shape[1], "column")
        return f"Canvas({counted(self.rows, 'row')}, {columns}, {int(self.masked.sum())} masked)"

    @property
    def rows(self) -> int:
        return self.tokens.shape[0]

    @property
    def span(self) -> int:
        """Columns of the generated span."""
        return self.tokens.shape[1] - self.start

    @property
    def lengths(self) -> Tensor:
        """Columns of the span that belong to each row: `[B]`."""
        return self.valid[:, self.start :].sum(-1)

    @property
    def masked(self) -> Tensor:
        return self.tokens == self.mask_id

    @property
    def given(self) -> Tensor:
        """Positions the decoder may never change; padding counts as given."""
        return self.tokens != self.mask_id

    def with_anchors(self, anchors: Mapping[int, int] | Sequence[Mapping[int, int]]) -> Canvas:
        """The same canvas with `{offset: token}` given, in every row or row by row: an anchor is a given token."""
        tokens = self.tokens.clone()
        each = [anchors] * self.rows if isinstance(anchors, Mapping) else anchors
        require(len(each) == self.rows, f"anchors for {len(each)} rows were given to a canvas of {self.rows}.")
        for row, length in enumerate(self.lengths.tolist()):
            for offset, token in each[row].items():
                require(0 <= offset < length, f"an anchor at offset {offset} lies outside row {row}, {length} long.")
                require(token != self.mask_id, "an anchor cannot be the mask token.")
                at = (row, self.start + offset)
                require(int(tokens[at]) == self.mask_id, f"offset {offset} of row {row} is given already.")
                tokens[at] = token
        return replace(self, tokens=tokens)

    def to(self, device: torch.device | str) -> Canvas:
        return replace(self, tokens=self.tokens.to(device), valid=self.valid.to(device))

    def check(self, vocab_size: int) -> None:
        """Raise unless every row has a mask to fill, all of them inside the span, and every id is the model's."""
        empty = (~self.masked.any(-1)).nonzero().flatten().tolist()
        require(not empty, f"row {empty[0] if empty else 0} of the canvas has no masks to fill.")
        outside = bool(self.masked[:, : self.start].any()) or bool((self.masked & ~self.valid).any())
        require(not outside, "the canvas has masks outside its generated span: use Canvas.infill for those.")
        largest, least = int(self.tokens.max()), int(self.tokens.min())
        strange = largest if largest >= vocab_size else least
        require(0 <= strange < vocab_size, f"token {strange} of the canvas is outside the vocabulary of {vocab_size}.")


def _rows(ids: Ids) -> list[Tensor]:
    if isinstance(ids, Tensor):
        require(ids.dim() in (1, 2), f"prompt ids must be [B, P] or [P], not a tensor of {ids.dim()} dimensions.")
        return list((ids if ids.dim() == 2 else ids[None]).long())
    if hasattr(ids, "__array__"):
        return _rows(torch.as_tensor(ids))
    if len(ids) > 0 and isinstance(ids[0], int):
        return [torch.tensor(ids, dtype=torch.long)]
    return [torch.as_tensor(row, dtype=torch.long) for row in ids]
