"""Tallies: text goes in, batches of work for the tokenizer come out. Memory stays flat whatever the text."""

from __future__ import annotations

from collections import Counter, defaultdict

from ..core.errors import require
from .encoder import Counts, Encoder
from .words import Cutter

WORDS = 1 << 20
"""Distinct words that are held before they are tokenized."""
TEXT = 1 << 27
"""Characters after which a tally of words is full, however few of them are distinct."""
PLAIN = 1 << 23
"""Characters after which a tally of whole texts is full."""
AUDIT = 1000
"""Every so many texts one is tokenized whole as well, and must give the same tokens."""
_AUDITED = 1 << 16


class Tally:
    """Texts to be counted. With a cutter distinct words are held, without one the texts themselves."""

    def __init__(self, encoder: Encoder, cutter: Cutter | None) -> None:
        self.encoder, self.cutter = encoder, cutter
        self.words: Counter[str] = Counter()
        self.texts: list[str] = []
        self.held = 0
        self.added = 0

    def add(self, text: str) -> None:
        """Take in one text."""
        self.held += len(text)
        if self.cutter is None:
            self.texts.append(text)
            return
        if self.added % AUDIT == 0:
            self._audit(text[:_AUDITED])
        self.added += 1
        self.words.update(self.cutter.words(text))

    @property
    def full(self) -> bool:
        if self.cutter is None:
            return self.held >= PLAIN
        return self.held >= TEXT or len(self.words) >= WORDS

    def take(self) -> Tally:
        """What was taken in, to be counted elsewhere; this tally is empty again."""
        taken = Tally(self.encoder, self.cutter)
        taken.words, taken.texts = self.words, self.texts
        self.words, self.texts, self.held = Counter(), [], 0
        return taken

    def count(self) -> Counts:
        """How often each token occurs in what was taken in."""
        if self.cutter is None:
            return self.encoder.count(self.texts)
        parts: dict[str, int] = defaultdict(int)
        cut = self.cutter.parts
        for word, times in self.words.items():
            for part in cut(word):
                parts[part] += times
        return self.encoder.count_words(parts)

    def _audit(self, text: str) -> None:
        """Raise if words do not give the tokens of the whole text."""
        alone = Tally(self.encoder, self.cutter)
        alone.added = 1
        alone.add(text)
        require(
            bool((alone.count() == self.encoder.count([text])).all()),
            "counting by words gives other tokens than this tokenizer on a text of this corpus: count with --plain, "
            "and please tell us which tokenizer it is.",
        )
