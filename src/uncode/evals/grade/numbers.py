"""Reads numbers in a text: signs, currencies, thousands separators, fractions, powers of ten."""

from __future__ import annotations

import itertools
import re
import unicodedata
from fractions import Fraction

from .claims import CONTEXT_CHARACTERS, is_bound
from .find import BOX, Found, without_remark
from .number_words import DOZEN, number_words
from .pattern import lazy_pattern
from .spellings import BLANK, MONEY, ORDINAL, RAISED, SPECIAL, UNIT, WORDS, scale_after, special_value

_GROUPED = r"\d{1,3}(?:(?:,|\{,\}|\\,|\\!|,\\!|\\ |_|[ \u00a0\u202f\u2009'\u2019])\d{3})+(?!\d)"
_PLAIN = rf"(?:{_GROUPED}|\d+)(?:\.\d+)?|\.\d+"
_SIGNED = rf"[-+\u2212\u2013]?\s?(?:{MONEY}\s?)?(?:{_GROUPED}|\d+)(?:\.\d+)?"
_FRACTION = (
    rf"\\[dtc]?frac\s?(?:\{{\s?(?P<over>{_SIGNED})\s?\}}|(?P<over_digit>\d))"
    rf"\s?(?:\{{\s?(?P<under>{_SIGNED})\s?\}}|(?P<under_digit>\d))"
)
_EXPONENT = r"\{?\s?(?P<power>[-+\u2212]?\s?\d{1,2})\s?\}?(?!\d)"
_NUMBER = lazy_pattern(
    rf"(?<![A-Za-z0-9.^])(?<!\^\{{)(?<!\^[-\u2212])(?<!\^\{{[-\u2212])(?P<sign>[-\u2212\u2013]\s?)?"
    rf"(?P<money>{MONEY}\s?)?(?P<minus>(?<=[$€£])[-\u2212])?(?P<root>\\sqrt(?:\[\d+\])?\s?\{{?\s?|[\u221a\u221b]\s?[({{]?\s?)?"
    rf"(?:{_FRACTION}|(?P<special>{SPECIAL})|(?P<plain>{_PLAIN})"
    rf"(?:\s?/\s?(?P<divisor>[-\u2212]?\d+(?![\d/]))|\s?{_FRACTION.replace('over', 'part').replace('under', 'parts')}"
    r"|\s(?P<top>\d+)/(?P<bottom>\d+)|:00\b)?"
    rf"(?:\s?(?:\\times|\\cdot|[x*\u00d7\u22c5])\s?10\s?(?:\^|\*\*)\s?{_EXPONENT}"
    r"|[eE](?P<e>[-+\u2212]?\d{1,2})(?![\w.]))?)"
)
_POWER_OF_TEN = lazy_pattern(rf"\s?(?:\^|\*\*)\s?{_EXPONENT}|(?P<raised>{RAISED})")
_UNIT_POWER = lazy_pattern(rf"\s?\^\s?\{{?\s?(?:\\circ|\\degree|\u00b0|o\b)|{ORDINAL}")
_SYMBOL = lazy_pattern(
    r"\s?(?:\\,|\\cdot\s?)?(?:\u03c0|\\pi(?![a-z])|(?:\\sqrt(?:\[\d+\])?\s?\{?|[\u221a\u221b]\s?[({]?)\s?[\w.]*[)}]?)"
    r"|(?:[abefijknoqruvwxyzXYZ]|_\{?\d+\}?)(?![A-Za-z\u2019'])|\s[inxyz](?=\s*(?:[.,;)}$]|\\\)|$))"
)
"""A symbol that multiplies a number (2\u03c0, 5i, 3\u221a2, 7x), or the base of its digits; no letter of a unit."""
_SYMBOLIC = Fraction(1, 2**61 - 1)
"""Stands for a symbol: a number with a symbol equals no number without one."""
_DOZENS = lazy_pattern(rf"(?:\*\*|\$|{BLANK}*\\\))?{BLANK}*(?:{WORDS}{BLANK}*)?dozens?(?![A-Za-z-])", re.I)
_OPERATOR = lazy_pattern(r"[-+*/\u00d7\u00f7\u2212^]|\\(?:times|cdot|div|pm)\b|\d\s*[xX]\s*$")
_HEDGE = lazy_pattern(r"[\s\\{}$()a-z]{0,12}?(?:\bor\b|\band\b|,|;|/)[\s\\{}$()a-z-]{0,12}|\s+", re.I)
_ASSIGNMENTS = lazy_pattern(
    rf"=\s*[^=]*?(?:[,;]|\band\b|\bor\b)(?:[\s$\\({{]|\\text)*(?:\}}\s*)?[A-Za-z](?:_\{{?\w\}}?)?\s*=|=[\s$\\(\[]*{BOX}"
)
"""Several variables with values: x = 3, y = 5."""
_Number = tuple[Fraction, Found]
"""A value and its place."""
MAX_NUMBER_CHARACTERS = 400
"""A longer number is ignored."""
MAX_NUMBERS = 60
"""An answer with more numbers has no value."""


