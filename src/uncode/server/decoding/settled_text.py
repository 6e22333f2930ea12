"""Text that grows with its tokens: never half of a character, never half of a stop string."""

from __future__ import annotations

from collections.abc import Callable, Sequence

LONGEST_CHARACTER = 4
"""Bytes of a character in UTF-8, and so tokens it may be spread over."""
UNKNOWN = "\ufffd"
"""What a decoder writes for bytes that are no character yet."""


class SettledText:
    """Turns tokens into text, one by one. The pieces add up to the text of all tokens.

    A token may read otherwise alone than in its place, so each is decoded together with the tokens before it.
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


class StopCut:
    """Cuts a growing text before the first stop string."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._searches, self._held = [_Search(stop) for stop in stops if stop], ""
        self.found = False

    def push(self, text: str) -> str:
        """What can be shown now. The rest is held, because it may be the beginning of a stop string."""
        if self.found or not self._searches:
            return "" if self.found else text
        cuts = [at for search in self._searches if (at := search.push(text)) is not None]
        text, held = self._held + text, len(self._held)
        if cuts:
            self.found, self._held = True, ""
            return text[: held + min(cuts)]
        keep = max(search.matched for search in self._searches)
        shown, self._held = text[: len(text) - keep], text[len(text) - keep :]
        return shown

    def flush(self) -> str:
        """What was held, at the end of the text."""
        text, self._held = self._held, ""
        return text


class _Search:
    """Knuth, Morris and Pratt's search for one string. It reads each character once, so its cost is linear in the text,
    however long the string is and however the text is cut into pieces."""

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted
        self.matched = 0
        """Characters at the end of the text that are the beginning of the string."""
        self._borders = [0, 0]
        """Of each beginning of the string that has matched so far: its longest part that it begins and ends with."""

    def push(self, text: str) -> int | None:
        """Where in this piece the string begins, once it has come: below 0 if it began in an earlier one."""
        wanted = self._wanted
        for at, character in enumerate(text):
            self.matched = self._extended(self.matched, character)
            if self.matched == len(wanted):
                return at + 1 - len(wanted)
            if self.matched == len(self._borders):
                self._borders.append(self._extended(self._borders[-1], wanted[self.matched - 1]))
        return None

    def _extended(self, matched: int, character: str) -> int:
        while matched and self._wanted[matched] != character:
            matched = self._borders[matched]
        return matched + (self._wanted[matched] == character)
