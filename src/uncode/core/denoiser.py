"""What the stepper asks of a model: a denoiser opens sessions, a session answers with logits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import torch
from torch import Tensor

from .errors import UncodeError, require
from .pieces.cache import Plan
from .pieces.piece import Table


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the rows' tokens are. When rows join or leave, the next forward has a layout of another version."""

    valid: Tensor
    """Which columns belong to the row, `[B, L]`; the others are padding."""
    given: Tensor
    """Which columns the caller gave, `[B, L]`; the others are generated."""
    version: int = 0

    @classmethod
    def without_padding(cls, given: Tensor) -> Layout:
        """Rows that fill the canvas."""
        return cls(torch.ones_like(given, dtype=torch.bool), given)


class Session(Protocol):
    """The rows being decoded, and the KV cache of those that have one.

    A session may keep what it computes from a layout while `layout.version` stays the same, and what it computes from
    a plan while the plan is the same object.
    """

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        """Logits `[B, W, V]` of the columns `plan.wanted`: entry i predicts position i, and the mask id is -inf.

        Columns that `plan.window` does not recompute may hold anything. The caller may change the logits, and reads
        them until the next call only. A session never writes into `tokens`.
        """
        ...

    def add(self, rows: int, left: int, right: int) -> None:
        """Rows join at the end; all rows grow by `left` and `right` columns, or lose them where a number is negative.

        No valid column is ever lost.
        """
        ...

    def keep(self, rows: Tensor) -> None:
        """Only these rows stay, in this order."""
        ...


class Denoiser:
    """A model in normal form: it predicts every position of a canvas at once.

    Subclass it for a model of your own: set `mask_id` and `vocab_size`, define `open`, and set what differs from the
    defaults. A function from tokens to logits needs no class: see :class:`uncode.FunctionDenoiser`.
    """

    mask_id: int
    vocab_size: int
    eos_ids: tuple[int, ...] = ()
    """Tokens that end an answer; the first is the model's EOS."""
    tokenizer: Any = None
    device: torch.device = torch.device("cpu")
    dtype: torch.dtype = torch.float32
    about: Mapping[str, Any] = MappingProxyType({})
    """What a trace says of the model: its name (`model`), its revision, its tokenizer's fingerprint."""
    frequency: Table | None = None
    """The model's own frequency table."""
    released_table: str = ""
    """The paper's table for this model, by the name that `uncode table get` takes; empty if there is none."""
    samplers: Mapping[str, Path] = MappingProxyType({})
    """The model's own sampler files, by the name that `sampler=` takes."""
    frame: tuple[Sequence[int], Sequence[int]] = ((), ())
    """Token ids that stand before and after every text."""
    parameters: int = 0
    """How many; 0 where that is not known."""
    context: int | None = None
    """Tokens the model was trained on; None where that is not known."""
    block_length: int | None = None
    """Of a block-causal model: a position sees the blocks of so many tokens up to its own. Samplers then fill one of
    these blocks at a time. None: a position sees all others."""
    blocks_from_answer: bool = False
    """Whether these blocks count from the first generated token, and not from the first of all."""
    is_bounded: bool = False
    """Whether the model cannot be run on more tokens than its context."""
    sees_padding: bool = True
    """Whether a batch may hold rows of unequal length."""
    has_kv_cache: bool = False
    """Whether its sessions store keys and values as a plan says. Without, samplers with a cache are refused."""
    copies_kv_cache: bool = False
    """Whether its sessions have `copy_rows(session, rows)`: the first rows take over the stored keys and values of
    `rows` of another session. Without, samplers with a cache and draft steps are refused."""
    slides_on_device: bool = False
    """Whether its sessions read `plan.columns`: where windows are that follow the masks, as numbers on the device."""
    graph_tokens: int = 0
    """Forwards of at most this many tokens are replayed as CUDA graphs. Each width of a batch needs its own graph."""
    computes_in_parts: bool = False
    """Whether a small model's sessions compute a batch in parts on a CPU, each on one thread."""

    def weights(self) -> Iterable[tuple[str, Tensor]]:
        """The named parameters, of which evaluations make a fingerprint; none where they are not known."""
        return ()

    def open(self, rows: int, length: int) -> Session:
        """A session for a batch of `rows` with `length` columns."""
        raise UncodeError(f"{type(self).__name__} defines no open(rows, length): return a session from it.")


