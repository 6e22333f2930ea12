"""Frequency tables: the counts of all tokens in a corpus, and their surprisal."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from ..core.errors import UncodeError, require
from ..util.file_kinds import check_replaces
from ..util.paths import require_file
from ..util.write import write_whole
from .fingerprint import Tokenizer, fingerprint
from .provenance import Provenance

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True)
class TokenEntry:
    """One token of a table, for display."""

    id: int
    token: str
    count: float
    share: float
    surprisal: float


class FrequencyTable:
    """Token counts `[V]` with a name and their provenance. Two tables are equal if their checksums are.

    The counts are a numpy array, so that a table can be read and shown without torch.
    """

    def __init__(
        self,
        counts: Tensor | Array,
        name: str = "table",
        special_ids: tuple[int, ...] = (),
        made: Provenance | None = None,
    ) -> None:
        array = _as_array(counts)
        require(array.ndim == 1 and len(array) > 0, "a frequency table must be one number per token.")
        is_valid = bool((array >= 0).all()) and bool(np.isfinite(array).all())
        require(is_valid, "a frequency table cannot hold negative or infinite numbers.")
        outside = [i for i in special_ids if not 0 <= i < len(array)]
        require(not outside, f"the special ids {outside} are outside the table of {len(array)} tokens.")
        require(bool((array > 0).any()), "a frequency table needs at least one token with a count above 0.")
        are_probabilities = np.issubdtype(array.dtype, np.floating)
        self.array: Array = (
            np.ascontiguousarray(array, np.float64) if are_probabilities else np.ascontiguousarray(array, np.int64)
        )
        """int64 counts, or float64 probabilities if the table was built from probabilities."""
        self.name, self.special_ids, self.made = name, special_ids, made or Provenance()
        self.sha256 = hashlib.sha256(self.array.tobytes() + json.dumps(special_ids).encode()).hexdigest()

    @cached_property
    def counts(self) -> Tensor:
        """The counts as a tensor that shares the array's memory."""
        import torch

        return torch.from_numpy(self.array)

    @property
    def total(self) -> float:
        return float(self.array.sum())

    @property
    def unseen(self) -> int:
        """The number of tokens that never occur."""
        return int((self.array == 0).sum())

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the tokenizer that the table was counted with; empty if unknown."""
        return self.made.fingerprint

    @property
    def _unseen_count(self) -> float:
        """The count of a token that never occurs: 1, or the smallest positive probability."""
        return 1 if self.array.dtype == np.int64 else float(self.array[self.array > 0].min())

    def surprisal(self, size: int | None = None) -> Tensor:
        """-log p of every token `[V]`, float64.

        Unseen tokens count as seen once; a probability of zero becomes the smallest positive one. If `size` is larger
        than the table, unseen tokens are appended.
        """
        import torch

        counts = self.counts if size is None else torch.nn.functional.pad(self.counts, (0, size - len(self)))
        return -(counts.double().clamp(min=self._unseen_count) / self.total).log()

    def surprisal_array(self) -> NDArray[np.float64]:
        """The same as a numpy array, for display; samplers use :meth:`surprisal`."""
        return -np.log(np.maximum(self.array, self._unseen_count) / self.total)

    def with_provenance(self, made: Provenance) -> FrequencyTable:
        return FrequencyTable(self.array, self.name, self.special_ids, made)

    def divergence(self, other: FrequencyTable) -> float:
        """The Kullback-Leibler divergence KL(self || other) in nats. Unseen tokens count as seen once in both."""
        import torch

        self._check_same_tokenizer(other)
        size = max(len(self), len(other))
        mine, theirs = (torch.log_softmax(-table.surprisal(size), 0) for table in (self, other))
        return float((mine.exp() * (mine - theirs)).sum())

    def merge(self, *others: FrequencyTable, name: str | None = None) -> FrequencyTable:
        """The table of all their texts together. Counts are added and provenances joined."""
        merged = reduce(FrequencyTable._plus, others, self)
        return FrequencyTable(merged.counts, name or merged.name, merged.special_ids, merged.made)

    def _plus(self, other: FrequencyTable) -> FrequencyTable:
        self._check_same_tokenizer(other)
        counted = self.array.dtype == other.array.dtype == np.int64
        require(counted, "tables of probabilities cannot be added, because the size of their texts is unknown.")
        counts = np.zeros(max(len(self), len(other)), dtype=np.int64)
        for table in (self, other):
            counts[: len(table)] += table.array.astype(np.int64)
        special = tuple(sorted({*self.special_ids, *other.special_ids}))
        return FrequencyTable(counts, f"{self.name} + {other.name}", special, self.made.joined(other.made))

    def _check_same_tokenizer(self, other: FrequencyTable) -> None:
        """Raise if the two tables are of different tokenizers."""
        mine, theirs = self.fingerprint, other.fingerprint
        require(
            mine == theirs if mine and theirs else len(self) == len(other),
            f"the tables '{self.name}' and '{other.name}' are of different tokenizers: fingerprints "
            f"{mine or 'unknown'} and {theirs or 'unknown'}, {len(self)} and {len(other)} tokens"
            f"{'' if mine and theirs else ': import the table without a fingerprint again with `tokenizer=`'}.",
        )

    def top(self, k: int, tokenizer: Tokenizer | None = None) -> list[TokenEntry]:
        """The `k` most frequent tokens, as text if a tokenizer is given. Ties go to the lowest id."""
        order = np.argsort(-self.array, stable=True)[:k].tolist()
        return [self.entry(i, tokenizer) for i in order]

    def entry(self, token: int, tokenizer: Tokenizer | None = None) -> TokenEntry:
        """One token: its text, its count and its -log p."""
        text = "" if tokenizer is None else _text_of(token, tokenizer)
        count = self.array[token].item() if token < len(self) else 0
        return TokenEntry(token, text, count, count / self.total, math.log(self.total / max(count, self._unseen_count)))

    def check_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Raise if the table was counted with another tokenizer."""
        theirs, largest = fingerprint(tokenizer), max(tokenizer.get_vocab().values(), default=0)
        require(
            bool(self.fingerprint) or largest < len(self),
            f"the frequency table '{self.name}' has {len(self)} tokens, but this tokenizer has ids up to {largest}: "
            "use the tokenizer that the table was counted with.",
        )
        require(
            self.fingerprint in ("", theirs),
            f"the frequency table '{self.name}' was counted with another tokenizer (fingerprint {self.fingerprint}) "
            f"than this one (fingerprint {theirs}): count one with `uncode count --tokenizer`.",
        )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write one safetensors file atomically. Only `force=True` replaces a file that is not a frequency table. If
        `path` is a link, its target is replaced."""
        check_replaces(path, "frequency table", force)
        notes = {"name": self.name, "special_ids": json.dumps(self.special_ids), "sha256": self.sha256}
        write_whole(path, save({"counts": self.array}, metadata=notes | {"made": self.made.to_json()}))

    @classmethod
    def load(cls, path: str | Path, tokenizer: Tokenizer | None = None) -> FrequencyTable:
        """Read a file that :meth:`save` wrote. Check its checksum and, if one is given, its tokenizer."""
        require_file(path, "frequency table")
        try:
            with safe_open(path, framework="numpy") as file:
                notes, counts = file.metadata() or {}, file.get_tensor("counts")
        except SafetensorError:
            raise UncodeError(
                f"'{path}' is not a frequency table (a safetensors file with 'counts'): convert the JSON of the "
                "paper's release with `uncode table import`."
            ) from None
        try:
            ids = tuple(map(int, json.loads(notes.get("special_ids", "[]"))))
        except (ValueError, TypeError):
            raise UncodeError(f"the frequency table '{path}' is damaged: its special ids cannot be read.") from None
        made = Provenance.from_json(notes.get("made", "{}"))
        table = cls(counts, notes.get("name", Path(path).stem), ids, made)
        require(table.sha256 == notes.get("sha256", table.sha256), f"the frequency table '{path}' is damaged.")
        if tokenizer is not None:
            table.check_tokenizer(tokenizer)
        return table

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrequencyTable) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __len__(self) -> int:
        return len(self.array)

    def __repr__(self) -> str:
        what = f"{self.total:.0f} counted" if self.array.dtype == np.int64 else "probabilities"
        return f"FrequencyTable('{self.name}', {len(self)} tokens, {what})"


def _text_of(token: int, tokenizer: Tokenizer) -> str:
    """A token's text, or its name in the vocabulary if it has no text (a part of a character, an unused id)."""
    text = str(tokenizer.decode([token]))
    return text if text and "\ufffd" not in text else str(tokenizer.convert_ids_to_tokens(token) or "")


def _as_array(counts: Tensor | Array) -> Array:
    if isinstance(counts, np.ndarray):
        return counts
    held = counts.detach().cpu()
    return np.asarray(held.double() if held.is_floating_point() else held.long())
