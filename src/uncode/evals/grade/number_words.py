"""Numbers in English words: eighteen, one hundred and five, two and a half, minus three quarters."""

from __future__ import annotations

import re
from fractions import Fraction

from .find import Found
from .pattern import lazy_pattern

_SMALLEST = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen"""
UNITS = {word: value for value, word in enumerate(_SMALLEST.split())}
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
SCALES = {
    "hundred": 10**2,
    "thousand": 10**3,
    "lakh": 10**5,
    "million": 10**6,
    "crore": 10**7,
    "billion": 10**9,
    "trillion": 10**12,
}
DOZEN = 12
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}

_GAP = r"(?:\s+|\s?-\s?)"
_SMALL = rf"(?:(?:{'|'.join(_TENS)})(?:{_GAP}(?:{'|'.join(list(UNITS)[1:10])}))?|(?:{'|'.join(reversed(UNITS))}))\b"
_GROUP = rf"(?:(?:{_SMALL}|a)\s+hundred\b(?:\s+(?:and\s+)?{_SMALL})?|{_SMALL})"
_WHOLE = (
    rf"(?:{_GROUP}|a)\s+(?:thousand|million|billion|trillion)\b"
    rf"(?:,?\s+(?:and\s+)?{_GROUP}(?:\s+thousand\b)?){{0,3}}|{_GROUP}"
)
_WORDS = lazy_pattern(
    rf"(?<![\\A-Za-z-])(?P<sign>(?:minus|negative)\s+)?(?:(?P<dozen>(?:half an?|an?(?:\s+half)?|half){_GAP}dozen\b)"
    rf"|(?P<whole>{_WHOLE})"
    rf"(?:\s+point(?P<decimals>(?:\s+(?:{'|'.join(list(UNITS)[:10])}))+)\b|\s+and\s+an?\s+(?P<more>half|third|quarter)\b"
    rf"|{_GAP}(?P<part>half|halves|(?:third|quarter|fourth|fifth|sixth|eighth|tenth)s?)\b)?"
    rf"(?P<dozens>{_GAP}(?:(?:of\s+)?an?\s+)?dozens?\b)?)(?![A-Za-z])",
    re.I,
)


def number_words(text: Found) -> list[tuple[Fraction, Found]]:
    """All numbers in words, in order, with their places."""
    return [(_value(match), text.part(*match.span())) for match in _WORDS.finditer(text.text)]


def _value(match: re.Match[str]) -> Fraction:
    if match["dozen"]:
        return Fraction(DOZEN, 2 if "half" in match["dozen"].lower() else 1)
    value = Fraction(_whole(match["whole"]))
    if match["decimals"]:
        value = Fraction(f"{value}.{''.join(str(UNITS[word]) for word in match['decimals'].lower().split())}")
    if match["more"]:
        value += Fraction(1, _PARTS[match["more"].lower()])
    if match["part"]:
        value /= _PARTS[match["part"].lower().replace("halves", "half").removesuffix("s")]
    if match["dozens"]:
        value *= DOZEN
    return -value if match["sign"] else value


def _whole(words: str) -> int:
    total = group = 0
    for word in re.findall(r"[a-z]+", words.lower()):
        scale = SCALES.get(word, 0)
        if scale == 100:
            group = max(group, 1) * scale
        elif scale:
            total, group = total + max(group, 1) * scale, 0
        else:
            group += UNITS.get(word, 0) + _TENS.get(word, 0)
    return total + group
