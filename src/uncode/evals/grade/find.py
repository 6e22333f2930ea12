"""Finds the answer in a text: in tags, in a box, after "the answer is", in a code fence.

Marked answers come before unmarked ones, and the last mark of a kind counts. A mark that is denied or retracted does
not count. All positions are characters of the whole text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .claims import is_denied, is_retracted, says_unsolvable
from .pattern import lazy_pattern

_SYMBOLS = r"\\(?:pi|infty|emptyset|varnothing)\b"


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
        """Whether it contains a letter or digit outside commands and tags. An empty box or dots are not an answer."""
        rest = re.sub(r"\\[A-Za-z]+|</?\w{1,20}[>}]?|\bboxed\b", "", self.text)
        return re.search(r"\w", rest) is not None or re.search(_SYMBOLS, self.text) is not None

    @property
    def is_denied(self) -> bool:
        """Whether the text denies or retracts this part as the answer."""
        return is_denied(self.whole, *self.span) or is_retracted(self.whole, self.end)

    def part(self, start: int, end: int) -> Found:
        """A part of this part."""
        return Found(self.whole, self.start + start, self.start + end)

    def tail(self, characters: int) -> Found:
        """The last `characters` of this part. It bounds the work on a long text."""
        return self.part(max(0, self.end - self.start - characters), self.end - self.start)

    def strip(self, characters: str | None = None) -> Found:
        left = len(self.text) - len(self.text.lstrip(characters))
        return self.part(left, max(left, len(self.text.rstrip(characters))))


BOX = r"\\?\b(?:boxed|fbox|framebox)"
_GAP = r"(?:[\s}$()\[\]~]|\\[()\[\],;: ]|\\text\w*\s?\{|\\q?quad\b|\\\\)"
_JOINT = r"(?:[,;/&\u3001\u548c\u6216]|\b(?:or|and)\b|\\l?or\b|\\(?:vee|land|wedge)\b)"
BETWEEN_BOXES = rf"{_GAP}*{_JOINT}(?:{_GAP}|{_JOINT}|\b(?:also|either)\b|[A-Za-z](?:_\{{?\w\}}?)?\s?=)*"
"""The text between boxes that are one answer, such as `}$, and $x = `."""
_REMARK = lazy_pattern(
    r"(?<![A-Za-z\\])(?:since|because|given that|where|assuming|provided|check:)(?![a-z])"
    r"|(?<![A-Za-z\\])as\s(?=[}\s]*(?:[\\$\d(]|[a-z]\s))|, (?:as|for|from)\b(?! well)"
    r"|(?<=[\s{])\((?!\s?(?:or|and|also|not)\b)(?=[^()]{0,99}=)|(?<=\d): (?=[^:\n]{0,99}=)"
    r"|\s[\u2013\u2014]\s?(?=[A-Za-z]{2})",
    re.I,
)
"""The beginning of a reason or a remark after an answer."""
_BEFORE_REMARK = lazy_pattern(r"(?:[\s,;~*$(]|\\left|\\[,;: ]|\\q?quad|\\(?:text|mathrm)\s?\{)+$")
MAX_GAP_CHARACTERS = 60
MAX_EQUATION_CHARACTERS = 400
_SIDE_BEGINS = (". ", "! ", "? ", "; ", ": ", ", ", "\n", "=")


def without_open_equation(text: Found) -> Found:
    """A text without an unfinished equation at its end ("0 + 9 ="), whose numbers are operands, not results."""
    end = len(text.text.rstrip())
    tail = text.text[max(0, end - MAX_EQUATION_CHARACTERS) : end]
    while tail.endswith("="):
        tail = tail.rstrip("= ")
        tail = tail[: max(at + len(mark) if (at := tail.rfind(mark)) >= 0 else 0 for mark in _SIDE_BEGINS)].rstrip()
    cut = min(end, MAX_EQUATION_CHARACTERS) - len(tail)
    return text.part(0, end - cut) if cut else text


Finder = Callable[[Found], Found | None]


def everything(text: str) -> Found:
    return Found(text, 0, len(text))


def readable(text: str) -> Found:
    """A text with digits and signs of other scripts and widths replaced by ASCII. Positions do not change."""
    return everything(re.sub(r"[^\x00-\x7f]", lambda m: _as_ascii(m[0]), text))


def _as_ascii(character: str) -> str:
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    return chr(ord(character) - 0xFEE0) if "\uff01" <= character <= "\uff5e" else character


def first_of(finders: Sequence[Finder], text: Found, skip: Callable[[Found], bool] | None = None) -> Found | None:
    """The first result of the finders that is not empty, denied or skipped. Each finder searches from the end."""
    for finder in finders:
        part = text
        for _ in range(MAX_SKIPPED):
            found = finder(part)
            if found is None or not found.says_anything:
                break
            found = found.strip()
            if not found.is_denied and (skip is None or not skip(found)):
                return found
            part = Found(text.whole, text.start, found.start)
    return None


def before_next(text: str, label: str, answered: Callable[[Found], bool]) -> Found:
    """The text up to the label of another problem. A label without an answer before it restates this problem."""
    whole = readable(text)
    for found in list(re.finditer(rf"^\W{{0,6}}{label}", whole.text, re.M))[:MAX_LABELS]:
        before = whole.part(0, found.start())
        if first_of([tagged, boxed, stated], before) is not None or answered(before):
            return before
    return whole


def tagged(text: Found) -> Found | None:
    """The text between the last non-empty <answer> and its </answer>, or the end if that is missing."""
    end = len(text.text)
    for tag in reversed(list(re.finditer(r"<answer>|</answer\b", text.text, re.I))):
        if tag[0][1] == "/":
            end = tag.start()
        elif text.part(tag.end(), end).says_anything:
            return text.part(tag.end(), end)
        else:
            end = tag.start()
    return None


def closed(text: Found) -> Found | None:
    """The text before the first </answer>, if the opening tag was in the prompt."""
    end = re.search(r"</answer>", text.text, re.I)
    return text.part(0, end.start()) if end and not re.search(r"<answer>", text.text, re.I) else None


def boxed(text: Found) -> Found | None:
    r"""The content of the last \boxed{...}, with balanced braces. A box that is never closed ends with its line.

    Boxes joined by "or", "and" or a comma are one answer, and the result covers all of them.
    """
    found, begins_at = None, 0
    for begin in reversed(list(re.finditer(rf"{BOX}\s{{0,9}}\{{", text.text))[-MAX_BOXES:]):
        inside = _balanced(text, begin.end())
        if not inside.says_anything:
            continue
        if found is None:
            found = inside
        elif re.fullmatch(BETWEEN_BOXES, text.text[inside.end - text.start : begins_at]):
            found = Found(text.whole, inside.start, found.end)
        else:
            break
        begins_at = begin.start()
    return found


def without_remark(text: Found) -> Found:
    """A text up to the reason or remark after its answer: "9, as 9 * 2 = 18" is 9."""
    for remark in _REMARK.finditer(text.text):
        before = text.text[: remark.start()]
        gap = _BEFORE_REMARK.search(before, max(0, len(before) - MAX_GAP_CHARACTERS))
        part = text.part(0, gap.start() if gap else len(before))
        if part.says_anything:
            return part
    return text


def stated(text: Found) -> Found | None:
    """The rest of the line after the last "answer is", "answer:" or similar; or the text below a heading "Answer"."""
    for begin in reversed(list(_STATES.finditer(text.text))):
        before = text.text[max(0, begin.start() - 30) : begin.start()]
        if re.search(r"\b(?:find|get|obtain|reach|determine|compute|check)\w{0,3}\s+(?:\w+\s+){0,2}$", before, re.I):
            continue  # "to find the answer: ..."
        if re.match(r"\s*(?:not|never)\b", text.text[begin.end() : begin.end() + 20], re.I):
            continue
        end = text.text.find("\n", begin.end())
        rest = text.part(begin.end(), len(text.text) if end < 0 else end)
        if not rest.strip(" *:$").text:  # the answer may be on the next line
            rest = text.part(begin.end(), len(text.text))
        closing = rest.text.lower().find("</answer")
        rest = rest.part(0, closing) if closing >= 0 else rest
        if rest.strip().text and not sentence_of(rest.strip()).is_denied:
            return rest
    return None


def sentence_of(text: Found) -> Found:
    """The text up to the end of its first sentence or line."""
    end = re.search(r"[.!?](?:\s|$)|\n", text.text.rstrip())
    return text.part(0, end.start() if end else len(text.text))


def gives_up(mark: Found) -> bool:
    """Whether a marked answer says, before any number, that there is no solution."""
    sentence = sentence_of(mark).text
    return says_unsolvable(sentence) and re.search(r"\d", sentence) is None


_STATES = lazy_pattern(
    r"(?<!</)\banswer\b(?!>)\W{0,6}?(?:[ ]\w+)?[ ]?(?:\b(?:is|should be|would be|must be)\b\s{0,9}[:=]?|[:=])"
    r"|^\W{0,9}(?:final )?(?<!</)answer(?!>)\W{0,6}$",
    re.I | re.M,
)
MAX_BOXES, MAX_LABELS, MAX_SKIPPED = 50, 5, 20
"""Limits of the search: boxes from the end, labels of other problems from the beginning, and skipped places."""


def fenced(text: Found) -> Found | None:
    """The content of the last code fence. A fence that is never closed ends with the text."""
    fences = fences_of(text)
    return fences[-1] if fences else None


def fences_of(text: Found) -> list[Found]:
    """The contents of all code fences, in order."""
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
