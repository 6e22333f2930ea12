"""Linear equations and sums with worked steps (MATH500)."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import final

from ..task import Grade
from ..tasks.gsm8k import Gsm8k
from ..tasks.gsm8k import Problem as NumberProblem
from ..tasks.math500 import Problem
from .family import Family


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
    length = 80
    prompt_template = "Problem: {{problem}}\nSolution:"
    styles = (("direct", 3), ("terse", 2), ("sentences", 5))
    direct = "The answer is \\boxed{"

    def draw(self, random: Random) -> Worked:
        return random.choice((_linear, _both_sides, _chain))(random)

    def response(self, example: Worked, style: str) -> str:
        box = f"\\boxed{{{example.answer}}}"
        if style == "direct":
            return f"The answer is {box}."
        if style == "terse":
            return "\n".join([*(given for _, given in example.steps), box])
        return " ".join([*(f"{done}: {given}." for done, given in example.steps), f"So the answer is {box}."])

    def grade_ours(self, example: Worked, text: str) -> Grade:
        return Gsm8k().grade_ours(NumberProblem(example.id, example.problem, example.answer), text)


def _linear(random: Random) -> Worked:
    a, x, b = random.randint(2, 9), random.randint(-9, 9), random.randint(1, 20) * random.choice((-1, 1))
    c = a * x + b
    steps = ((f"{'Subtract' if b > 0 else 'Add'} {abs(b)}", f"{a}x = {c - b}"), (f"Divide by {a}", f"x = {x}"))
    return Worked("", f"Solve for x: {a}x {_signed(b)} = {c}", str(x), steps)


def _both_sides(random: Random) -> Worked:
    a, c = random.sample(range(2, 10), 2)
    a, c = max(a, c), min(a, c)
    x, b = random.randint(-9, 9), random.randint(1, 20) * random.choice((-1, 1))
    d = (a - c) * x + b
    steps = (
        (f"Subtract {c}x", f"{a - c}x {_signed(b)} = {d}"),
        (f"{'Subtract' if b > 0 else 'Add'} {abs(b)}", f"{a - c}x = {d - b}"),
        (f"Divide by {a - c}", f"x = {x}"),
    )
    return Worked("", f"Solve for x: {a}x {_signed(b)} = {c}x {_signed(d)}", str(x), steps[: 3 if a - c > 1 else 2])


def _chain(random: Random) -> Worked:
    terms = [random.randint(2, 30) for _ in range(random.randint(3, 5))]
    value, steps, text = terms[0], [], str(terms[0])
    for term in terms[1:]:
        sign = random.choice("+-") if term <= value else "+"  # no result is below zero
        text += f" {sign} {term}"
        result = value + term if sign == "+" else value - term
        steps.append(("Add" if sign == "+" else "Subtract", f"{value} {sign} {term} = {result}"))
        value = result
    return Worked("", f"Compute {text}", str(value), tuple(steps))


def _signed(number: int) -> str:
    return f"{'+' if number >= 0 else '-'} {abs(number)}"
