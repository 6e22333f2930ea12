"""Tokens as text, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_LONGEST_CHARACTER = 4
"""Bytes of a character in UTF-8, and so tokens it may be spread over."""
TRIVIAL = (" ", "\n", "\t", ".", ",", "?", "!", ":", ";", "\\", '"', "'", "$", "is", "the", "of", "a", "an")
"""The paper's list of trivial tokens (Uncode, App. A)."""
_BLANK = {" ", "\n", "\t"}


def is_trivial(text: str) -> bool:
    """Whether a token reads as one of the paper's trivial tokens, with or without a space before."""
    return text in _BLANK or (text.strip(" ") in TRIVIAL and text.strip(" ") not in _BLANK)


def token_texts(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """What each token adds to the text of those before it. A character of several tokens belongs to the last one.

    A token alone may read otherwise than in its place: many bring the space before them only there.
    """
    texts: list[str] = []
    context, done = 0, 0  # the tokens from context to done say how the next begins
    for at in range(1, len(ids) + 1):
        before, after = str(tokenizer.decode(ids[context:done])), str(tokenizer.decode(ids[context:at]))
        if after.endswith("\ufffd") and at < len(ids) and at - done < _LONGEST_CHARACTER:
            texts.append("")
            continue
        fits = after.startswith(before)
        texts.append(after[len(before) :] if fits else str(tokenizer.decode(ids[done:at])))
        context, done = done, at
    return texts
