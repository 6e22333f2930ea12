"""The canvas: rows of tokens, some given, some to be filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from .errors import UncodeError, require, shown
from .support.arguments import checks_arguments, whole_number
from .support.memory import require_memory_for_canvas
from .support.reprs import counted

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

    def __post_init__(self) -> None:
        fits = isinstance(self.tokens, Tensor) and isinstance(self.valid, Tensor) and self.tokens.dim() == 2
        require(fits, "a canvas holds tensors of tokens [B, L]: make one with Canvas.after_prompt or Canvas.infill.")
        require(self.valid.shape == self.tokens.shape, "tokens and valid of a canvas must have one shape.")

    @classmethod
    @checks_arguments()
    def after_prompt(cls, ids: Ids, length: int | Sequence[int], mask_id: int, pad_id: int | None = None) -> Canvas:
        """A canvas of `length` masks after each prompt. `ids` is `[B, P]` or a list of unequal lists."""
        rows, mask_id = _rows(ids), whole_number(mask_id, "mask_id")
        lengths = _lengths(length, len(rows))
        require_memory_for_canvas(sum(lengths))
        masks = [row.new_full((n,), mask_id) for row, n in zip(rows, lengths, strict=True)]
        return cls._assemble(rows, masks, mask_id, pad_id)

    @classmethod
    @checks_arguments()
    def infill(cls, ids: Ids, mask_id: int, pad_id: int | None = None) -> Canvas:
        """A canvas whose masks stand anywhere in `ids`; all other tokens are given.

        The span runs from the first masked column to the end, so rows are aligned at their first mask.
        """
        rows, mask_id = _rows(ids), whole_number(mask_id, "mask_id")
        firsts = [int((row == mask_id).nonzero()[0]) if bool((row == mask_id).any()) else -1 for row in rows]
        require(min(firsts) >= 0, f"row {firsts.index(-1) if -1 in firsts else 0} of the canvas has no masks to fill.")
        heads = [row[:first] for row, first in zip(rows, firsts, strict=True)]
        tails = [row[first:] for row, first in zip(rows, firsts, strict=True)]
        return cls._assemble(heads, tails, mask_id, pad_id)

    @classmethod
    def _assemble(cls, heads: list[Tensor], tails: list[Tensor], mask_id: int, pad_id: int | None) -> Canvas:
        start, width = max(len(h) for h in heads), max(len(t) for t in tails)
        pad = whole_number(pad_id, "pad_id") if pad_id is not None else int(mask_id == 0)
        require(pad != mask_id, "the padding id must differ from the mask id.")
        tokens = heads[0].new_full((len(heads), start + width), pad)
        first, last = (tokens.new_tensor([[len(part)] for part in parts]) for parts in (heads, tails))
        columns = torch.arange(-start, width, device=tokens.device)
        valid = (columns >= -first) & (columns < last)
        # the valid columns in the order of the rows are all rows one after the other: one write for all of them
        tokens[valid] = torch.cat([part for pair in zip(heads, tails, strict=True) for part in pair])
        return cls(tokens, valid, mask_id, start)

    def padded(self, left: int, right: int) -> Canvas:
        """The same rows with more padding."""
        filler = int(self.mask_id == 0)  # any token but the mask
        more = (left, right)
        return Canvas(
            tokens=torch.nn.functional.pad(self.tokens, more, value=filler),
            valid=torch.nn.functional.pad(self.valid, more, value=False),
            mask_id=self.mask_id,
            start=self.start + left,
        )

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
        fits = isinstance(each, Sequence) and all(isinstance(one, Mapping) for one in each)
        require(fits, f"anchors are {{offset: token}}, for all rows or one per row, not {shown(anchors)}.")
        require(
            len(each) == self.rows,
            f"anchors for {counted(len(each), 'row')} and {counted(self.rows, 'row')} in the canvas.",
        )
        for row, length in enumerate(self.lengths.tolist()):
            for given_at, given in each[row].items():
                offset, token = whole_number(given_at, "an anchor's offset"), whole_number(given, "an anchor's token")
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
    """Each prompt as int64 `[P]`."""
    if isinstance(ids, Tensor) or hasattr(ids, "__array__"):
        dims = getattr(ids, "ndim", 0)
        require(dims in (1, 2), f"prompt ids must be [B, P] or [P], not a tensor of {dims} dimensions.")
        rows = list(_tensor(ids) if dims == 2 else _tensor(ids)[None])
    else:
        _require_ids(isinstance(ids, Sequence) and not isinstance(ids, str | bytes), ids)
        rows = [_tensor(ids)] if len(ids) > 0 and _is_id(ids[0]) else [_tensor(row) for row in ids]
        _require_ids(all(row.dim() == 1 for row in rows), ids)
    require(len(rows) > 0, "a canvas needs at least one row.")
    return rows


def _tensor(ids: Any) -> Tensor:
    """Token ids as int64: a tensor, an array or a list of whole numbers."""
    listed = isinstance(ids, Sequence) and not isinstance(ids, str | bytes)
    are_ids = listed and (all(type(i) is int for i in ids) or all(map(_is_id, ids)))
    _require_ids(isinstance(ids, Tensor) or hasattr(ids, "__array__") or are_ids, ids)
    if listed and len(ids) == 0:
        return torch.zeros(0, dtype=torch.long)
    try:
        found = torch.as_tensor(ids)
    except (TypeError, ValueError, RuntimeError, OverflowError):  # of objects, or beyond 64 bits
        raise UncodeError(_wanted(ids)) from None
    whole = not (found.is_floating_point() or found.is_complex() or found.dtype == torch.bool)
    _require_ids(whole or found.numel() == 0, ids)
    return found.long()


def _is_id(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool) and getattr(value, "ndim", 0) == 0


def _require_ids(fits: bool, ids: Any) -> None:
    if not fits:  # the sentence shows the ids, which takes longer than the check
        raise UncodeError(_wanted(ids))


def _wanted(ids: Any) -> str:
    text = ": encode texts with the model's tokenizer, or use uncode.generate"
    return f"prompts are token ids, a list of whole numbers each, not {shown(ids)}{text}."


def _lengths(length: Any, count: int) -> list[int]:
    each = [length] * count if _is_id(length) else length
    whole = isinstance(each, Sequence) and all(map(_is_id, each))
    require(whole, f"the length to generate is a whole number or one per row, not {shown(length)}.")
    require(len(each) == count, f"{counted(len(each), 'length')} for {counted(count, 'prompt')}: give one for each.")
    require(min(each) > 0, "the length to generate must be at least 1.")
    require(max(each) < 2**31, f"the length to generate must be below 2^31, not {shown(max(each))}.")
    return [int(n) for n in each]