def numbers(text: Found, most: int | None = None) -> list[_Number]:
    """All numbers of a text, or the first `most`, in order, with their places."""
    found, whole, end = list[_Number](), text.text, 0
    for match in itertools.islice(_NUMBER.finditer(whole), most):
        if match.start() < end:  # the 2 of 3\u221a2
            continue
        sign = match["sign"] or ""
        subtracts = bool(sign) and _subtracts(text.whole, text.start + match.start(), sign)
        value = _value(match, negative=bool(match["minus"]) or (bool(sign) and not subtracts))
        if value is not None:
            factor, end = _factor_after(match, value)
            found.append((value * factor, text.part(match.start() + (len(sign) if subtracts else 0), end)))
    return found


def _factor_after(match: re.Match[str], value: Fraction) -> tuple[Fraction, int]:
    """The factor that stands behind a number: a power of ten, a scale ("million", "k"), a symbol; and its end."""
    power = _POWER_OF_TEN.match(match.string, match.end()) if abs(value) == 10 else None
    if power is not None:  # 10^3 is the number 1000
        exponent = power["power"] or unicodedata.normalize("NFKC", power["raised"])
        return Fraction(10) ** (_exponent(exponent) - 1), power.end()
    scale, end = scale_after(match.string, match.end(), bool(match["money"]))
    if dozens := _DOZENS.match(match.string, end):
        return Fraction(DOZEN * scale), dozens.end()
    symbol = _SYMBOL.match(match.string, end) if scale == 1 else None
    unit = UNIT.match(match.string, end) if match["special"] and re.search(r",|\.\d{3}$", match["special"]) else None
    if unit is not None:  # without its unit, 25,00 would be two numbers
        return Fraction(scale), unit.end()
    if match["root"] or symbol:
        return _SYMBOLIC, symbol.end() if symbol else end
    return Fraction(scale), end


def asserted(text: Found) -> list[_Number]:
    """The numbers that a text asserts, in digits or else in words. Denied numbers and bounds are left out."""
    every = numbers(text, MAX_NUMBERS + 1)
    found = [number for number in every if is_asserted(number[1], text)] if len(every) <= MAX_NUMBERS else []
    words = [number for number in number_words(text) if is_asserted(number[1], text)]
    if not words or (found and not _begins(text, words[0][1])):
        return found
    named = [number for number in words if number[1].text.lower() != "one"]  # it may be a pronoun
    return sorted([*found, *(named or words)], key=lambda number: number[1].start)


def is_asserted(place: Found, region: Found) -> bool:
    """Whether a region asserts a number as a value. Words outside the region cannot make it a bound."""
    low = max(region.start, place.start - CONTEXT_CHARACTERS)
    inside = place.whole[low : min(region.end, place.end + CONTEXT_CHARACTERS)]
    return not place.is_denied and not is_bound(inside, place.start - low, place.end - low)


def _begins(text: Found, words: Found) -> bool:
    """Whether a text begins with a number in words. "one" may be a pronoun, and "a dozen" the measure of a price."""
    return (
        words.text.lower() not in ("one", "a dozen")
        and re.fullmatch(r"\W{0,6}", text.whole[text.start : words.start]) is not None
    )


