"""Frequency tables: how often each token occurs in a corpus, and the surprisal that follows."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from ..core.errors import UncodeError, require
from ..core.support.file_kinds import check_replaces
from ..core.support.paths import require_file
from ..core.support.write import write_whole
from .fingerprint import fingerprint
from .provenance import Provenance

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True)
class Entry:
    """One token of a table, as a reader wants to see it."""

    id: int
    token: str
    count: float
    share: float
    surprisal: float


class FrequencyTable:
    """Token counts `[V]` with a name and where they come from. Two tables are equal if their checksums are.

    The counts are kept as a numpy array, so that a table can be read and shown without torch.
    """

    def __init__(
        self,
        counts: Tensor | Array,
        name: str = "table",
        special_ids: tuple[int, ...] = (),
        made: Provenance | None = None,
    ) -> None:
        array = _as_array(counts)
        require(array.ndim == 1 and len(array) > 0, "a frequency table is one number per token.")
        fits = bool((array >= 0).all()) and bool(np.isfinite(array).all())
        require(fits, "a frequency table cannot hold negative or infinite numbers.")
        strange = [i for i in special_ids if not 0 <= i < len(array)]
        require(not strange, f"the special ids {strange} are outside the table of {len(array)} tokens.")
        require(bool((array > 0).any()), "a frequency table needs at least one token that occurs.")
        probable = np.issubdtype(array.dtype, np.floating)
        self.array: Array = (
            np.ascontiguousarray(array, np.float64) if probable else np.ascontiguousarray(array, np.int64)
        )
        """int64; or float64 probabilities, for a table that was given as such."""
        self.name, self.special_ids, self.made = name, special_ids, made or Provenance()
        self.sha256 = hashlib.sha256(self.array.tobytes() + json.dumps(special_ids).encode()).hexdigest()

    @cached_property
    def counts(self) -> Tensor:
        """The counts as a tensor, which shares their memory."""
        import torch

        return torch.from_numpy(self.array)

    @property
    def total(self) -> float:
        return float(self.array.sum())

    @property
    def unseen(self) -> int:
        """How many tokens never occur."""
        return int((self.array == 0).sum())

    @property
    def fingerprint(self) -> str:
        """Of the tokenizer the table was counted with; empty where that is not known."""
        return self.made.fingerprint

    @property
    def _least(self) -> float:
        """What a token that was never seen counts as."""
        return 1 if self.array.dtype == np.int64 else float(self.array[self.array > 0].min())

    def surprisal(self, size: int | None = None) -> Tensor:
        """-log p of every token `[V]`, float64. Unseen tokens count as seen once; a probability of zero takes the
        smallest positive one. A `size` beyond the table's is filled with tokens that were not seen."""
        import torch

        counts = self.counts if size is None else torch.nn.functional.pad(self.counts, (0, size - len(self)))
        return -(counts.double().clamp(min=self._least) / self.total).log()

    def surprisal_array(self) -> NDArray[np.float64]:
        """The same as a numpy array, for display; samplers use :meth:`surprisal`."""
        return -np.log(np.maximum(self.array, self._least) / self.total)

    def with_provenance(self, made: Provenance) -> FrequencyTable:
        return FrequencyTable(self.array, self.name, self.special_ids, made)

    def divergence(self, other: FrequencyTable) -> float:
        """The Kullback-Leibler divergence KL(self || other) in nats, unseen tokens counted as seen once in both."""
        import torch

        self._belongs_with(other)
        size = max(len(self), len(other))
        mine, theirs = (torch.log_softmax(-table.surprisal(size), 0) for table in (self, other))
        return float((mine.exp() * (mine - theirs)).sum())

    def merge(self, *others: FrequencyTable, name: str | None = None) -> FrequencyTable:
        """The table of all their texts together: counts are added, and so is what is known of their making."""
        merged = reduce(FrequencyTable._plus, others, self)
        return FrequencyTable(merged.counts, name or merged.name, merged.special_ids, merged.made)

    def _plus(self, other: FrequencyTable) -> FrequencyTable:
        self._belongs_with(other)
        counted = self.array.dtype == other.array.dtype == np.int64
        require(counted, "tables of probabilities cannot be added: how much text each stands for is not known.")
        counts = np.zeros(max(len(self), len(other)), dtype=np.int64)
        for table in (self, other):
            counts[: len(table)] += table.array.astype(np.int64)
        special = tuple(sorted({*self.special_ids, *other.special_ids}))
        return FrequencyTable(counts, f"{self.name} + {other.name}", special, self.made.joined(other.made))

    def _belongs_with(self, other: FrequencyTable) -> None:
        """Raise if the two cannot be of one tokenizer."""
        mine, theirs = self.fingerprint, other.fingerprint
        require(
            mine == theirs if mine and theirs else len(self) == len(other),
            f"the tables '{self.name}' and '{other.name}' are of different tokenizers: fingerprints "
            f"{mine or 'unknown'} and {theirs or 'unknown'}, {len(self)} and {len(other)} tokens"
            f"{'' if mine and theirs else '; import one that does not say its tokenizer again with --tokenizer'}.",
        )

    def top(self, k: int, tokenizer: Any = None) -> list[Entry]:
        """The `k` most frequent tokens, decoded where there is a tokenizer; ties go to the lowest id."""
        order = np.argsort(-self.array, stable=True)[:k].tolist()
        return [self.entry(i, tokenizer) for i in order]

    def entry(self, token: int, tokenizer: Any = None) -> Entry:
        """One token: its text, how often it was seen and -log p."""
        text = "" if tokenizer is None else _text_of(token, tokenizer)
        count = self.array[token].item() if token < len(self) else 0
        return Entry(token, text, count, count / self.total, math.log(self.total / max(count, self._least)))

    def check_tokenizer(self, tokenizer: Any) -> None:
        """Raise if the table was counted with another tokenizer."""
        theirs, largest = fingerprint(tokenizer), max(tokenizer.get_vocab().values(), default=0)
        require(
            bool(self.fingerprint) or largest < len(self),
            f"the frequency table '{self.name}' has {len(self)} tokens and this tokenizer ids up to {largest}: it is "
            "not the one the table was counted with.",
        )
        require(
            self.fingerprint in ("", theirs),
            f"the frequency table '{self.name}' was counted with another tokenizer (fingerprint {self.fingerprint}) "
            f"than this one (fingerprint {theirs}): count one with `uncode count --tokenizer`.",
        )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write one safetensors file, whole or not at all. A file that is no frequency table is replaced with `force`
        alone; links stay links."""
        check_replaces(path, "frequency table", force)
        notes = {"name": self.name, "special_ids": json.dumps(self.special_ids), "sha256": self.sha256}
        write_whole(path, save({"counts": self.array}, metadata=notes | {"made": self.made.to_json()}))

    @classmethod
    def load(cls, path: str | Path, tokenizer: Any = None) -> FrequencyTable:
        """Read a file that :meth:`save` wrote and check its checksum and, if one is given, its tokenizer."""
        require_file(path, "frequency table")
        try:
            with safe_open(path, framework="numpy") as file:
                notes, counts = file.metadata() or {}, file.get_tensor("counts")
        except SafetensorError:
            raise UncodeError(
                f"'{path}' is not a frequency table (a safetensors file with 'counts'); the JSON of the paper's "
                "release becomes one by `uncode table import`."
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


def _text_of(token: int, tokenizer: Any) -> str:
    """A token's text, or its name in the vocabulary where it is no text of its own (a part of a letter, an id that
    is not in use)."""
    text = str(tokenizer.decode([token]))
    return text if text and "\ufffd" not in text else str(tokenizer.convert_ids_to_tokens(token) or "")


def _as_array(counts: Tensor | Array) -> Array:
    if isinstance(counts, np.ndarray):
        return counts
    held = counts.detach().cpu()
    return np.asarray(held.double() if held.is_floating_point() else held.long())
