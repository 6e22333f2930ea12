"""Countdown with three numbers. No answer tries anything: a first step without a plan is wrong."""

from __future__ import annotations

from random import Random
from typing import final

from ...tasks.countdown import CountdownPuzzle
from .family import Family

MAX_NUMBER, MAX_TARGET = 40, 100
_SIGNS = "+-*/"


@final
class MiniCountdown(Family[CountdownPuzzle]):
    name = "mini_countdown"
    title = "Countdown in miniature"
    benchmark = "countdown"
    problem = CountdownPuzzle
    length = 64
    prompt_template = "Numbers: {{numbers}}\nTarget: {{target}}\nSolution:"
    styles = (("direct", 5), ("sentence", 5))

    def draw(self, random: Random) -> CountdownPuzzle:
        while True:
            numbers = tuple(random.randint(1, MAX_NUMBER) for _ in range(3))
            chain, target = _chain(numbers, random)
            if chain and 0 < target <= MAX_TARGET and target not in numbers:
                return CountdownPuzzle("", numbers, target, chain)

    def key(self, example: CountdownPuzzle) -> str:
        return f"{sorted(example.numbers)} {example.target}"

    def response(self, example: CountdownPuzzle, style: str) -> str:
        answer = f"The answer is: {example.reference}"
        if style == "direct":
            return f" {answer}"
        first, second = example.reference.split(",")
        return f" First {first}. Then {second}, which is the target. {answer}"


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
