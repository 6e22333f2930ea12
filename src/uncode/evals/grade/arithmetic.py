r"""Equations in a text, with exact values: 44-15=29, \(79 - 29 = 50\), \frac{12}{4} \times (3 + 2).

Equations consist of numbers, + - * / and brackets. Any other text separates them.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction

from .claims import UNEQUAL, falls_short
from .find import Found, everything
from .numbers import as_fraction
from .pattern import lazy_pattern

MAX_EQUATIONS = 200
"""Only the last equations of a text are read; an answer needs three."""
MAX_TOKENS = 400
"""Tokens of an equation, and digits of a number, that are read."""
MAX_CHARACTERS = 6000
"""Only the last characters of a text are read."""
MAX_DERIVATIONS = 8
"""The search follows at most this many derivations of a number."""


@dataclass(frozen=True)
class Side:
    """An expression: its value, its numbers, and the number of its operations."""

    value: Fraction
    leaves: tuple[Fraction, ...]
    operations: int


@dataclass(frozen=True)
class Equation:
    """One or more expressions that a text states to be equal, and their place in the text."""

    sides: tuple[Side, ...]
    place: Found = field(compare=False)
    denied: bool = False
    """Whether the equation states that two sides are not equal."""
    rejected: bool = False
    """Whether the words around the equation say that it is not a solution."""

    @property
    def holds(self) -> bool:
        return not self.denied and not self.rejected and all(side.value == self.sides[0].value for side in self.sides)

    @property
    def working(self) -> Side | None:
        """The first side with an operation."""
        return next((side for side in self.sides if side.operations), None)


def equations(text: Found, grouped: bool = False) -> list[Equation]:
    """All equations and single expressions with an operation. If `grouped`, commas may separate thousands."""
    found = []
    for equation in [one for one in _parse_equations(text, grouped) if one.working is not None][-MAX_EQUATIONS:]:
        place = equation.place  # an equation that misses the target may still be a step, so it does not count as denied
        rejected = place.is_denied and not falls_short(place.whole, place.end)
        found.append(replace(equation, rejected=True) if rejected else equation)
    return found


def contradicts(text: Found) -> bool:
    """Whether a text states that two numbers are equal which differ by more than rounding."""
    for equation in _parse_equations(text, grouped=True):
        before = text.whole[: equation.place.start].rstrip()[-1:]
        after = text.whole[equation.place.end :].lstrip()[:1]
        values = [side.value for side in equation.sides]
        is_complete = before in ("", "=", ",", ";", "$") and after in ("", ",", ";", ".", "$")  # not part of a formula
        if is_complete and any(abs(value - values[0]) * 50 > abs(values[0]) for value in values[1:]):
            return True
    return False


def read_sides(text: str) -> tuple[Side, ...]:
    """The sides of the equation that a whole text is; an expression is one side. None if it is anything else."""
    found = _parse_equations(everything(text).strip(), grouped=False)
    is_whole = len(found) == 1 and found[0].place.text == text.strip() and not found[0].denied
    return found[0].sides if is_whole else ()


def _parse_equations(text: Found, grouped: bool) -> list[Equation]:
    text, found = text.tail(MAX_CHARACTERS), list[Equation]()
    for run in _runs(text, grouped):
        at, parser = 0, _Parser(run)
        while at < len(run):
            parsed = parser.equation(at)
            if parsed is None:
                at += 1
                continue
            sides, end = parsed
            place = text.part(run[at].start, run[end - 1].end)
            denied = any(token.kind == "!" for token in run[at:end]) or _is_part(text.whole, place, run, at, end)
            found.append(Equation(tuple(sides), place, denied))
            at = end
    return found


def derivation(last: Equation, others: list[Equation], numbers: list[Fraction]) -> list[Equation] | None:
    """The equations that lead to `last` and use each number exactly once; None if there are none."""
    for left, taken in _spend(last, others, Counter(numbers), len(numbers)):
        if not +left:
            return taken
    return None


def _spend(
    equation: Equation, others: list[Equation], pool: Counter[Fraction], depth: int
) -> list[tuple[Counter[Fraction], list[Equation]]]:
    """The possible remainders of the pool after an equation, each with the equations that it depends on."""
    side = equation.working
    if side is None or not equation.holds or depth == 0:
        return []
    rest = [other for other in others if other is not equation]
    states: list[tuple[Counter[Fraction], list[Equation]]] = [(pool, [])]
    for leaf in side.leaves:
        results = list(dict.fromkeys(o for o in reversed(rest) if o.sides[0].value == leaf))[:MAX_DERIVATIONS]
        grown: list[tuple[Counter[Fraction], list[Equation]]] = []
        for left, taken in states:
            for number in {leaf, abs(leaf)}:  # -5 may be a result, or the number 5 with a sign
                if left[number] > 0:
                    grown.append((left - Counter([number]), taken))
            for other in results:
                deeper = _spend(other, rest, left, depth - 1)
                grown += [(after, [*taken, *more]) for after, more in deeper]
        states = grown[:MAX_DERIVATIONS]
    return [(left, [*taken, equation]) for left, taken in states]


def _is_part(text: str, place: Found, run: list[_Token], at: int, end: int) -> bool:
    """Whether an expression is part of something that this parser does not read: a power, a factorial, {2}{12}."""
    before = at > 0 and run[at - 1].kind in (")", "number") and run[at - 1].end == run[at].start
    after = end < len(run) and run[end].kind in ("(", "number") and run[end].start == run[end - 1].end
    powers = text[place.end : place.end + 1] in ("^", "!") or text[place.start - 1 : place.start] == "^"
    return before or after or powers


@dataclass(frozen=True)
class _Token:
    kind: str
    """number, frac, one of + - * / ( ) =, ! for unequal, or '' for a separator."""
    text: str
    start: int
    end: int
    touches: bool = False
    """Whether only \\left or \\right stands between this token and the one before it."""


_BULLET = r"(?:(?<=\n)|\A)[ \t]*(?:[-*\u2022]|\d{1,2}[.)])[ \t]+"
_IGNORED = (
    r"&|\\\\\s{0,9}(?=&?=)|\\left|\\right|\\[,;:! ]|\\quad|\\[()\[\]]|\$"
    r"|[ \t\u00a0`*]*\*\*[ \t]*|[ \t\u00a0`]+|\n[ \t\n]{0,9}(?=&?=)"
)
_TOKENS = (
    ("", _BULLET),
    ("", _IGNORED),
    ("frac", r"\\[dt]?frac"),
    ("number", r"\d{1,3}(?:\{,\}\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"),
    ("*", r"\\times|\\cdot|\\ast|\\?\*|[\u00d7\u00b7\u2715\u22c5\u2217\u2219\u2022]|(?<=[\d) ])[xX](?=[ ]?[\d(])"),
    ("/", r"\\div|[/\u00f7]"),
    ("-", r"[-\u2212\u2013]"),
    ("+", r"\+"),
    ("(", r"[({\[]"),
    (")", r"[)}\]]"),
    ("!", UNEQUAL),
    ("=", r"="),
)


def _pattern(grouped: bool) -> re.Pattern[str]:
    number = r"\d{1,3}(?:(?:,|\{,\})\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?"
    parts = [f"(?P<t{n}>{number if kind == 'number' and grouped else p})" for n, (kind, p) in enumerate(_TOKENS)]
    return lazy_pattern("|".join(parts))


_PLAIN, _GROUPED = _pattern(False), _pattern(True)


def _runs(text: Found, grouped: bool) -> list[list[_Token]]:
    """Runs of consecutive tokens, with only blanks between them."""
    runs: list[list[_Token]] = [[]]
    end, touches = 0, False
    for match in (_GROUPED if grouped else _PLAIN).finditer(text.text):
        number = int((match.lastgroup or "t0")[1:])
        if match.start() > end or number == 0:
            runs.append([])
        end = match.end()
        if number > 1 and len(runs[-1]) < MAX_TOKENS:
            runs[-1].append(_Token(_TOKENS[number][0], match[0], match.start(), match.end(), touches))
        touches = number > 1 or (touches and match[0] in ("\\left", "\\right"))
    return [run for run in runs if run]


class _Parser:
    """A recursive descent parser. Every method returns what it read and advances, or returns None.

    One parser reads a run from each of its tokens. It rejects a bracket that is never closed at once and reads each
    number once. Otherwise a text of many open brackets would be read to the full depth from each of them.
    """

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens, self.at = tokens, 0
        self.numbers: dict[int, Side] = {}
        self.closed, opened = set[int](), list[int]()
        """The positions of the opening brackets that are closed later."""
        for at, token in enumerate(tokens):
            if token.kind == "(":
                opened.append(at)
            elif token.kind == ")" and opened:
                self.closed.add(opened.pop())

    def equation(self, at: int) -> tuple[list[Side], int] | None:
        self.at = at
        first = self.sum(0)
        if first is None:
            return None
        sides, end = [first], self.at
        while self._take("=", "!"):
            side = self.sum(0)
            if side is None:
                break
            sides.append(side)
            end = self.at
        return sides, end

    def sum(self, depth: int) -> Side | None:
        side = self.product(depth)
        while side is not None and (sign := self._take("+", "-")):
            back = self.at - 1
            other = self.product(depth)
            if other is None:
                self.at = back
                return side
            value = side.value + other.value if sign == "+" else side.value - other.value
            side = Side(value, side.leaves + other.leaves, side.operations + other.operations + 1)
        return side

    def product(self, depth: int) -> Side | None:
        side = self.factor(depth)
        while side is not None:
            back = self.at
            sign = self._take("*", "/") or ("*" if self._multiplies() else None)
            other = self.factor(depth) if sign else None
            if other is None or (sign == "/" and other.value == 0):
                self.at = back
                return side
            value = side.value * other.value if sign == "*" else side.value / other.value
            side = Side(value, side.leaves + other.leaves, side.operations + other.operations + 1)
        return side

    def _multiplies(self) -> bool:
        """Whether a factor follows without a sign, as in 3(7) and (3)(7)."""
        if not 0 < self.at < len(self.tokens) or not self.tokens[self.at].touches:
            return False
        before, after = self.tokens[self.at - 1], self.tokens[self.at]
        return (after.text == "(" and before.kind in ("number", ")")) or (after.kind == "number" and before.text == ")")

    def factor(self, depth: int) -> Side | None:
        if depth > 30:
            return None
        start = self.at
        if start >= len(self.tokens):
            return None
        side: Side | None = None
        token = self.tokens[start]
        self.at += 1
        if token.kind == "number" and len(token.text) <= MAX_TOKENS:
            if start not in self.numbers:
                value = as_fraction(token.text)
                self.numbers[start] = Side(value, (value,), 0)
            side = self.numbers[start]
        elif token.kind == "-":
            inner = self.factor(depth + 1)
            if inner is not None:
                leaves = inner.leaves if inner.operations else (-inner.value,)
                side = Side(-inner.value, leaves, inner.operations)
        elif token.kind == "(" and start in self.closed:
            side = self.sum(depth + 1)
            side = side if side is not None and self._take(")") else None
        elif token.kind == "frac":
            over, under = self.factor(depth + 1), self.factor(depth + 1)
            if over is not None and under is not None and under.value != 0:
                operations = over.operations + under.operations + 1
                side = Side(over.value / under.value, over.leaves + under.leaves, operations)
        if side is None:
            self.at = start
        return side

    def _take(self, *kinds: str) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at].kind in kinds:
            self.at += 1
            return self.tokens[self.at - 1].kind
        return None
