"""A text that grows, cut before its first stop string."""

from __future__ import annotations

from collections.abc import Sequence


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
