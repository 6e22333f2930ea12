"""Generated Python functions over a list of numbers, for the two program families.

A function filters the numbers, maps them, and reduces them: "the sum of the squares of the even numbers".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

FILTERS = {
    "numbers": ("", 0),
    "even numbers": ("x % 2 == 0", 0),
    "odd numbers": ("x % 2 == 1", 0),
    "positive numbers": ("x > 0", 0),
    "negative numbers": ("x < 0", 0),
    "numbers above {k}": ("x > {k}", 15),
    "numbers below {k}": ("x < {k}", 15),
    "multiples of {k}": ("x % {k} == 0", 9),
}
"""Filters: the words, the condition, and the largest k."""
MAPS = {
    "": ("x", 0),
    "squares of the ": ("x * x", 0),
    "doubles of the ": ("2 * x", 0),
    "absolute values of the ": ("abs(x)", 0),
    "negatives of the ": ("-x", 0),
    "sums with {k} of the ": ("x + {k}", 20),
    "products with {k} of the ": ("x * {k}", 12),
}
REDUCTIONS = {
    "sum of": ("sum", "total", "0", "total += {value}"),
    "number of": ("len", "count", "0", "count += 1"),
    "largest of": ("max", "best", "None", "best = {value} if best is None else max(best, {value})"),
    "smallest of": ("min", "best", "None", "best = {value} if best is None else min(best, {value})"),
    "list of": ("list", "found", "[]", "found.append({value})"),
}
"""Reductions: the words, the builtin, and the variable, the start and the step of the loop."""
_NUMBERS, _COUNTS = range(-20, 21), range(4, 9)
NAMES = ("solve", "compute", "find", "answer", "result", "work_out", "evaluate", "get_value")


@dataclass(frozen=True)
class Function:
    """A function in words, as an expression and as a loop, with its tests."""

    name: str
    words: str
    short: str
    loop: str
    tests: tuple[str, ...]


def draw_function(random: Random) -> Function:
    words, (condition, limit) = random.choice(list(FILTERS.items()))
    join, (builtin, variable, begin, step) = random.choice(list(REDUCTIONS.items()))
    change, (value, largest) = random.choice(list(MAPS.items())) if builtin != "len" else ("", MAPS[""])
    words, condition = _with(words, condition, random.randint(2, limit) if limit else 0)
    change, value = _with(change, value, random.randint(2, largest) if largest else 0)
    kept = f" if {condition}" if condition else ""
    listed = f"[{value} for x in xs{kept}]"
    short = f"    return {listed}\n" if builtin == "list" else f"    return {builtin}({listed})\n"
    inside = f"        if {condition}:\n            {step}\n" if condition else f"        {step}\n"
    loop = f"    {variable} = {begin}\n    for x in xs:\n{inside.format(value=value)}    return {variable}\n"
    name = random.choice(NAMES)
    return Function(name, f"{join} the {change}{words} in xs", short, loop, _tests(name, short, random))


def _with(words: str, code: str, k: int) -> tuple[str, str]:
    return words.replace("{k}", str(k)), code.replace("{k}", str(k))


def _tests(name: str, body: str, random: Random) -> tuple[str, ...]:
    """Test calls with their results. Lists without a largest or smallest number are skipped."""
    function, tests = _compiled(body), list[str]()
    draw = random.choice  # draws from a range as randint does, in half the time
    while len(tests) < 4:
        numbers = [draw(_NUMBERS) for _ in range(draw(_COUNTS))]
        try:
            tests.append(f"assert {name}({numbers}) == {function(numbers)!r}")
        except ValueError:
            continue
    return tuple(tests)


@cache
def _compiled(body: str) -> Callable[[list[int]], object]:
    """The compiled function of a body. It is cached: a few thousand bodies are drawn a hundred thousand times."""
    space: dict[str, Callable[[list[int]], object]] = {}
    exec(f"def function(xs):\n{body}", space)  # the code comes from the tables above
    return space["function"]
