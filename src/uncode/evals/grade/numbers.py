"""Numbers as people and models write them: signs, currencies, separators of thousands, fractions."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

from .find import Found

_GROUPED = r"\d{1,3}(?:(?:,|\{,\}|\\,|\\!|,\\!|\\ |_|[ \u00a0\u202f\u2009'\u2019])\d{3})+(?!\d)"
_PLAIN = rf"(?:{_GROUPED}|\d+)(?:\.\d+)?|\.\d+"
_FRACTION = r"\\[dt]?frac\s?\{\s?(?P<over>\d+)\s?\}\s?\{\s?(?P<under>\d+)\s?\}"
_MONEY = r"(?:\\?\$|€|£|USD|EUR|GBP|US\$)\s?"
_NUMBER = re.compile(
    rf"(?<![A-Za-z0-9.^])(?<!\^\{{)(?P<sign>[-\u2212\u2013]\s?)?(?:{_MONEY})?(?P<minus>(?<=[$€£])[-\u2212])?"
    rf"(?:{_FRACTION}|(?P<plain>{_PLAIN})"
    rf"(?:\s?/\s?(?P<divisor>\d+(?![\d/]))|\s?{_FRACTION.replace('over', 'part').replace('under', 'parts')}"
    r"|\s(?P<top>\d+)/(?P<bottom>\d+)|:00\b)?"
    r"(?:\s?(?:\\times|\\cdot|[x*\u00d7])\s?10\^\{?(?P<power>-?\d{1,2})\}?)?"
    r"(?:\s(?P<scale>hundred|thousand|million|billion)\b)?)"
)
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_OPERATOR = re.compile(r"[-+*/\u00d7\u00f7\u2212^]|\\(?:times|cdot|div|pm)\b|\d\s*[xX]\s*$")
_HEDGE = re.compile(r"[\s\\{}$()a-z]{0,12}?(?:\bor\b|\band\b|,|;|/)[\s\\{}$()a-z-]{0,12}", re.I)
LONGEST = 400
"""Digits of a number; one of more is none."""


def numbers(text: Found) -> list[tuple[Fraction, Found]]:
    """Every number of a text, in order, with its place."""
    found, whole = [], text.text
    for match in _NUMBER.finditer(whole):
        sign = match["sign"] or ""
        subtracts = bool(sign) and _subtracts(text.whole, text.start + match.start(), sign)
        value = _value(match, negative=bool(match["minus"]) or (bool(sign) and not subtracts))
        if value is not None:
            found.append((value, text.part(match.start() + (len(sign) if subtracts else 0), match.end())))
    return found


def _subtracts(text: str, at: int, sign: str) -> bool:
    """Whether a minus takes away from what stands before it ("10 - 5"), or is a list's dash, rather than a sign."""
    before = text[max(0, at - 8) : at]
    last = before.rstrip()[-1:]
    begins_line = before.rstrip(" \t")[-1:] in ("", "\n")
    return bool(re.match(r"[\d)\]%]", last)) or (len(sign) > 1 and (begins_line or last.isalpha()))


def only_number(text: Found) -> tuple[Fraction, Found] | None:
    """The number of an answer: the only value in it, or behind its last equals sign; a calculation is none."""
    part = _behind_equals(text)
    found = numbers(part)
    if not found or any(value != found[0][0] for value, _ in found) or _computes(part, found):
        return None
    return found[-1]


def stated_number(text: Found) -> tuple[Fraction, Found] | None:
    """The number a sentence begins with, unless it offers several, or computes."""
    part = _behind_equals(text)
    found = numbers(part)
    if not found or _computes(part, found[:2]):
        return None
    gap = _between(part, found[0][1], found[1][1]) if len(found) > 1 and found[1][0] != found[0][0] else ""
    hedges = _HEDGE.fullmatch(gap) and not re.search(r"\b(?:not|rather)\b", gap)
    return None if hedges else found[0]


def _behind_equals(text: Found) -> Found:
    signs = [m.end() for m in re.finditer(r"=|\u2248|\\approx|\bwhich (?:is|makes|gives)\b", text.text)]
    return text.part(signs[-1], len(text.text)) if signs else text


def _between(text: Found, first: Found, second: Found) -> str:
    return text.whole[first.end : second.start]


def _computes(text: Found, found: list[tuple[Fraction, Found]]) -> bool:
    """Whether nothing but an operator stands between two numbers, or a power behind one."""
    gaps = [_between(text, a[1], b[1]) for a, b in itertools.pairwise(found)]
    words = re.compile(r"(?<![\\a-z])[a-z]{3,}\s")
    joined = any(len(gap) < 40 and _OPERATOR.search(gap) and not words.search(gap) for gap in gaps)
    return joined or any(text.whole[n.end : n.end + 2].lstrip().startswith("^") for _, n in found)


def as_fraction(text: str) -> Fraction:
    """The exact value of digits with separators of thousands."""
    return Fraction(re.sub(r"[^\d.]", "", text))


def _value(match: re.Match[str], negative: bool) -> Fraction | None:
    if len(match[0]) > LONGEST:
        return None
    value = as_fraction(match["over"] or match["plain"])
    under = match["under"] or match["divisor"]
    if under is not None:
        if int(under) == 0:
            return None
        value /= int(under)
    for over, below in (("part", "parts"), ("top", "bottom")):  # two and a half
        if match[over] is not None and int(match[below]):
            value += Fraction(int(match[over]), int(match[below]))
    value *= _SCALES.get(match["scale"] or "", 1) * Fraction(10) ** int(match["power"] or 0)
    return -value if negative else value
