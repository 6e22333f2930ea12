"""Where in a text the answer stands: in tags, in a box, after "the answer is", in a fence.

Marked answers come before unmarked ones, and the last of its kind counts. All places are characters of the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Found:
    """A part of a text."""

    whole: str
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.whole[self.start : self.end]

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end

    @property
    def says_anything(self) -> bool:
        """Whether a letter or digit is in it, commands aside: an empty box is no answer, nor is one of dots."""
        return re.search(r"\w", re.sub(r"\\[A-Za-z]+|<[^>]*>|\bboxed\b", "", self.text)) is not None or bool(
            re.search(r"\\(?:pi|infty|emptyset|varnothing)\b", self.text)
        )

    def part(self, start: int, end: int) -> Found:
        """A part of this part."""
        return Found(self.whole, self.start + start, self.start + end)

    def strip(self, characters: str | None = None) -> Found:
        left = len(self.text) - len(self.text.lstrip(characters))
        return self.part(left, max(left, len(self.text.rstrip(characters))))


Finder = Callable[[Found], Found | None]


def everything(text: str) -> Found:
    return Found(text, 0, len(text))


def first_of(finders: Sequence[Finder], text: Found) -> Found | None:
    """What the first finder finds that says anything."""
    for finder in finders:
        found = finder(text)
        if found is not None and found.says_anything:
            return found.strip()
    return None


def tagged(text: Found) -> Found | None:
    """Between the last <answer> that holds something and its </answer>, or the end where that is missing."""
    opened = [m.end() for m in re.finditer(r"<answer>", text.text, re.I)]
    ends = [m.start() for m in re.finditer(r"</answer>", text.text, re.I)]
    for start in reversed(opened):
        end = next((at for at in ends if at >= start), len(text.text))
        if text.part(start, end).says_anything:
            return text.part(start, end)
    return None


def closed(text: Found) -> Found | None:
    """Before the first </answer>, where the opening tag was the prompt's."""
    end = re.search(r"</answer>", text.text, re.I)
    return text.part(0, end.start()) if end and not re.search(r"<answer>", text.text, re.I) else None


def boxed(text: Found) -> Found | None:
    r"""In the last \boxed{...}, its braces balanced; one that is never closed reaches to the end of its line."""
    found = None
    for begin in re.finditer(r"\\?\b(?:boxed|fbox|framebox)\s*\{", text.text):
        inside = _balanced(text, begin.end())
        if inside.says_anything:
            found = inside
    return found


def stated(text: Found) -> Found | None:
    """After the last "answer is", "answer:" and the like, to the end of the line."""
    found = None
    for begin in re.finditer(r"\banswer\b\W{0,6}?(?:\s*\bis\b\s*[:=]?|\s*[:=])", text.text, re.I):
        end = text.text.find("\n", begin.end())
        rest = text.part(begin.end(), len(text.text) if end < 0 else end)
        if not rest.strip(" *:$").text:  # the answer may stand on the next line
            rest = text.part(begin.end(), len(text.text))
        found = rest
    return found


def fenced(text: Found) -> Found | None:
    """In the last code fence; one that is never closed reaches to the end."""
    fences = fences_of(text)
    return fences[-1] if fences else None


def fences_of(text: Found) -> list[Found]:
    """Every code fence, in order."""
    pattern = r"```[ \t]*[\w+-]*[ \t]*\n?(.*?)(?:```|\Z)"
    return [text.part(*m.span(1)) for m in re.finditer(pattern, text.text, re.S) if m[1].strip()]


def _balanced(text: Found, start: int) -> Found:
    depth, at, line = 1, start, text.text
    while at < len(line):
        if line[at] == "\\":
            at += 2
            continue
        depth += {"{": 1, "}": -1}.get(line[at], 0)
        if depth == 0:
            return text.part(start, at)
        at += 1
    end = re.search(r"\n|</answer>|\$|\Z", line[start:])
    return text.part(start, start + (end.start() if end else len(line) - start))
