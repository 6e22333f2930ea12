"""Whether the reasoning of an answer is sound: every equation holds and follows from what stands before it.

A right answer may stand under wrong reasoning: a sampler that commits several tokens in a step may write a result
without the sum that it belongs to. A sound answer has at least one equation, and

* all its equations are true;
* the numbers that an equation computes with are given in the problem, or are results of earlier equations;
* an equation with x is the one before it (the first: the problem's) after one operation: the same is added to both
  sides, or both are multiplied or divided by the same;
* its final answer is the result of the last equation.

It need not be right: an answer that reads "fewer" as "more" may compute soundly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from ...grade.arithmetic import Side, read_sides
from ...task import Grade, Span

UNKNOWN = "x"
BIG = Fraction(10**40)
"""The value of x while an equation is read: so large that only equal expressions have equal values."""
_SYMBOL = r"(?:\d+(?:\.\d+)?|(?<![A-Za-z])[a-z](?![A-Za-z])|[-+*/()=])"
_FORMULA = re.compile(rf"{_SYMBOL}(?: *{_SYMBOL})*")
_NAME = re.compile(rf"\A(?!{UNKNOWN})[a-z] *=")
"""A letter that gets a value, as in `b = 11 + 6 = 17`."""


class Formula(NamedTuple):
    """A text with an equals sign, and its place in the answer."""

    text: str
    span: Span

    @classmethod
    def all_in(cls, text: str) -> list[Formula]:
        return [cls(one[0], one.span()) for one in _FORMULA.finditer(text) if "=" in one[0]]

    @property
    def has_unknown(self) -> bool:
        return UNKNOWN in self.text

    @property
    def sides(self) -> tuple[Side, ...]:
        """The sides, without a letter that gets their value; none if they cannot be read."""
        return read_sides(_NAME.sub("", self.text).replace(UNKNOWN, f"({BIG})"))


class _Reader:
    """Reads the equations of an answer in order."""

    def __init__(self, problem: str, words: Iterable[int]) -> None:
        self.known = {*map(Fraction, re.findall(r"\d+", problem)), *map(Fraction, words)}
        self.result: Fraction | None = None
        """The result of the last equation; None if it has none, as 2x = 6."""
        self.before = next((one.sides for one in Formula.all_in(problem) if one.has_unknown), ())

    def fault(self, formula: Formula) -> str | None:
        """What is wrong with the next equation. If nothing is, its result is noted."""
        sides = formula.sides
        if not sides:
            return "cannot be read"
        return self._fault_in_step(sides) if formula.has_unknown else self._fault_in_sum(sides)

    def _fault_in_sum(self, sides: tuple[Side, ...]) -> str | None:
        """Of an equation without x."""
        if any(side.value != sides[0].value for side in sides):
            return "is false"
        has_result = len(sides) > 1 and not sides[-1].operations
        for number in (leaf for side in (sides[:-1] if has_result else sides) for leaf in side.leaves):
            if not {number, abs(number)} & self.known:  # -5 may be a result, or the number 5 with a sign
                return f"computes with {number}, which is neither given nor a result"
        self.result = sides[-1].value
        self.known.add(self.result)
        return None

    def _fault_in_step(self, sides: tuple[Side, ...]) -> str | None:
        """Of an equation with x."""
        if not _follows(self.before, sides):
            return "does not follow by one operation from the equation before it"
        is_solved = sides[0].value == BIG
        self.before, self.result = sides, sides[1].value if is_solved else None
        return None


def _follows(before: tuple[Side, ...], now: tuple[Side, ...]) -> bool:
    """Whether the same was added to both sides of an equation, or both were multiplied by the same."""
    if not len(before) == len(now) == 2:
        return False
    (a, b), (c, d) = ([side.value for side in sides] for sides in (before, now))
    return c - a == d - b or (a * d == b * c and bool(c or d))


def grade_reasoning(problem: str, text: str, answer: Span | None, words: Iterable[int] = ()) -> Grade:
    """Whether an answer is sound; if not, the span is that of the first equation that is not.

    `answer` is the place of the final answer. `words` are the numbers that the problem gives in words.
    """
    reader, formulas = _Reader(problem, words), Formula.all_in(text)
    for formula in formulas:
        fault = reader.fault(formula)
        if fault is not None:
            return Grade(False, formula.span, f"'{formula.text}' {fault}")
    if not formulas:
        return Grade(False, answer, "there is no equation")
    final = () if answer is None else read_sides(text[slice(*answer)])
    if not final or final[0].value != reader.result:
        return Grade(False, answer, "the final answer is not the result of the last equation")
    return Grade(True, answer, f"{len(formulas)} equations hold and follow")
