"""Tallies collect text and turn it into batches of work for the tokenizer. Memory is bounded for any text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from ...core.errors import require
from ...core.support.arrays import Ints
from .encoder import Encoder
from .words import Cutter

MAX_DISTINCT_WORDS = 1 << 19
"""A tally of words is full with this many distinct words."""
MAX_WORD_CHARACTERS = 1 << 26
"""A tally of words is full after this many characters, even if few words are distinct."""
MAX_TEXT_CHARACTERS = 1 << 23
"""A tally of whole texts is full after this many characters."""
AUDIT_EVERY = 1000
"""The beginning of every thousandth text is also tokenized whole, and must give the same tokens."""
_AUDIT_CHARACTERS = 1 << 16

Work = Callable[[], Ints]


class Tally:
    """Texts to be counted: their distinct words if there is a cutter, else the texts themselves."""

    def __init__(self, encoder: Encoder, cutter: Cutter | None) -> None:
        self.encoder, self.cutter = encoder, cutter
        self.words: Counter[str] = Counter()
        self.texts: list[str] = []
        self.held = self.added = 0

    def add(self, text: str) -> None:
        """Add one text."""
        self.held += len(text)
        if self.cutter is None:
            self.texts.append(text)
            return
        if self.added % AUDIT_EVERY == 0:
            self._audit(self.cutter, text[:_AUDIT_CHARACTERS])
        self.added += 1
        for part in self.cutter.slices(text):
            self.words.update(self.cutter.words(part))

    @property
    def is_full(self) -> bool:
        if self.cutter is None:
            return self.held >= MAX_TEXT_CHARACTERS
        return self.held >= MAX_WORD_CHARACTERS or len(self.words) >= MAX_DISTINCT_WORDS

    def take(self) -> Work:
        """Return the work of tokenizing and counting the texts, and empty the tally."""
        count, words = self.encoder.count, self.encoder.count_words
        work = partial(count, self.texts) if self.cutter is None else partial(words, self.words)
        self.words, self.texts, self.held = Counter(), [], 0
        return work

    def _audit(self, cutter: Cutter, text: str) -> None:
        """Raise if the words of a text give other tokens than the whole text."""
        by_words = self.encoder.count_words(Counter(cutter.words(text)))
        require(
            bool((by_words == self.encoder.count([text])).all()),
            "on a text of this corpus, counting by words gives other tokens than this tokenizer: count with "
            "`plain=True`, and please report the tokenizer.",
        )
