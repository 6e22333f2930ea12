"""Finds which of four letters a text chooses.

A letter counts if it is written as a choice: in brackets, quotes or bold, alone, or after a word such as "is" or
"option". It does not count in "vitamin D", "5 C" or "D-glucose". A place that names two choices names none.
"""

from __future__ import annotations

import re

from .find import Found, boxed, first_of, tagged
from .pattern import lazy_pattern

_STANDS = lazy_pattern(
    r"(?<![A-Za-z0-9_.=+\u00b0\u2019-])(?<![A-Za-z]')([A-Da-d])(?![A-Za-z0-9_\u00b0=+\u2019]|'[a-z]|-[A-Za-z0-9]|\s?[=+])"
)
_BEFORE = lazy_pattern(
    r"(?:^|[\n(\[{*\"`$:,;&/_)'\u2018\u201c]|\b(?:is|be|was|are|options?|choices?|answers?|letters?|select|choose|chose|"
    r"pick|or|and|not|nor|either|both|than|of|with|possibly|maybe|perhaps|but|so|it's|[A-D])\b)[\s*_(\[{}\"'`:$\\]{0,6}$",
    re.I,
)
_JOINS = lazy_pattern(
    r"[\W_]*(?:\b(?:or|and|possibly|maybe|perhaps|either|both|option|choice|but|not|rather|than)\b[\W_]*)*", re.I
)
_DENIES = lazy_pattern(r"\bthan\b[^A-Za-z]{0,6}(?:option |choice )?[^A-Za-z]{0,3}$", re.I)
_DENIED = lazy_pattern(r"[\W_]{0,4}(?:is|are|would be) not\b", re.I)
"""Denials that `Found.is_denied` does not know: "more likely than B", "B is not stable"."""
_EXPLAINS = lazy_pattern(r"\b(?:because|since|as|whereas|while|unlike|which|where|so)\b|\.(?=\s)|\u2014")
_WRAPPING = lazy_pattern(r"\\(?:text|math|bf|rm|it)\w*\s?\{|\\left|\\right|\\[()\[\]]")
_STATES = lazy_pattern(
    r"\b(?:answer|option|choice)\b[^.\n]{0,40}?(?:\b(?:is|be)\b|[:=])|^\W{0,9}(?:final |correct )?answer\W{0,6}\n"
    r"|\b(?:i|we)(?:'ll| will| would| must| should| can| have to)? (?:choose|pick|select|go with|opt for|settle on)\b",
    re.I | re.M,
)
_RIGHT = lazy_pattern(
    r"([A-D])\b[)\]*\"'`.]{0,3}\s+(?:is|would be|must be|seems)\s+(?:the\s+)?(?:correct|right|best|true)\b"
)
_LISTED = lazy_pattern(r"^[ \t]*[(\[*]{0,3}([A-D])[)\].:][^\n]{0,400}$", re.M)
_LISTS = lazy_pattern(r"[\s()\[\]]*(?:,|,?\s*(?:or|nor)\b)[\s()\[\]]*")
"""The text between letters that share a denial: "not A, B or C"."""
_LONE = lazy_pattern(
    r"[\s*(\[{:$\"'`_]*(?:[Oo]ption\s|[Cc]hoice\s)?([a-d])[)\]}*$\"'`_]*(?:[).:](?:\s|$)|[\s*$.]*$|\s*\n)"
)
"""A lower-case letter that is the whole place, or begins it as in "b)" or "b."."""
MAX_SENTENCE_CHARACTERS, MAX_SENTENCES = 500, 20
"""Sentences are cut at this length, and only the last ones are read."""
CHOICE_CHARACTERS, SENTENCE_CHARACTERS = 12, 60
"""A text of at most this length is a choice alone, or one sentence."""