@dataclass(frozen=True)
class Facts:
    """The few things a piece may know about a model."""

    vocab_size: int
    mask_id: int
    eos_ids: tuple[int, ...]
    device: torch.device
    fingerprint: str = ""
    """Of the tokenizer's vocabulary; empty where it is not known."""
    parameters: int = 0
    """How many the model has; 0 where that is not known."""
    has_kv_cache: bool = False
    copies_kv_cache: bool = False
    slides_on_device: bool = False
    block_length: int | None = None
    blocks_from_answer: bool = False
    tokenizer: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, denoiser: Denoiser) -> Facts:
        kind = type(denoiser).__name__
        require(hasattr(denoiser, "open"), f"a model from uncode.load or uncode.wrap was expected, not {kind}.")
        base = f"{Denoiser.__module__}.Denoiser"
        require(isinstance(denoiser, Denoiser), f"the model {kind} must be a subclass of {base}.")
        missing = [name for name in ("mask_id", "vocab_size") if not hasattr(denoiser, name)]
        require(not missing, f"the model {kind} has no {' and no '.join(missing)}: set it, as {base} says.")
        return cls(
            vocab_size=denoiser.vocab_size,
            mask_id=denoiser.mask_id,
            eos_ids=tuple(denoiser.eos_ids),
            device=denoiser.device,
            fingerprint=denoiser.about.get("tokenizer", ""),
            parameters=denoiser.parameters,
            has_kv_cache=denoiser.has_kv_cache,
            copies_kv_cache=denoiser.copies_kv_cache,
            slides_on_device=denoiser.slides_on_device,
            block_length=denoiser.block_length,
            blocks_from_answer=denoiser.blocks_from_answer,
            tokenizer=denoiser.tokenizer,
        )

    def surprisal(self, table: Table) -> Tensor:
        """The table's -log p over this model's vocabulary; an error if it was counted with another tokenizer.

        A model has often more rows than its tokenizer has tokens; a table of the very same tokenizer may be shorter.
        """
        mine, theirs, size = self.fingerprint, table.fingerprint, len(table.surprisal())
        require(
            not (mine and theirs) or mine == theirs,
            f"the frequency table '{table.name}' was counted with another tokenizer (fingerprint {theirs}) than the "
            f"model's (fingerprint {mine}): count one with this model's tokenizer (`uncode count`).",
        )
        same = mine == theirs != "" and size <= self.vocab_size
        require(
            same or size == self.vocab_size,
            f"the frequency table '{table.name}' covers {size} tokens but the model has {self.vocab_size}: "
            "count a table with this model's tokenizer.",
        )
        return table.surprisal(self.vocab_size)

    def resolve(self, tokens: tuple[int | str, ...]) -> tuple[int, ...]:
        """Token ids; the words "eos" and "ends" stand for the model's first EOS id and for all of its EOS ids, and any
        other text for the one token that it is."""
        ids: list[int] = []
        for token in tokens:
            if isinstance(token, str) and token in ("eos", "ends"):
                require(len(self.eos_ids) > 0, f"this model has no EOS token, so '{token}' names nothing.")
                ids += self.eos_ids[:1] if token == "eos" else self.eos_ids
            elif isinstance(token, str):
                ids.append(self._one_token(token))
            else:
                require(0 <= token < self.vocab_size, f"token {token} is outside the vocabulary of {self.vocab_size}.")
                ids.append(token)
        return tuple(dict.fromkeys(ids))

    def _one_token(self, text: str) -> int:
        """The id of a text that is a single token."""
        has = self.tokenizer is not None
        ids = list(self.tokenizer.encode(text, add_special_tokens=False)) if has else []
        why = f"{len(ids)} tokens of this model" if has else "unknown to a model without a tokenizer"
        require(len(ids) == 1, f"a token is an id, 'eos', 'ends' or the text of one token, but {text!r} is {why}.")
        return int(ids[0])
