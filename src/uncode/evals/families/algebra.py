"""Equations, expressions and functions with worked steps (MATH500).

A kind of problem is a function, which returns None if a number of its solution is negative or too large. The small
model learns to add and subtract numbers in this range; most of its errors were sums with negative numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import final

from ..task import Grade
from ..tasks.gsm8k import Gsm8k
from ..tasks.gsm8k import Problem as NumberProblem
from ..tasks.math500 import Problem
from .family import Family
from .story_scenes import MAX_NUMBER


@dataclass(frozen=True)
class Worked(Problem):
    steps: tuple[tuple[str, str], ...] = ()
    """Pairs of an operation and the resulting equation."""


@final
class MiniAlgebra(Family[Worked]):
    """All answers are whole numbers and are compared as numbers, without math-verify."""

    name = "mini_algebra"
    title = "MATH500 in miniature"
    benchmark = "math500"
    problem = Worked
    length = 96
    prompt_template = "Problem: {{problem}}\nSolution:"
    styles = (("direct", 1), ("terse", 4), ("sentences", 5))
    direct = " The answer is \\boxed{"

    def draw(self, random: Random) -> Worked:
        draw, problem = random.choice(KINDS), None  # chosen once, so that every kind is drawn as often
        while problem is None:
            problem = draw(random)
        return problem

    def response(self, example: Worked, style: str) -> str:
        box = f"\\boxed{{{example.answer}}}"
        if style == "direct":
            return f" The answer is {box}."
        if style == "terse":
            return " " + "\n".join([*(given for _, given in example.steps), box])
        return " " + " ".join([*(f"{done}: {given}." for done, given in example.steps), f"So the answer is {box}."])

    def grade_ours(self, example: Worked, text: str) -> Grade:
        return Gsm8k().grade_ours(NumberProblem(example.id, example.problem, example.answer), text)


def _brackets(random: Random) -> Worked | None:
    """a(x + b) + c = d."""
    a, x = random.randint(2, 9), random.randint(1, 40)
    b, c = (_nonzero(random, 40) for _ in range(2))
    d = a * (x + b) + c
    if not _in_range(x + b, d - c, d):
        return None
    steps = (
        (_moved(c), f"{a}(x {_signed(b)}) = {d - c}"),
        (f"Divide by {a}", f"x {_signed(b)} = {x + b}"),
        (_moved(b), f"x = {x}"),
    )
    return Worked("", f"Solve for x: {a}(x {_signed(b)}) {_signed(c)} = {d}", str(x), steps)


def _both_sides(random: Random) -> Worked | None:
    """a(x + b) = cx + d."""
    c, a = sorted(random.sample(range(2, 10), 2))
    x, b = random.randint(1, 40), _nonzero(random, 20)
    d = a * (x + b) - c * x
    if not _in_range(d, a * abs(b), d - a * b):
        return None
    steps = [
        ("Expand", f"{a}x {_signed(a * b)} = {c}x {_signed(d)}"),
        (f"Subtract {c}x", f"{_times_x(a - c)} {_signed(a * b)} = {d}"),
        (_moved(a * b), f"{_times_x(a - c)} = {d - a * b}"),
    ]
    if a - c > 1:
        steps.append((f"Divide by {a - c}", f"x = {x}"))
    return Worked("", f"Solve for x: {a}(x {_signed(b)}) = {c}x {_signed(d)}", str(x), tuple(steps))


def _expression(random: Random) -> Worked | None:
    """Sums of numbers and products: the products first, then from left to right."""
    terms = [
        (random.randint(2, 9), random.randint(2, 9)) if random.random() < 0.4 else (random.randint(5, 60),)
        for _ in range(4)
    ]
    values = [term[0] * term[1] if len(term) == 2 else term[0] for term in terms]
    steps = [("Multiply", f"{term[0]} * {term[1]} = {term[0] * term[1]}") for term in terms if len(term) == 2]
    text, value = " * ".join(map(str, terms[0])), values[0]
    for term, part in zip(terms[1:], values[1:], strict=True):
        sign = random.choice("+-")
        text += f" {sign} {' * '.join(map(str, term))}"
        result = value + part if sign == "+" else value - part
        if not _in_range(result):
            return None
        steps.append((_adding(result - value), f"{value} {sign} {part} = {result}"))
        value = result
    return Worked("", f"Compute {text}", str(value), tuple(steps))


def _polynomial(random: Random) -> Worked | None:
    """The value of a quadratic polynomial."""
    a, x = random.randint(2, 9), random.randint(2, 9)
    b, c = random.choice((-1, 1)) * random.randint(2, 20), _nonzero(random, 60)
    square, first, second = x * x, a * x * x, b * x
    if not _in_range(first, abs(second), first + second, first + second + c):
        return None
    steps = (
        ("Square", f"{x}^2 = {square}"),
        ("Multiply", f"{a} * {square} = {first}"),
        ("Multiply", f"{b} * {x} = {second}"),
        (_adding(second), f"{first} {_signed(second)} = {first + second}"),
        (_adding(c), f"{first + second} {_signed(c)} = {first + second + c}"),
    )
    problem = f"Let f(x) = {a}x^2 {_signed(b)}x {_signed(c)}. Compute f({x})"
    return Worked("", problem, str(first + second + c), steps)


def _composed(random: Random) -> Worked | None:
    """Two linear functions, one after the other."""
    a, c, x = random.randint(2, 5), random.randint(2, 9), random.randint(2, 12)
    b, d = (_nonzero(random, 40) for _ in range(2))
    inner = c * x + d
    outer = a * inner + b
    if not _in_range(inner, a * inner, outer):
        return None
    steps = (
        ("Multiply", f"{c} * {x} = {c * x}"),
        (_adding(d), f"g({x}) = {c * x} {_signed(d)} = {inner}"),
        ("Multiply", f"{a} * {inner} = {a * inner}"),
        (_adding(b), f"f({inner}) = {a * inner} {_signed(b)} = {outer}"),
    )
    problem = f"Let f(x) = {a}x {_signed(b)} and g(x) = {c}x {_signed(d)}. Compute f(g({x}))"
    return Worked("", problem, str(outer), steps)


KINDS: tuple[Callable[[Random], Worked | None], ...] = (_brackets, _both_sides, _expression, _polynomial, _composed)


def _in_range(*numbers: int) -> bool:
    return all(0 <= number <= MAX_NUMBER for number in numbers)


def _nonzero(random: Random, largest: int) -> int:
    return random.randint(1, largest) * random.choice((-1, 1))


def _moved(number: int) -> str:
    """The operation that takes a number away from both sides."""
    return f"{'Subtract' if number > 0 else 'Add'} {abs(number)}"


def _adding(number: int) -> str:
    return "Add" if number >= 0 else "Subtract"


def _times_x(factor: int) -> str:
    return "x" if factor == 1 else f"{factor}x"


def _signed(number: int) -> str:
    return f"{'+' if number >= 0 else '-'} {abs(number)}"
