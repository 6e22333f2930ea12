"""Numbers as people and models write them: signs, currencies, separators of thousands, fractions."""

from __future__ import annotations

import re
from fractions import Fraction

from .find import Found

_GROUPED = r"\d{1,3}(?:(?:,|\{,\}|\\,|\\!|\\ |_|[\u00a0\u202f\u2009'\u2019])\d{3})+(?!\d)"
_PLAIN = rf"(?:{_GROUPED}|\d+)(?:\.\d+)?|\.\d+"
_NUMBER = re.compile(
    rf"(?<![\w.])(?P<sign>[-\u2212\u2013]\s?)?(?:\\?\$\s?|€|£)?(?P<minus>(?<=[$€£])[-\u2212])?"
    rf"(?:\\[dt]?frac\s*\{{\s*(?P<over>{_PLAIN})\s*\}}\s*\{{\s*(?P<under>{_PLAIN})\s*\}}"
    rf"|(?P<plain>{_PLAIN})(?:\s?/\s?(?P<divisor>\d+(?![\d/]))|:00\b)?)"
)
_SPACED = re.compile(r"([-\u2212]?)\\?\$?\s?(\d{1,3}(?: \d{3})+)(\.\d+)?\D*")


def numbers(text: Found) -> list[tuple[Fraction, Found]]:
    """Every number of a text, in order, with its place."""
    found, whole = [], text.text
    for match in _NUMBER.finditer(whole):
        start = match.start()
        before = whole[max(0, start - 8) : start].rstrip()[-1:]
        subtracts = bool(match["sign"]) and re.match(r"[\w)\]}%]", before) is not None  # "10 - 5" holds no minus five
        value = _value(match, negative=bool(match["minus"]) or (bool(match["sign"]) and not subtracts))
        if value is not None:
            found.append((value, text.part(start + (len(match["sign"]) if subtracts else 0), match.end())))
    return found


def only_number(text: Found) -> tuple[Fraction, Found] | None:
    """The number of an answer: its only one, or the only value that stands behind its last equals sign."""
    spaced = _SPACED.fullmatch(text.text.strip())
    if spaced:  # thousands set off by blanks, and nothing else
        digits = spaced[2].replace(" ", "") + (spaced[3] or "")
        return Fraction(digits) * (-1 if spaced[1] else 1), text.strip()
    equals = max(text.text.rfind("="), text.text.rfind("≈"), text.text.rfind("\\approx"))
    for part in (text, text.part(equals + 1, len(text.text)) if equals >= 0 else text):
        found = numbers(part)
        if found and all(value == found[0][0] for value, _ in found):
            return found[-1]
    return None


def as_fraction(text: str) -> Fraction:
    """The exact value of digits with separators of thousands."""
    return Fraction(re.sub(r"[^\d.]", "", text))


def _value(match: re.Match[str], negative: bool) -> Fraction | None:
    over = as_fraction(match["over"] or match["plain"])
    under = match["under"] or match["divisor"]
    if under is not None:
        if as_fraction(under) == 0:
            return None
        over /= as_fraction(under)
    return -over if negative else over
