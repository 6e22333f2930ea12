r"""Reads numbers in a text: signs, currencies, thousands separators, fractions, powers of ten.

In English words too (eighteen, two and a half), and in other spellings: 5½, 1.\overline{3}, 25,00 €, 20k,
5\text{ million}, 16^{th}, (52)_8.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable
from fractions import Fraction

from .claims import CONTEXT_CHARACTERS, is_bound
from .find import BOX, Found, without_remark
from .pattern import lazy_pattern

Number = tuple[Fraction, Found]
"""A value and its place."""

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

_JOINT = r"(?:\s+|\s?-\s?)"
_SMALL = rf"(?:(?:{'|'.join(_TENS)})(?:{_JOINT}(?:{'|'.join(list(UNITS)[1:10])}))?|(?:{'|'.join(reversed(UNITS))}))\b"
_GROUP = rf"(?:(?:{_SMALL}|a)\s+hundred\b(?:\s+(?:and\s+)?{_SMALL})?|{_SMALL})"
_WHOLE = (
    rf"(?:{_GROUP}|a)\s+(?:thousand|million|billion|trillion)\b"
    rf"(?:,?\s+(?:and\s+)?{_GROUP}(?:\s+thousand\b)?){{0,3}}|{_GROUP}"
)
_WORDS = lazy_pattern(
    rf"(?<![\\A-Za-z-])(?P<sign>(?:minus|negative)\s+)?(?:(?P<dozen>(?:half an?|an?(?:\s+half)?|half){_JOINT}dozen\b)"
    rf"|(?P<whole>{_WHOLE})"
    rf"(?:\s+point(?P<decimals>(?:\s+(?:{'|'.join(list(UNITS)[:10])}))+)\b|\s+and\s+an?\s+(?P<more>half|third|quarter)\b"
    rf"|{_JOINT}(?P<part>half|halves|(?:third|quarter|fourth|fifth|sixth|eighth|tenth)s?)\b)?"
    rf"(?P<dozens>{_JOINT}(?:(?:of\s+)?an?\s+)?dozens?\b)?)(?![A-Za-z])",
    re.I,
)

BLANK = r"(?:\s|~|\\[,;:! ]|\\q?quad(?![A-Za-z]))"
WORDS = r"\\(?:text[a-z]{0,2}|math(?:rm|bf|it|sf)|mbox|hbox|rm)\s?\{"
"""The beginning of words in a formula."""
MONEY = r"(?:\\?\$|€|£|USD|EUR|GBP|US\$)"
RAISED = r"[\u2070\u00b9\u00b2\u00b3\u2074-\u207b\u207f]+"
"""Digits and signs of an exponent."""

_SIGN = (
    r"[\u00bc-\u00be\u2150-\u215e\u2189]"
    r"|[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{1,9}\u2044[\u2081-\u2089][\u2080-\u2089]{0,9}"
)
_EURO = rf"{BLANK}*(?:{WORDS}{BLANK}*)?(?:[€£]|EUR\b|GBP\b|[Ee]uros?\b)"
_UNIT = (
    rf"{BLANK}*(?:{WORDS}{BLANK}*)?(?:\\?%|\\?\$|(?:[kcm]?m|[km]?g|[mc]?[lL]|kWh|h|USD|[Dd]ollars?|[Pp]ercent|[Pp]rozent|"
    r"[Ll]it(?:er|re)s?|[Mm]et(?:er|re)s?|[Ss]tunden)(?![A-Za-z]))"
)
SPECIAL = (
    r"\d{0,20}\.\d{0,20}(?:\\(?:overline|bar)\s?(?:\{\d{1,20}\}|\d)|\\dot\s?(?:\{\d\}|\d)(?:\d{0,20}\\dot\s?(?:\{\d\}|\d))?"
    r"|\(\d{1,20}\)(?!\d)|(?<=\d)[\u0304\u0305](?:\d[\u0304\u0305]){0,20})"
    rf"|(?:\d{{1,20}}\s?)?(?:{_SIGN})|(?:\d{{1,20}}\s)?\d{{1,20}}\u2044[1-9]\d{{0,9}}"
    rf"|\d{{1,3}}(?:\.\d{{3}}){{1,9}}(?:(?:,|\{{,\}})\d{{1,2}}(?!\d)|(?={_EURO}))"
    rf"|\d{{1,20}}(?:\{{,\}}\d{{1,2}}(?!\d)|,(?:00(?!\d)|\d{{1,2}}(?={_EURO}|{_UNIT})|(?<=[€£]\d,)\d\d(?!\d)|(?<=[€£]\d\d,)\d\d(?!\d)))"
)
"""A repeating decimal, a fraction in one sign, or a decimal comma, which needs a unit or 00: 2,5 may be a list."""
UNIT = lazy_pattern(f"{_EURO}|{_UNIT}")
_SPECIAL = lazy_pattern(rf"(?<![\d.,}}])(?:{SPECIAL})")
ORDINAL = rf"{BLANK}*\^?\s?\{{?\s?(?:{WORDS})?\s?(?:st|nd|rd|th)(?![A-Za-z])\s?\}}{{0,2}}"
_SCALE = lazy_pattern(
    rf"(?P<gap>{BLANK}*)(?P<text>{WORDS})?(?:{BLANK}|(?<=\d)-)*"
    rf"(?:(?P<word>(?i:{'|'.join(SCALES)}|mln|mn|bn|tn))s?|(?P<letter>[kKMmBbTt]))(?![A-Za-z\d^_]|-[a-z]|\s?[-+*=]\s?[\d\\(])"
)
_FACTORS = SCALES | {
    "k": 10**3,
    "m": 10**6,
    "mn": 10**6,
    "mln": 10**6,
    "b": 10**9,
    "bn": 10**9,
    "t": 10**12,
    "tn": 10**12,
}
_BASE_NAME = rf"(?:\d{{1,2}}(?!\d)|(?:{'|'.join(reversed(UNITS))})(?![A-Za-z]))"
_BASE = (
    rf"(?:{BLANK}|[(_{{]|{WORDS})*(?:\bin\s)?base(?:{BLANK}|[-{{}}]|{WORDS})*(?P<base>{_BASE_NAME})(?:{BLANK}|[)}}])*"
)
_SUBSCRIPT = rf"_\{{?\s?(?:{WORDS})?\s?\(?(?P<base>{_BASE_NAME})\)?\s?\}}{{0,2}}"

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
MAX_NUMBER_CHARACTERS = 400
"""A longer number is ignored."""
MAX_NUMBERS = 60
"""An answer with more numbers has no value."""


def numbers(text: Found, most: int | None = None) -> list[Number]:
    """All numbers of a text, or the first `most`, in order, with their places."""
    found, whole, end = list[Number](), text.text, 0
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


def asserted(text: Found) -> list[Number]:
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


def only_number(text: Found) -> Number | None:
    """The single value of an answer, or the value after its last equals sign; None for a calculation."""
    text, every = _without_remark(text)
    part, found = (text, every) if _ASSIGNMENTS.search(text.text) else _after_equals(text, every)
    if not found or any(value != found[0][0] for value, _ in found) or _computes(part, found):
        return None
    return found[-1]


def stated_number(text: Found) -> Number | None:
    """The first number of a sentence; None if the sentence offers several numbers or is a calculation."""
    part, found = _after_equals(*_without_remark(text))
    if not found or _computes(part, found[:2]):
        return None
    gap = _between(part, found[0][1], found[1][1]) if len(found) > 1 and found[1][0] != found[0][0] else ""
    hedges = _HEDGE.fullmatch(gap) and not re.search(r"\b(?:not|rather)\b", gap)
    return None if hedges else found[0]


def _without_remark(text: Found) -> tuple[Found, list[Number]]:
    """The text up to a reason that follows its number, and its numbers."""
    part = without_remark(text)
    found = asserted(part) if part != text else []
    return (part, found) if found else (text, asserted(text))


def _after_equals(text: Found, found: list[Number]) -> tuple[Found, list[Number]]:
    """The text after the last equals sign, and its numbers. "which is" counts only if a number follows."""
    signs = [m.end() for m in re.finditer(r"=|\u2248|\\approx", text.text)]
    last = max((number[1].start - text.start for number in found), default=0)
    signs += [m.end() for m in re.finditer(r"\bwhich (?:is|makes|gives)\b", text.text) if m.end() <= last]
    part = text.part(max(signs, default=0), len(text.text))
    return part, [number for number in found if part.start <= number[1].start]


def _between(text: Found, first: Found, second: Found) -> str:
    return text.whole[first.end : second.start]


def _computes(text: Found, found: list[Number]) -> bool:
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


def number_words(text: Found) -> list[Number]:
    """All numbers in words, in order, with their places."""
    return [(_value_of_words(match), text.part(*match.span())) for match in _WORDS.finditer(text.text)]


def _value_of_words(match: re.Match[str]) -> Fraction:
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


def special_value(spelling: str) -> Fraction:
    """The value of a text that SPECIAL matches."""
    repeating = re.fullmatch(r"(\d*)\.(\d*?)((?:\\|\(|\d[\u0304\u0305]).*)", spelling, re.S)
    if repeating:
        again = re.sub(r"\\[a-z]+|\D", "", repeating[3])
        tail = Fraction(int(again), (10 ** len(again) - 1) * 10 ** len(repeating[2]))
        return Fraction(f"{repeating[1] or 0}.{repeating[2] or 0}") + tail
    signs = re.fullmatch(r"(?:(\d+)\s?(?=[^\d\u2044])|(\d+)\s)?(.*\u2044.*|\D)", spelling)
    if signs:
        over, under = unicodedata.normalize("NFKC", signs[3]).split("\u2044")
        return int(signs[1] or signs[2] or 0) + Fraction(int(over), int(under))
    return Fraction(re.sub(r"[.{}]", "", spelling).replace(",", "."))


def scale_after(text: str, at: int, money: bool) -> tuple[int, int]:
    """The factor of the words and letters after a number ("5 hundred thousand", "$20k"), and their end.

    A letter may be a unit: "20 m" are metres, "$20 m" are millions.
    """
    factor, end = 1, at
    while found := _SCALE.match(text, end):
        letter = found["letter"]
        if letter and not (money or letter in "kK" or (letter in "MB" and (found["text"] or not found["gap"]))):
            break
        factor *= _FACTORS[(found["word"] or letter).lower()]
        end = found.end()
    return factor, end


def plain_formula(formula: str, scales: bool) -> str:
    """The formula with fractions, powers of ten, exponents and bases in LaTeX. Without `scales`, "20k" is a product."""
    formula = _rewritten(rf"(?<=\d){ORDINAL}", lambda m: " ", formula)
    formula = _SPECIAL.sub(lambda m: _latex_fraction(special_value(m[0])), formula)
    formula = re.sub(RAISED, lambda m: f"^{{{unicodedata.normalize('NFKC', m[0])}}}", formula)
    formula = re.sub(r"[\u2080-\u2089]+", lambda m: f"_{{{unicodedata.normalize('NFKC', m[0])}}}", formula)
    formula = re.sub(r"\(\s?([\dA-F]+)\s?\)(?=\s?_)", r"\1", formula)
    for base in (_BASE, _SUBSCRIPT):
        formula = _rewritten(rf"(?<=[\dA-F]){base}", lambda m: f"_{{{UNITS.get(m['base'], m['base'])}}}", formula)
    return _without_scales(formula) if scales else formula


def _latex_fraction(value: Fraction) -> str:
    return f"\\frac{{{value.numerator}}}{{{value.denominator}}}" if value.denominator > 1 else str(value)


def _rewritten(pattern: str, new: Callable[[re.Match[str]], str], formula: str) -> str:
    """The formula with other text for each match. A closing brace that the match did not open is kept."""
    return re.sub(pattern, lambda m: new(m) + "}" * (m[0].count("}") - m[0].count("{")), formula)


def _without_scales(formula: str) -> str:
    money = re.search(MONEY, formula) is not None
    for number in reversed(list(re.finditer(r"\d(?!\d)|(?<=\d)\}", formula))):
        factor, end = scale_after(formula, number.end(), money)
        if factor > 1:
            words = r"\text{" * formula[number.end() : end].count("{")
            formula = f"{formula[: number.end()]} \\times {factor} {words}{formula[end:]}"
    return formula
