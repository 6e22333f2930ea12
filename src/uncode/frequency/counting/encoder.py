"""Token counts of texts, by any tokenizer."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from ...core.errors import UncodeError
from ...core.support.arrays import Ints

Item = TypeVar("Item")
AT_ONCE = 1 << 20
"""Characters that are tokenized at a time: tokens take fifty times the memory of their text."""


class Encoder:
    """What a tokenizer makes of a text by itself: no special tokens around it, nothing cut off or filled up."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.size = 1 + max(tokenizer.get_vocab().values())
        self.backend, self.json = _bare(getattr(tokenizer, "backend_tokenizer", tokenizer))
        self.splits_special = bool(getattr(self.backend, "encode_special_tokens", False))
        """Whether special tokens that stand in a text are read as text; a setting that is not in the JSON."""
        said = f"{self.json or f'{type(tokenizer)} {tokenizer.get_vocab()}'} {self.splits_special}"
        self.sha256 = hashlib.sha256(said.encode()).hexdigest()
        """Of everything that decides which tokens a text has."""

    def count(self, texts: Iterable[str]) -> Ints:
        """How often each token occurs in these texts: int64 `[size]`."""
        counts = np.zeros(self.size, dtype=np.int64)
        for some in _batches(texts, len):
            flat = np.fromiter(chain.from_iterable(self._ids(some)), np.int64)
            counts += np.bincount(flat, minlength=self.size)
        return counts

    def count_words(self, words: Mapping[str, int]) -> Ints:
        """How often each token occurs in words of which each stands for so many of itself.

        Words of equal counts go together: a tokenizer takes a list of words as one text, and it is faster on few
        long texts than on many short ones.
        """
        counts, groups = np.zeros(self.size, dtype=np.int64), defaultdict(list)
        for word, times in words.items():
            groups[times].append(word)
        lists = ((some, times) for times, group in groups.items() for some in _batches(group, len, AT_ONCE >> 9))
        for some in _batches(lists, lambda pair: sum(map(len, pair[0]))):
            ids = self._ids([words for words, _ in some], is_pretokenized=True)
            lengths = np.fromiter(map(len, ids), np.int64, len(ids))
            flat = np.fromiter(chain.from_iterable(ids), np.int64, int(lengths.sum()))
            np.add.at(counts, flat, np.repeat([times for _, times in some], lengths))
        return counts

    def _ids(self, texts: list[Any], is_pretokenized: bool = False) -> list[list[int]]:
        """The tokens of each text, or of each list of words."""
        if self.backend is None:
            return [self.tokenizer.encode(text, add_special_tokens=False) for text in texts]
        encoded = self.backend.encode_batch_fast(texts, is_pretokenized=is_pretokenized, add_special_tokens=False)
        return [encoding.ids for encoding in encoded]


def revived(said: str, splits_special: bool) -> Any:
    """A tokenizer from its JSON and the setting that is not in it."""
    from tokenizers import Tokenizer

    made = Tokenizer.from_str(said)
    made.encode_special_tokens = splits_special
    return made


def _bare(backend: Any) -> tuple[Any, str]:
    """A `tokenizers` tokenizer that neither cuts off nor fills up, a copy if this one does, and the tokenizer as JSON;
    None for one of another kind."""
    from tokenizers import Tokenizer

    if not isinstance(backend, Tokenizer):
        return None, ""
    said = backend.to_str()
    bare = backend
    if backend.truncation or backend.padding:
        bare = revived(said, backend.encode_special_tokens)
        bare.no_truncation()
        bare.no_padding()
    if getattr(bare.model, "dropout", None):
        raise UncodeError("this tokenizer drops merges at random (dropout), so its tokens cannot be counted.")
    return bare, said


def _batches(items: Iterable[Item], size: Callable[[Item], int], most: int = AT_ONCE) -> Iterator[list[Item]]:
    """Lists of items of about this size together."""
    some: list[Item] = []
    held = 0
    for item in items:
        some.append(item)
        held += size(item)
        if held >= most:
            yield some
            some, held = [], 0
    if some:
        yield some
