"""Where text may be cut so that its tokens do not change, found by asking the tokenizer itself.

Tokenizing is a homomorphism where it cannot see across a cut: T(xy) = T(x) T(y). Then it is enough to count
distinct pieces of text and to tokenize each once, times its count.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

# A word is the blanks before it and what follows up to the next blank. Blanks are spaces and tabs, no others. After a
# character that some tokenizer takes for white space, turns into it or drops (controls, no-break and zero-width spaces,
# marks of direction, the replacement character, ...) nothing is cut, since it may look back at the whole run.
_OTHER = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    r"\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2581\u3000\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    r"\U000e0000-\U0010ffff"
)
_MARKS = r"!-&(-/:-@\[-`{-~"  # ASCII that is printed and is no letter, digit or apostrophe

SLICE = 1 << 20
"""Characters of a text that are cut at a time, since a list of words takes many times the memory of their text."""


def _rule(blank: str, stop: str, inside: str, tail: str, finer: int) -> re.Pattern[str]:
    """Words: blanks, and what follows up to a `stop`; after white space that is `inside` a word it goes on.

    `finer` than 0, a word ends too after letters and digits (of ASCII) before a mark or white space; finer than 1,
    before the last of several blanks. `tail` is what may follow a word, and white space by itself.
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
"""From the finest to the coarsest. Lines: a blank begins a word, and a line end closes one (Qwen, Dream, LLaMA-3).
Breaks: a blank or a line end begins a word (GPT-2, BERT, T5). Spaces: a blank begins a word."""


@dataclass(frozen=True)
class Cutter:
    """Cuts text into words where its tokens do not change."""

    rule: str
    added: tuple[str, ...] = ()
    """The tokenizer's added tokens: a text with one of them in it is not cut."""

    def words(self, text: str) -> list[str]:
        """The words of a text, most of which recur; together they are the text."""
        return [text] if self._added.search(text) else RULES[self.rule].findall(text)

    def slices(self, text: str) -> Iterator[str]:
        """A text in slices that are cut between words, and not near an added token; most texts are one."""
        start, size, margin = 0, SLICE, max(map(len, self.added), default=0) + 2
        while len(text) - start > size:
            words = RULES[self.rule].findall(text, start, start + size)
            end = start + sum(map(len, words[:-2]))  # the last ones may go on
            if end == start or self._added.search(text, max(end - margin, start), end + margin):
                size *= 2
            else:
                yield text[start:end]
                start, size = end, SLICE
        yield text[start:]

    @cached_property
    def _added(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self.added)) or r"(?!)")


def cutter_for(backend: Any) -> Cutter | None:
    """The finest cuts that leave this tokenizer's tokens as they are, or None if there are none."""
    added = backend.get_added_tokens_decoder().values()
    if backend.pre_tokenizer is None or not _is_known(backend.normalizer) or any(map(_looks_around, added)):
        return None
    added = tuple(token.content for token in added)
    texts, same = list(_awkward_texts()), _Sameness(backend)
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
    """Whether it is known how far a normalizer looks; regular expressions of its own may look anywhere."""
    return normalizer is None or _all_known(json.loads(normalizer.__getstate__()))


def _all_known(said: dict[str, Any]) -> bool:
    if said["type"] == "Sequence":
        return all(map(_all_known, said["normalizers"]))
    if said["type"] == "Replace":
        return "String" in said["pattern"] or said["pattern"].get("Regex") == " {2,}"
    return said["type"] in _NORMALIZERS


def _looks_around(token: Any) -> bool:
    """Whether an added token is sought in normalized text and reaches further than the letters of one word."""
    return token.normalized and (token.lstrip or token.rstrip or token.single_word or not token.content.isalnum())


class _Sameness:
    """Whether a text and its pieces have the same words before the model and the same tokens after it."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.seen: dict[str, tuple[list[str], list[int]]] = {}

    def __call__(self, text: str, pieces: list[str]) -> bool:
        if len(pieces) == 1:
            return True
        words, ids = self._read(text)
        read = [self._read(piece) for piece in pieces]
        return words == [w for ws, _ in read for w in ws] and ids == [i for _, some in read for i in some]

    def _read(self, text: str) -> tuple[list[str], list[int]]:
        if text not in self.seen:
            normalizer, splitter = self.backend.normalizer, self.backend.pre_tokenizer
            normal = normalizer.normalize_str(text) if normalizer else text
            words = [word for word, _ in splitter.pre_tokenize_str(normal)]
            self.seen[text] = words, self.backend.encode(text, add_special_tokens=False).ids
        return self.seen[text]


def _awkward_texts() -> Iterator[str]:
    """Texts over a few characters that matter most: all that are short, and some of the longer ones; and texts over
    characters of every kind, drawn with a fixed seed."""
    few = [" ", "\n", "\r", "\t", "a", "B", "1", ".", "'", "\xa0", "\u0301"]
    for length in (2, 3):
        yield from map("".join, itertools.product(few, repeat=length))
    dice = random.Random(0)
    for _ in range(3000):
        yield "".join(dice.choices(few, k=dice.randint(4, 8)))
        yield "".join(dice.choices([*few, *_MANY], k=dice.randint(4, 14)))


_MANY = [
    *' \n(){}[]<>,;:!?-_/\\"#@$%^&*+=|~`09xyz\xc4\xdf\xe9\xf1\xf8\u0141\u017f\u0130\u0131\ufb01',
    *("  ", "\n\n", "\r\n", "\t\t", " the", "of the", "ing", "don't", "'s", "'S", "'ll", "'\u017f"),
    *"\x00\x07\x0b\x0c\x1c\x1f\x7f\x85\xad\u034f\u061c\u1680\u180e\u2003\u200b\u200d\u2028\u202f\u2060\u2581\u3000",
    *"\u3164\u0600\u0327\u20e3\ufe0f\ufeff\ufffd\ue000\U000e0001\U0010fffe",  # marks, private, unassigned
    *"\u4e2d\u306e\u30ab\u3002\uff0c\ud55c\u0434\u03a3\u03c2\u0628\u0640\u0939\u093f\u0e44\u0967\xb2\xbd\u2167",
    *("\u4e2d\u6587", "\u0939\u093f", "\U0001f468\u200d\U0001f469"),
    *"\u20ac\u2192\u2211\U0001f44d\U0001f3fd",
]
