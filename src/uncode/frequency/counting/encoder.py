"""Counts of the tokens in texts, with any tokenizer."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...core.errors import UncodeError
from ...core.support.arrays import Ints
from ..fingerprint import Tokenizer, backend_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend

Item = TypeVar("Item")
BATCH_CHARACTERS = 1 << 20
"""Characters that are tokenized at a time. Tokens take fifty times the memory of their text."""


class Encoder:
    """A tokenizer without special tokens, truncation and padding."""

    def __init__(self, tokenizer: Tokenizer | Backend) -> None:
        self.tokenizer: Any = tokenizer
        self.size = 1 + max(tokenizer.get_vocab().values())
        self.backend, self.json = _bare(backend_of(tokenizer))
        self.splits_special = self.backend is not None and bool(self.backend.encode_special_tokens)
        """Whether special tokens in a text are tokenized as plain text. The JSON does not hold this setting."""
        settings = f"{self.json or f'{type(tokenizer)} {tokenizer.get_vocab()}'} {self.splits_special}"
        self.sha256 = hashlib.sha256(settings.encode()).hexdigest()
        """A fingerprint of everything that decides the tokens of a text."""

    def count(self, texts: Iterable[str]) -> Ints:
        """The count of each token in these texts: int64 `[size]`."""
        counts = np.zeros(self.size, dtype=np.int64)
        for batch in _batches(texts, len):
            flat = np.fromiter(chain.from_iterable(self._ids(batch)), np.int64)
            counts += np.bincount(flat, minlength=self.size)
        return counts

    def count_words(self, words: Mapping[str, int]) -> Ints:
        """The count of each token in these words, given the count of each word.

        Words of equal counts are tokenized together as one list, because a tokenizer is faster on few long texts than
        on many short ones.
        """
        counts, groups = np.zeros(self.size, dtype=np.int64), defaultdict(list)
        for word, times in words.items():
            groups[times].append(word)
        per_list = BATCH_CHARACTERS >> 9
        lists = ((part, times) for times, group in groups.items() for part in _batches(group, len, per_list))
        for batch in _batches(lists, lambda pair: sum(map(len, pair[0]))):
            ids = self._ids([words for words, _ in batch], is_pretokenized=True)
            lengths = np.fromiter(map(len, ids), np.int64, len(ids))
            flat = np.fromiter(chain.from_iterable(ids), np.int64, int(lengths.sum()))
            np.add.at(counts, flat, np.repeat([times for _, times in batch], lengths))
        return counts

    def _ids(self, texts: list[Any], is_pretokenized: bool = False) -> list[list[int]]:
        """The token ids of each text, or of each list of words."""
        if self.backend is None:
            return [self.tokenizer.encode(text, add_special_tokens=False) for text in texts]
        encoded = self.backend.encode_batch_fast(texts, is_pretokenized=is_pretokenized, add_special_tokens=False)
        return [encoding.ids for encoding in encoded]


def tokenizer_from_json(text: str, splits_special: bool) -> Backend:
    """A tokenizer from its JSON, and from the one setting that the JSON does not hold."""
    from tokenizers import Tokenizer as Backend

    tokenizer = Backend.from_str(text)
    tokenizer.encode_special_tokens = splits_special
    return tokenizer


def _bare(backend: Backend | None) -> tuple[Backend | None, str]:
    """A tokenizer without truncation and padding (a copy if this one has them), and its JSON; "" without one."""
    if backend is None:
        return None, ""
    text = backend.to_str()
    bare = backend
    if backend.truncation or backend.padding:
        bare = tokenizer_from_json(text, backend.encode_special_tokens)
        bare.no_truncation()
        bare.no_padding()
    if getattr(bare.model, "dropout", None):
        raise UncodeError(
            "this tokenizer drops merges at random: set its dropout to 0, since random tokens cannot be counted."
        )
    return bare, text


def _batches(items: Iterable[Item], size: Callable[[Item], int], total: int = BATCH_CHARACTERS) -> Iterator[list[Item]]:
    """Lists of items whose sizes sum to about `total`."""
    batch: list[Item] = []
    held = 0
    for item in items:
        batch.append(item)
        held += size(item)
        if held >= total:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
