"""Strings that end an answer: where an answer is cut, and when no further text can move the cut."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StopStrings:
    """The stop strings of a task, by our rule and by the released code."""

    ours: tuple[str, ...] = ()
    released: tuple[str, ...] = ()

    @property
    def can_end_decoding(self) -> bool:
        """Whether both rules have stop strings. A rule without any reads the whole text, so decoding must not end."""
        return bool(self.ours) and bool(self.released)

    def cut(self, text: str, released: bool) -> str:
        """The text up to a stop string. Our rule ignores one before the first character; the released code does not."""
        return text[: self._find(text, released)]

    def are_settled(self, text: str) -> bool:
        """Whether both rules cut the text, and cut it at the same place whatever follows."""
        for released in (False, True):
            at, begin, strings = self._find(text, released), self._begin(text, released), self._strings(released)
            if at is None:
                return False
            longest = max(map(len, strings))
            starts = range(max(begin, len(text) - longest + 1), at)
            if any(stop.startswith(text[start:]) for start in starts for stop in strings):
                return False  # a longer stop string began before this one, and may still come
        return True

    def _find(self, text: str, released: bool) -> int | None:
        begin = self._begin(text, released)
        found = [text.find(stop, begin) for stop in self._strings(released)]
        return min((at for at in found if at >= 0), default=None)

    def _begin(self, text: str, released: bool) -> int:
        return 0 if released else len(text) - len(text.lstrip()) + 1

    def _strings(self, released: bool) -> tuple[str, ...]:
        return self.released if released else self.ours


NO_STOPS = StopStrings()
