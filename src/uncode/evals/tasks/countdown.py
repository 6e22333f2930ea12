"""Countdown: reach a target with three numbers and + - * / (Gandhi et al., 2024; cd3 of Ye et al., 2025)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from ..data import DataSource, Fields
from ..grade.arithmetic import Equation, derivation, equations
from ..grade.claims import abandons, falls_short, says_unsolvable
from ..grade.find import Found, before_next, boxed, closed, fenced, first_of, gives_up, sentence_of, stated, tagged
from ..task import Example, Grade, Task, TaskSettings


@dataclass(frozen=True)
class CountdownPuzzle(Example):
    numbers: tuple[int, ...]
    target: int
    reference: str
    """One of many derivations: the one that the released rule looks for."""


@final
class Countdown(Task[CountdownPuzzle]):
    """Our rule accepts any derivation, as one expression or as a chain of equations. Values are exact."""

    name = "countdown"
    title = "Countdown"
    source = DataSource("countdown.jsonl", sha256="4edbeafdb36ba65a3889e6cd8d7a1a50a3fc51a317bd397c769d5001950e9358")
    settings = TaskSettings(shots=3, length=128, rate=0.5, chat=True, block_length=32)
    format = r"[\s\S]*The answer is: [0-9]+[-+*/][0-9]+=[0-9]+,[0-9]+[-+*/][0-9]+=[0-9]+"

    def read(self, row: Fields, number: int) -> CountdownPuzzle:
        *numbers, target = (int(part) for part in row["input"].split(","))
        return CountdownPuzzle(f"countdown/{number}", tuple(numbers), target, row["output"])

    def placeholders(self, example: CountdownPuzzle) -> dict[str, str]:
        return {"numbers": ",".join(map(str, example.numbers)), "target": str(example.target)}

    def grade_ours(self, example: CountdownPuzzle, text: str) -> Grade:
        before = before_next(text, "Numbers:", lambda part: bool(equations(part)))
        verdicts = [
            verdict
            for region in _regions(before, example.target)
            for grouped in (False, True)
            if (verdict := _grade(example, region, grouped)) is not None
        ]
        right = next((verdict for verdict in verdicts if verdict.correct), None)
        return right or (verdicts[0] if verdicts else Grade(False, None, "there is no expression"))

    def grade_as_released(self, example: CountdownPuzzle, text: str) -> Grade:
        """The reference derivation must occur in the text, character by character."""
        at = text.find(example.reference)
        if at < 0:
            return Grade(False, None, f"{example.reference} does not occur")
        return Grade(True, (at, at + len(example.reference)), f"{example.reference} occurs")


def _regions(text: Found, target: int) -> list[Found]:
    """The places where the answer may be: a marked part, or the whole text without a mark.

    If a mark holds only the target, the derivation is the text before it. A stated answer may continue over several
    lines, so it has two readings.
    """
    for finder in (tagged, boxed, closed, stated, fenced):
        found = first_of([finder], text)
        if found is None:
            continue
        if finder is not closed and gives_up(found):
            return [sentence_of(found)]
        if not equations(found) and str(target) in re.findall(r"\d+", found.text):
            return [text.part(0, found.start)]
        return [found, found.part(0, len(text.text) - found.start)] if finder is stated else [found]
    return [text]


def _grade(example: CountdownPuzzle, region: Found, grouped: bool) -> Grade | None:
    """Grade the last expression that reaches the target. Later equations may only explain its numbers."""
    every = equations(region, grouped)
    if not every:
        return None
    found = [equation for equation in every if not equation.rejected]
    end = Found(region.whole, every[-1].place.end, region.end)
    if not found or says_unsolvable(end.text) or abandons(end.text):
        return Grade(False, every[-1].place.span, f"{every[-1].place.text} is denied or given up")
    reaching = [e for e in found if e.holds and e.sides[0].value == example.target]
    reaching = [e for e in reaching if not falls_short(e.place.whole, e.place.end)]
    if not reaching:
        return _wrong(found[-1], example)
    last = reaching[-1]
    steps = derivation(last, _attempt(last, found), [Fraction(n) for n in example.numbers])
    numbers = ", ".join(map(str, example.numbers))
    if steps is None:
        return Grade(False, last.place.span, f"{last.place.text} does not use {numbers} once each")
    after = [equation for equation in found if equation.place.start > last.place.start]
    if any(later not in steps for later in after):
        return _wrong(after[-1], example)
    span = min(s.place.start for s in steps), max(s.place.end for s in steps)
    return Grade(True, span, f"reaches {example.target} with {numbers}")


def _attempt(last: Equation, found: list[Equation]) -> list[Equation]:
    """The equations of the attempt that `last` belongs to, and later ones. Abandoned attempts do not count."""
    before = [equation for equation in found if equation.place.start <= last.place.start]
    for n in range(len(before) - 1, 0, -1):
        if abandons(last.place.whole[before[n - 1].place.end : before[n].place.start]):
            return found[n:]
    return found


def _wrong(equation: Equation, example: CountdownPuzzle) -> Grade:
    why = f"does not reach {example.target}" if equation.holds else "does not hold"
    return Grade(False, equation.place.span, f"{equation.place.text} {why}")
