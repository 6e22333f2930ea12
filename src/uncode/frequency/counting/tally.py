"""Tallies: text goes in, batches of work for the tokenizer come out. Memory stays flat whatever the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from ...core.errors import require
from ...core.support.arrays import Ints
from .encoder import Encoder
from .words import Cutter

WORDS = 1 << 19
"""Distinct words that are held before they are tokenized."""
TEXT = 1 << 26
"""Characters after which a tally of words is full, however few of them are distinct."""
PLAIN = 1 << 23
"""Characters after which a tally of whole texts is full."""
AUDIT = 1000
"""Every so many texts the beginning of one is tokenized whole as well, and must give the same tokens."""
_AUDITED = 1 << 16

Work = Callable[[], Ints]


class Tally:
    """Texts to be counted. With a cutter distinct words are held, without one the texts themselves."""

    def __init__(self, encoder: Encoder, cutter: Cutter | None) -> None:
        self.encoder, self.cutter = encoder, cutter
        self.words: Counter[str] = Counter()
        self.texts: list[str] = []
        self.held = self.added = 0

    def add(self, text: str) -> None:
        """Take in one text."""
        self.held += len(text)
        if self.cutter is None:
            self.texts.append(text)
            return
        if self.added % AUDIT == 0:
            self._audit(self.cutter, text[:_AUDITED])
        self.added += 1
        for part in self.cutter.slices(text):
            self.words.update(self.cutter.words(part))

    @property
    def full(self) -> bool:
        if self.cutter is None:
            return self.held >= PLAIN
        return self.held >= TEXT or len(self.words) >= WORDS

    def take(self) -> Work:
        """What was taken in, to be tokenized and counted elsewhere; the tally is empty again."""
        count, words = self.encoder.count, self.encoder.count_words
        work = partial(count, self.texts) if self.cutter is None else partial(words, self.words)
        self.words, self.texts, self.held = Counter(), [], 0
        return work

    def _audit(self, cutter: Cutter, text: str) -> None:
        """Raise if words do not give the tokens of the whole text."""
        by_words = self.encoder.count_words(Counter(cutter.words(text)))
        require(
            bool((by_words == self.encoder.count([text])).all()),
            "counting by words gives other tokens than this tokenizer on a text of this corpus: count with --plain, "
            "and please tell us which tokenizer it is.",
        )
