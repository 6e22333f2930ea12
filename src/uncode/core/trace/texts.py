"""Tokens as text, one by one: never half of a character."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

LONGEST_CHARACTER = 4
"""Bytes of a character in UTF-8, and so tokens it may be spread over."""
UNKNOWN = "\ufffd"
"""What a decoder writes for bytes that are no character yet."""
TRIVIAL = (" ", "\n", "\t", ".", ",", "?", "!", ":", ";", "\\", '"', "'", "$", "is", "the", "of", "a", "an")
"""The paper's list of trivial tokens (Uncode, App. A)."""
_BLANK = {" ", "\n", "\t"}


def is_trivial(text: str) -> bool:
    """Whether a token reads as one of the paper's trivial tokens, with or without a space before."""
    return text in _BLANK or (text.strip(" ") in TRIVIAL and text.strip(" ") not in _BLANK)


class SettledText:
    """Turns tokens into text, one by one. The pieces add up to the text of all tokens.

    A token may read otherwise alone than in its place (many bring the space before them only there), so each is decoded
    together with the tokens before it.
    """

    def __init__(self, decode: Callable[[list[int]], str], context: Sequence[int] = ()) -> None:
        """`context` are tokens before the first one, whose text is not repeated."""
        self._decode, self._ids = decode, list(context[-LONGEST_CHARACTER:])
        self._done = len(self._ids)
        """Tokens from here on have not been turned into text."""

    def push(self, token: int) -> str:
        """The text that a token adds. Empty while it ends inside a character."""
        self._ids.append(token)
        before, after = (self._decode(self._ids[:end]) for end in (self._done, len(self._ids)))
        if after.endswith(UNKNOWN) and len(self._ids) - self._done < LONGEST_CHARACTER:
            return ""
        return self._take(before, after)

    def flush(self) -> str:
        """The text of tokens at the end that are no whole character."""
        if self._done == len(self._ids):
            return ""
        return self._take(*(self._decode(self._ids[:end]) for end in (self._done, len(self._ids))))

    def _take(self, before: str, after: str) -> str:
        text = after[len(before) :] if after.startswith(before) else self._decode(self._ids[self._done :])
        # the tokens of the last text say how the next one begins; special tokens have no text and say nothing
        self._ids = self._ids[self._done :] if text else self._ids[: self._done]
        self._done = len(self._ids)
        return text


def token_texts(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """What each token adds to the text of those before it. A character of several tokens belongs to the last one."""
    settled = SettledText(lambda some: str(tokenizer.decode(some)))
    texts = [settled.push(token) for token in ids]
    return [*texts[:-1], texts[-1] + settled.flush()] if texts else []
