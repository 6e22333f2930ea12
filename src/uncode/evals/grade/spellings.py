r"""Spellings of a number beyond plain digits: 5½, 1.\overline{3}, 25,00 €, 20k, 5\text{ million}, 16^{th}, (52)_8."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from fractions import Fraction

from .number_words import SCALES, UNITS
from .pattern import lazy_pattern

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
    formula = _SPECIAL.sub(lambda m: _fraction(special_value(m[0])), formula)
    formula = re.sub(RAISED, lambda m: f"^{{{unicodedata.normalize('NFKC', m[0])}}}", formula)
    formula = re.sub(r"[\u2080-\u2089]+", lambda m: f"_{{{unicodedata.normalize('NFKC', m[0])}}}", formula)
    formula = re.sub(r"\(\s?([\dA-F]+)\s?\)(?=\s?_)", r"\1", formula)
    for base in (_BASE, _SUBSCRIPT):
        formula = _rewritten(rf"(?<=[\dA-F]){base}", lambda m: f"_{{{UNITS.get(m['base'], m['base'])}}}", formula)
    return _without_scales(formula) if scales else formula


def _fraction(value: Fraction) -> str:
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