def chosen_letter(text: Found) -> Found | None:
    """The letter that a text gives as its answer; None if it gives none or several."""
    for finder in (tagged, boxed):
        region = first_of([finder], text)
        if region is not None:
            return _single(_letters(region, alone=True))
    for place in _statements(text):
        letters = _letters(place, alone=True)
        if letters:
            return _single(letters)
    if len(text.text.strip()) <= CHOICE_CHARACTERS:
        return _single(_letters(text, alone=True))
    named = _last_named(text)
    return _single(_letters(text)) if named is None and len(text.text.strip()) <= SENTENCE_CHARACTERS else named


def _statements(text: Found) -> list[Found]:
    """The sentences that state the answer, the last first."""
    found = []
    for begin in list(_STATES.finditer(text.text))[-MAX_SENTENCES:]:
        rest = text.text[begin.end() : begin.end() + MAX_SENTENCE_CHARACTERS]
        line = re.match(r"[^\n]*" if rest.split("\n")[0].strip(" *:$") else r"(?:.|\n(?!\n\w))*", rest)
        found.append(text.part(begin.end(), begin.end() + (line.end() if line else 0)))
    found += [text.part(*right.span(1)) for right in list(_RIGHT.finditer(text.text))[-MAX_SENTENCES:]]
    return sorted(found, key=lambda place: place.start, reverse=True)


def _last_named(text: Found) -> Found | None:
    """The letter in the last sentence that names one, in brackets or as an option. Lists of the choices are ignored."""
    listed = list(_LISTED.finditer(text.text))[-MAX_SENTENCES:]
    if len(listed) == 1:
        return _single(_letters(text.part(*listed[0].span())))
    named = re.finditer(r"[(\[][A-D][)\]]|\*\*[A-D]\*\*|\b(?:choice|option) [A-D]\b", text.text, re.I)
    outside = [
        m for m in list(named)[-MAX_SENTENCES:] if not any(line.start() <= m.start() < line.end() for line in listed)
    ]
    if not outside:
        return None
    start = max(text.text.rfind("\n", 0, outside[-1].start()), text.text.rfind(". ", 0, outside[-1].start())) + 1
    return _single(_letters(text.part(start, min(len(text.text), start + MAX_SENTENCE_CHARACTERS))))


def _letters(place: Found, alone: bool = False) -> list[Found]:
    """The letters that a place chooses, before any explanation. If `alone`, a single letter may be lower case."""
    text = _WRAPPING.sub(lambda m: " " * (len(m[0]) - 1) + "(", place.text[:MAX_SENTENCE_CHARACTERS])
    lone = _LONE.match(text) if alone else None
    if lone is not None and not place.part(*lone.span(1)).is_denied:
        return [place.part(*lone.span(1))]
    found: list[tuple[int, int]] = []
    last_denied: int | None = None
    for match in _STANDS.finditer(text):
        before, after = text[max(0, match.start() - 24) : match.start()], text[match.end() : match.end() + 24]
        if found and _EXPLAINS.search(text, found[0][1] + 2, match.start()):
            break
        within = before[-2:-1].isalnum() or after[1:2].isalnum()  # cyclopenta[c]pyridine
        bracketed = before[-1:] in ("(", "[") and after[:1] in (")", "]") and not within
        small = match[1].islower() and not bracketed
        article = match[1] == "A" and re.match(r" [a-z]", after) is not None
        denied = bool(_DENIES.search(before) or _DENIED.match(after)) or place.part(*match.span(1)).is_denied
        denied |= last_denied is not None and _LISTS.fullmatch(text, last_denied, match.start()) is not None
        if denied and not small:
            last_denied = match.end()
        if small or article or denied or not _BEFORE.search(before):
            continue
        if not found or bracketed or after[:1] == ")" or _JOINS.fullmatch(text, found[-1][1], match.start()):
            found.append(match.span(1))
    return [place.part(*span) for span in found]


def _single(letters: list[Found]) -> Found | None:
    return letters[0] if len({letter.text.upper() for letter in letters}) == 1 else None