def _subtracts(text: str, at: int, sign: str) -> bool:
    """Whether a minus subtracts ("10 - 5") or is the dash of a list, rather than a sign."""
    before = text[max(0, at - 8) : at]
    last = before.rstrip()[-1:]
    begins_line = before.rstrip(" \t")[-1:] in ("", "\n")
    return bool(re.match(r"[\d)\]%]", last)) or (len(sign) > 1 and (begins_line or last.isalpha()))


def only_number(text: Found) -> _Number | None:
    """The single value of an answer, or the value after its last equals sign; None for a calculation."""
    text, every = _without_remark(text)
    part, found = (text, every) if _ASSIGNMENTS.search(text.text) else _after_equals(text, every)
    if not found or any(value != found[0][0] for value, _ in found) or _computes(part, found):
        return None
    return found[-1]


def stated_number(text: Found) -> _Number | None:
    """The first number of a sentence; None if the sentence offers several numbers or is a calculation."""
    part, found = _after_equals(*_without_remark(text))
    if not found or _computes(part, found[:2]):
        return None
    gap = _between(part, found[0][1], found[1][1]) if len(found) > 1 and found[1][0] != found[0][0] else ""
    hedges = _HEDGE.fullmatch(gap) and not re.search(r"\b(?:not|rather)\b", gap)
    return None if hedges else found[0]


def _without_remark(text: Found) -> tuple[Found, list[_Number]]:
    """The text up to a reason that follows its number, and its numbers."""
    part = without_remark(text)
    found = asserted(part) if part != text else []
    return (part, found) if found else (text, asserted(text))


def _after_equals(text: Found, found: list[_Number]) -> tuple[Found, list[_Number]]:
    """The text after the last equals sign, and its numbers. "which is" counts only if a number follows."""
    signs = [m.end() for m in re.finditer(r"=|\u2248|\\approx", text.text)]
    last = max((number[1].start - text.start for number in found), default=0)
    signs += [m.end() for m in re.finditer(r"\bwhich (?:is|makes|gives)\b", text.text) if m.end() <= last]
    part = text.part(max(signs, default=0), len(text.text))
    return part, [number for number in found if part.start <= number[1].start]


def _between(text: Found, first: Found, second: Found) -> str:
    return text.whole[first.end : second.start]


def _computes(text: Found, found: list[_Number]) -> bool:
    """Whether only an operator stands between two numbers, or a power follows one."""
    gaps = [_between(text, a[1], b[1]) for a, b in itertools.pairwise(found)]
    words = re.compile(r"(?<![\\a-z])[a-z]{3,}\s")
    joined = any(len(gap) < 40 and _OPERATOR.search(gap) and not words.search(gap) for gap in gaps)
    return joined or any(_is_raised(text.whole[n.end : n.end + 16]) for _, n in found)


def _is_raised(after: str) -> bool:
    """Whether a power follows a number. A degree sign is not a power."""
    raised = after[:2].lstrip().startswith("^") or re.match(RAISED, after) is not None
    return raised and not _UNIT_POWER.match(after)


def as_fraction(text: str) -> Fraction:
    """The exact value of digits with thousands separators."""
    return Fraction(re.sub(r"[^\d.]", "", text))


def _value(match: re.Match[str], negative: bool) -> Fraction | None:
    if len(match[0]) > MAX_NUMBER_CHARACTERS:
        return None
    value = (
        special_value(match["special"])
        if match["special"]
        else _signed(match["over"] or match["over_digit"] or match["plain"])
    )
    under = match["under"] or match["under_digit"] or match["divisor"]
    if under is not None:
        if _signed(under) == 0:
            return None
        value /= _signed(under)
    pairs = (
        (match["part"] or match["part_digit"], match["parts"] or match["parts_digit"]),
        (match["top"], match["bottom"]),
    )
    for over, below in pairs:  # two and a half
        if over is not None and below is not None and _signed(below):
            value += _signed(over) / _signed(below)
    power = _exponent(match["power"] or match["e"] or "0")
    value *= Fraction(10) ** power
    return -value if negative else value


def _signed(text: str) -> Fraction:
    return as_fraction(text) * (-1 if text.lstrip()[:1] in ("-", "\u2212", "\u2013") else 1)


def _exponent(text: str) -> int:
    return int(re.sub(r"\s", "", text).replace("\u2212", "-"))
