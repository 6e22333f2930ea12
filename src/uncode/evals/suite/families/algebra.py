"""Equations, expressions, letters and functions with worked steps (MATH500).

A kind of problem is a function, which returns None if a number of its solution is negative or too large. The small
model learns to add and subtract numbers in this range; most of its errors were sums with negative numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import final

from ...task import Grade, Grader
from ...tasks.gsm8k import Gsm8k
from ...tasks.gsm8k import Gsm8kProblem as NumberProblem
from ...tasks.math500 import MathProblem
from .family import Family
from .reasoning import grade_reasoning
from .story import MAX_NUMBER


@dataclass(frozen=True)
class Worked(MathProblem):
    steps: tuple[tuple[str, str], ...] = ()
    """Pairs of an operation and the resulting equation."""


@final
class MiniAlgebra(Family[Worked]):
    """All answers are whole numbers and are compared as numbers, without math-verify."""

    name = "mini_algebra"
    title = "MATH500 in miniature"
    benchmark = "math500"
    problem = Worked
    length = 112
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

    @property
    def graders(self) -> dict[str, Grader[Worked]]:
        return super().graders | {"sound": self.grade_reasoning}

    def grade_reasoning(self, example: Worked, text: str) -> Grade:
        return grade_reasoning(example.problem, text, self.grade_ours(example, text).span)


def _brackets(random: Random) -> Worked | None:
    """a(b(x + c) + d) = e."""
    a, b, x = random.randint(2, 5), random.randint(2, 5), random.randint(1, 40)
    c, d = (_nonzero(random, 40) for _ in range(2))
    inner = b * (x + c)
    if not _in_range(x + c, inner, inner + d, a * (inner + d)):
        return None
    steps = (
        (f"Divide by {a}", f"{b}(x {_signed(c)}) {_signed(d)} = {inner + d}"),
        (_moved(d), f"{b}(x {_signed(c)}) = {inner}"),
        (f"Divide by {b}", f"x {_signed(c)} = {x + c}"),
        (_moved(c), f"x = {x}"),
    )
    return Worked("", f"Solve for x: {a}({b}(x {_signed(c)}) {_signed(d)}) = {a * (inner + d)}", str(x), steps)


def _both_sides(random: Random) -> Worked | None:
    """a(x + b) + c = dx + e."""
    d, a = sorted(random.sample(range(2, 10), 2))
    x, b, c = random.randint(1, 40), random.randint(1, 20), _nonzero(random, 40)
    left, e = a * b + c, a * (x + b) + c - d * x
    if not _in_range(a * b, left, e):
        return None
    steps = [
        ("Expand", f"{a}x + {a * b} {_signed(c)} = {d}x {_signed(e)}"),
        (_adding(c), f"{a}x + {left} = {d}x {_signed(e)}"),
        (f"Subtract {d}x", f"{_times_x(a - d)} + {left} = {e}"),
        (_moved(left), f"{_times_x(a - d)} = {e - left}"),
    ]
    if a - d > 1:
        steps.append((f"Divide by {a - d}", f"x = {x}"))
    return Worked("", f"Solve for x: {a}(x + {b}) {_signed(c)} = {d}x {_signed(e)}", str(x), tuple(steps))


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


def _assigned(random: Random) -> Worked | None:
    """Each letter is defined by the one before it."""
    count = random.randint(4, 5)
    multiplied = random.sample(range(1, count), random.randint(1, 2))  # sums alone are guessed
    value, texts, steps = random.randint(3, 40), list[str](), list[tuple[str, str]]()
    texts.append(f"a = {value}")
    for number, (before, letter) in enumerate(itertools.pairwise("abcdef"[: count + 1])):
        if number in multiplied:
            factor = random.randint(2, 4)
            texts.append(f"{letter} = {factor}{before}")
            step, result = f"{factor} * {value}", factor * value
            operation = "Multiply"
        else:
            change = _nonzero(random, 40)
            texts.append(f"{letter} = {before} {_signed(change)}")
            step, result = f"{value} {_signed(change)}", value + change
            operation = _adding(change)
        if not _in_range(result):
            return None
        steps.append((operation, f"{letter} = {step} = {result}"))
        value = result
    asked = "abcdef"[count]
    return Worked("", f"Let {', '.join(texts[:-1])} and {texts[-1]}. Compute {asked}", str(value), tuple(steps))


def _composed(random: Random) -> Worked | None:
    """Three linear functions, one after the other."""
    x = random.randint(2, 9)
    functions = [(name, random.randint(2, 4), _nonzero(random, 20)) for name in "hgf"]
    value, steps = x, list[tuple[str, str]]()
    for _, factor, constant in functions:
        product, result = factor * value, factor * value + constant
        if not _in_range(product, result):
            return None
        steps.append(("Multiply", f"{factor} * {value} = {product}"))
        steps.append((_adding(constant), f"{product} {_signed(constant)} = {result}"))
        value = result
    h, g, f = (f"{name}(x) = {factor}x {_signed(constant)}" for name, factor, constant in functions)
    return Worked("", f"Let {f}, {g} and {h}. Compute f(g(h({x})))", str(value), tuple(steps))


KINDS: tuple[Callable[[Random], Worked | None], ...] = (_brackets, _both_sides, _expression, _assigned, _composed)


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
