"""Splitting text into words without changing its tokens. The rules are tested on the tokenizer itself.

If a tokenizer cannot look across a cut, then T(xy) = T(x) T(y). So it is enough to count distinct words, to tokenize
each of them once, and to multiply by its count.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend

# A word is the blanks before it and the characters up to the next blank. Blanks are spaces and tabs only. There is no
# cut after the characters in _OTHER (controls, no-break and zero-width spaces, direction marks, the replacement
# character, ...): some tokenizers treat them as white space or drop them, and so may look back at the whole run.
_OTHER = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    r"\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2581\u3000\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    r"\U000e0000-\U0010ffff"
)
_MARKS = r"!-&(-/:-@\[-`{-~"  # ASCII that is printed and is no letter, digit or apostrophe

SLICE_CHARACTERS = 1 << 20
"""Characters that are split at a time. A list of words takes many times the memory of their text."""


def _rule(blank: str, stop: str, inside: str, tail: str, finer: int) -> re.Pattern[str]:
    """The pattern of a word: blanks, then characters up to a `stop`. White space in `inside` does not end a word.

    With `finer` > 0, a word also ends after ASCII letters and digits before a punctuation mark or white space. With
    `finer` > 1, it also ends before the last of several blanks. `tail` matches what may follow a word, and white space
    alone.
    """
    word = rf"[{blank}]*[^{stop}]+(?:(?<=[{inside}{_OTHER}])[{blank}]+[^{stop}]*)*{tail}"
    if finer > 0:
        word = rf"[{blank}]*[^{stop}A-Za-z0-9]*+[A-Za-z0-9]++(?=[{_MARKS} \t\r\n]|\Z)|{word}"
    return re.compile(rf"[{blank}]+(?=[ \t][!-~])|{word}" if finer > 1 else word)


_KINDS = {
    "lines": (r" \t", r" \t\r\n", "", r"(?:[\r\n](?:\s*[\r\n])?)?|\s*[\r\n]|\s+"),
    "breaks": (r" \t\r\n", r" \t\r\n", "", r"|[ \t\r\n]+"),
    "spaces": (r" \t", r" \t", r"\r\n", r"|[ \t]+"),
}
RULES = {f"{kind} {finer}": _rule(*_KINDS[kind], finer) for finer in (2, 1, 0) for kind in _KINDS}
"""Rules from the finest to the coarsest. "lines": a blank starts a word, and a line end closes one (Qwen, Dream,
LLaMA-3). "breaks": a blank or a line end starts a word (GPT-2, BERT, T5). "spaces": a blank starts a word."""


@dataclass(frozen=True)
class Cutter:
    """Splits text into words without changing its tokens."""

    rule: str
    added: tuple[str, ...] = ()
    """The tokenizer's added tokens. A text that contains one of them is not split."""

    def words(self, text: str) -> list[str]:
        """The words of a text. Joined, they are the text."""
        return [text] if self._added.search(text) else RULES[self.rule].findall(text)

    def slices(self, text: str) -> Iterator[str]:
        """Slices of a long text, cut between words and not near an added token. Most texts are one slice."""
        start, size, margin = 0, SLICE_CHARACTERS, max(map(len, self.added), default=0) + 2
        while len(text) - start > size:
            words = RULES[self.rule].findall(text, start, start + size)
            end = start + sum(map(len, words[:-2]))  # the last words may continue after the slice
            if end == start or self._added.search(text, max(end - margin, start), end + margin):
                size *= 2
            else:
                yield text[start:end]
                start, size = end, SLICE_CHARACTERS
        yield text[start:]

    @cached_property
    def _added(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self.added)) or r"(?!)")


def cutter_for(backend: Backend) -> Cutter | None:
    """The cutter with the finest rule that leaves this tokenizer's tokens unchanged, or None if no rule does."""
    tokens = backend.get_added_tokens_decoder().values()
    if backend.pre_tokenizer is None or not _is_known(backend.normalizer) or any(map(_looks_around, tokens)):
        return None
    added = tuple(token.content for token in tokens)
    texts, same = list(_difficult_texts()), _SameTokens(backend)
    for rule in RULES:
        cutter = Cutter(rule, added)
        if all(same(text, cutter.words(text)) for text in texts):
            return cutter
    return None


