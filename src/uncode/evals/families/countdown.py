"""Countdown with three numbers."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import final

from ..tasks.countdown import Puzzle
from .family import Family

MAX_NUMBER = 50
_SIGNS = "+-*/"


@dataclass(frozen=True)
class Derived(Puzzle):
    tries: tuple[str, ...] = ()
    """A chain of steps that misses the target, for answers in the style "search"."""


@final
class MiniCountdown(Family[Derived]):
    name = "mini_countdown"
    title = "Countdown in miniature"
    benchmark = "countdown"
    problem = Derived
    length = 88
    prompt_template = "Numbers: {{numbers}}\nTarget: {{target}}\nSolution:"
    styles = (("direct", 2), ("sentence", 3), ("search", 5))

    def draw(self, random: Random) -> Derived:
        while True:
            numbers = tuple(random.randint(1, MAX_NUMBER) for _ in range(3))
            chain, target = _chain(numbers, random)
            if chain and 0 < target <= 100 and target not in numbers:
                tries = [_chain(numbers, random) for _ in range(6)]
                missed = tuple(dict.fromkeys(c for c, value in tries if c and value != target))[:1]
                return Derived("", numbers, target, chain, missed)

    def key(self, example: Derived) -> str:
        return f"{sorted(example.numbers)} {example.target}"

    def response(self, example: Derived, style: str) -> str:
        answer = f"The answer is: {example.reference}"
        if style == "direct":
            return answer
        if style == "sentence":
            first, second = example.reference.split(",")
            return f"First {first}. Then {second}, which is the target. {answer}"
        misses = "".join(f"Try {tried}: not {example.target}. " for tried in example.tries)
        return f"{misses}Try {example.reference}: that is {example.target}. {answer}"


def _chain(numbers: tuple[int, ...], random: Random) -> tuple[str, int]:
    """Two random steps and their result. The chain is empty if a result is not a whole number from 1 to 999."""
    left, steps = list(numbers), []
    while len(left) > 1:
        random.shuffle(left)
        a, b = left.pop(), left.pop()
        sign = random.choice(_SIGNS)
        if sign == "-" and a < b:
            a, b = b, a
        value = _result(a, sign, b)
        if value is None or value <= 0 or value > 999:
            return "", 0
        steps.append(f"{a}{sign}{b}={value}")
        left.append(value)
    return ",".join(steps), left[0]


def _result(a: int, sign: str, b: int) -> int | None:
    if sign == "/":
        return a // b if b > 1 and a % b == 0 else None
    return {"+": a + b, "-": a - b, "*": a * b if min(a, b) > 1 else 0}[sign]