_NORMALIZERS = {
    *("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "BertNormalizer", "Nmt", "Precompiled", "Strip"),
    *("Prepend", "ByteLevel"),
}


def _is_known(normalizer: Any) -> bool:
    """Whether the reach of a normalizer is known. A custom regular expression may look anywhere."""
    return normalizer is None or _all_known(json.loads(normalizer.__getstate__()))


def _all_known(state: dict[str, Any]) -> bool:
    if state["type"] == "Sequence":
        return all(map(_all_known, state["normalizers"]))
    if state["type"] == "Replace":
        return "String" in state["pattern"] or state["pattern"].get("Regex") == " {2,}"
    return state["type"] in _NORMALIZERS


def _looks_around(token: Any) -> bool:
    """Whether an added token is matched in normalized text, beyond the letters of one word."""
    return token.normalized and (token.lstrip or token.rstrip or token.single_word or not token.content.isalnum())


class _SameTokens:
    """Tests whether a text and its pieces have the same pre-tokens and the same tokens."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.seen: dict[str, tuple[list[str], list[int]]] = {}

    def __call__(self, text: str, pieces: list[str]) -> bool:
        if len(pieces) == 1:
            return True
        words, ids = self._read(text)
        read = [self._read(piece) for piece in pieces]
        same_words = words == [word for piece, _ in read for word in piece]
        return same_words and ids == [number for _, piece in read for number in piece]

    def _read(self, text: str) -> tuple[list[str], list[int]]:
        if text not in self.seen:
            normalizer, splitter = self.backend.normalizer, self.backend.pre_tokenizer
            normal = normalizer.normalize_str(text) if normalizer else text
            words = [word for word, _ in splitter.pre_tokenize_str(normal)]
            self.seen[text] = words, self.backend.encode(text, add_special_tokens=False).ids
        return self.seen[text]


def _difficult_texts() -> Iterator[str]:
    """Test texts: all short texts over the few most critical characters, and random texts over these and many others.
    The seed is fixed."""
    critical = [" ", "\n", "\r", "\t", "a", "B", "1", ".", "'", "\xa0", "\u0301"]
    for length in (2, 3):
        yield from map("".join, itertools.product(critical, repeat=length))
    generator = random.Random(0)
    for _ in range(3000):
        yield "".join(generator.choices(critical, k=generator.randint(4, 8)))
        yield "".join(generator.choices([*critical, *_OTHER_CHARACTERS], k=generator.randint(4, 14)))


_OTHER_CHARACTERS = [
    *' \n(){}[]<>,;:!?-_/\\"#@$%^&*+=|~`09xyz\xc4\xdf\xe9\xf1\xf8\u0141\u017f\u0130\u0131\ufb01',
    *("  ", "\n\n", "\r\n", "\t\t", " the", "of the", "ing", "don't", "'s", "'S", "'ll", "'\u017f"),
    *"\x00\x07\x0b\x0c\x1c\x1f\x7f\x85\xad\u034f\u061c\u1680\u180e\u2003\u200b\u200d\u2028\u202f\u2060\u2581\u3000",
    *"\u3164\u0600\u0327\u20e3\ufe0f\ufeff\ufffd\ue000\U000e0001\U0010fffe",  # marks, private, unassigned
    *"\u4e2d\u306e\u30ab\u3002\uff0c\ud55c\u0434\u03a3\u03c2\u0628\u0640\u0939\u093f\u0e44\u0967\xb2\xbd\u2167",
    *("\u4e2d\u6587", "\u0939\u093f", "\U0001f468\u200d\U0001f469"),
    *"\u20ac\u2192\u2211\U0001f44d\U0001f3fd",
]
