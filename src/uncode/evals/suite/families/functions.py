"""Generated Python functions over lists of numbers, for the two program families.

A function takes numbers from a source, filters them, maps them and reduces them: "the sum of the scores of the even
numbers above k in xs". A score is a second function: it has a branch, or it is given by two of its values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

KINDS = {
    "numbers": "",
    "even numbers": "x % 2 == 0",
    "odd numbers": "x % 2 == 1",
    "positive numbers": "x > 0",
    "negative numbers": "x < 0",
    "multiples of {k}": "x % {k} == 0",
}
"""Kinds of numbers: the words and the condition."""
BOUNDS = {
    " above {k}": "x > {k}",
    " below {k}": "x < {k}",
    " of at least {k}": "x >= {k}",
    " of at most {k}": "x <= {k}",
    " other than {k}": "x != {k}",
    " from {k} to {m}": "{k} <= x <= {m}",
}
MAPS = {
    "squares of the ": "x * x",
    "doubles of the ": "2 * x",
    "absolute values of the ": "abs(x)",
    "sums with {k} of the ": "x + {k}",
    "products with {k} of the ": "x * {k}",
}
REDUCTIONS = {
    "sum of": ("sum", "total", "0", "total += {value}"),
    "number of": ("len", "count", "0", "count += 1"),
    "largest of": ("max", "best", "None", "best = {value} if best is None else max(best, {value})"),
    "smallest of": ("min", "best", "None", "best = {value} if best is None else min(best, {value})"),
    "list of": ("list", "found", "[]", "found.append({value})"),
}
"""Reductions: the words, the builtin, and the variable, the start and the step of the loop."""
SOURCES = {
    "in xs": "xs",
    "in xs or ys": "xs + ys",
    "among the first {n} numbers of xs": "xs[:{n}]",
    "among the last {n} numbers of xs": "xs[-{n}:]",
    "in xs without its first {n} numbers": "xs[{n}:]",
    "at even places of xs": "xs[::2]",
}
CASES = ("even", "odd", "negative", "above {k}", "below {k}")
_CASE_CODE = {"even": "x % 2 == 0", "odd": "x % 2 == 1", "negative": "x < 0", "above": "x > {k}", "below": "x < {k}"}
_NUMBERS, _COUNTS = range(-20, 21), range(4, 8)
NAMES = ("solve", "compute", "find", "answer", "result", "work_out", "evaluate", "get_value")


@dataclass(frozen=True)
class Function:
    """A function in words, as an expression and as a loop, with its tests."""

    name: str
    arguments: str
    words: str
    short: str
    loop: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class _Value:
    """What is computed from each number: in words before the numbers, as code, and the second function."""

    words: str
    code: str
    sentence: str = ""
    short: str = ""
    long: str = ""


def draw_function(random: Random) -> Function:
    join, (builtin, variable, begin, step) = random.choice(list(REDUCTIONS.items()))
    value = _Value("", "x") if builtin == "len" else _value(random)
    words, condition = _filter(random)
    place, source = _source(random)
    default = random.choice(("0", "-1", "None")) if variable == "best" else ""
    fallback = f", or {default} if there are none" if default else ""
    kept = f" if {condition}" if condition else ""
    listed = f"[{value.code} for x in {source}{kept}]"
    whole = {"list": listed, "max": f"max({listed}, default={default})", "min": f"min({listed}, default={default})"}
    short = f"{value.short}    return {whole.get(builtin, f'{builtin}({listed})')}\n"
    inside = f"        if {condition}:\n            {step}\n" if condition else f"        {step}\n"
    end = f"{default} if best is None else best" if default else variable
    loop = f"    {variable} = {begin}\n    for x in {source}:\n{inside.format(value=value.code)}    return {end}\n"
    said = f"{join} the {value.words}{words} {place}{fallback}{value.sentence}"
    arguments = ", ".join(["xs", *(name for name in ("ys", "k") if re.search(rf"\b{name}\b", said))])
    name = random.choice(NAMES)
    return Function(name, arguments, said, short, value.long + loop, _tests(name, arguments, short, random))


def _source(random: Random) -> tuple[str, str]:
    words, code = random.choice(list(SOURCES.items()))
    n = str(random.randint(2, 5))
    return words.replace("{n}", n), code.replace("{n}", n)


def _filter(random: Random) -> tuple[str, str]:
    """Words and condition of a kind of numbers, a bound, or both."""
    kind, first = random.choice(list(KINDS.items()))
    factor = str(random.randint(3, 9))
    kind, first = kind.replace("{k}", factor), first.replace("{k}", factor)
    if random.random() < 0.4:
        return kind, first
    bound, second = random.choice(list(BOUNDS.items()))
    low = "k" if "{m}" not in bound and random.random() < 0.4 else str(random.randint(-9, 12))
    high = str(random.randint(13, 19))
    bound, second = (part.replace("{k}", low).replace("{m}", high) for part in (bound, second))
    if not first:
        return kind + bound, second
    if random.random() < 0.3:
        return f"{kind} and the numbers{bound}", f"{first} or {second}"
    return kind + bound, f"{first} and {second}"


def _value(random: Random) -> _Value:
    kind = random.choice(("same", "map", "branch", "linear", "linear"))
    if kind == "same":
        return _Value("", "x")
    if kind == "map":
        words, code = random.choice(list(MAPS.items()))
        k = str(random.randint(2, 12))
        return _Value(words.replace("{k}", k), code.replace("{k}", k))
    return _branch(random) if kind == "branch" else _linear(random)


def _branch(random: Random) -> _Value:
    """A score with two cases."""
    case, k = random.choice(CASES), str(random.randint(2, 12))
    condition = _CASE_CODE[case.split()[0]].replace("{k}", k)
    one, two = random.sample(("x + {a}", "x - {a}", "{a} * x", "x * x", "-x", "{a}"), 2)
    one, two = (part.replace("{a}", str(random.randint(2, 12))) for part in (one, two))
    sentence = f". The score of x is {one} if x is {case.replace('{k}', k)}, and {two} otherwise"
    short = f"    def score(x):\n        return {one} if {condition} else {two}\n"
    long = f"    def score(x):\n        if {condition}:\n            return {one}\n        return {two}\n"
    return _Value("scores of the ", "score(x)", sentence, short, long)


def _linear(random: Random) -> _Value:
    """A linear score, given by two of its values: slope and intercept must be worked out."""
    slope, start = random.randint(2, 9), random.randint(-15, 15)
    p = random.randint(0, 9)
    q = p + random.randint(1, 4)
    rule = f"{slope} * x" + (f" {'+' if start > 0 else '-'} {abs(start)}" if start else "")
    sentence = f". The score is linear: {slope * p + start} for {p} and {slope * q + start} for {q}"
    code = f"    def score(x):\n        return {rule}\n"
    return _Value("scores of the ", "score(x)", sentence, code, code)


def _tests(name: str, arguments: str, body: str, random: Random) -> tuple[str, ...]:
    """Test calls with their results: random lists, numbers near the constants of the function, an empty list."""
    function, lists = _compiled(arguments, body), arguments.count("s")
    draw = random.choice  # draws from a range as randint does, in half the time
    near = sorted({int(n) + d for n in re.findall(r"\d+", body) for d in (-1, 0, 1)} | {-1, 0, 1})
    tests = []
    for kind in range(5):
        pool, counts = (near if kind == 3 else _NUMBERS), _COUNTS
        given: list[object] = [[draw(pool) for _ in range(draw(counts) if kind < 4 else 0)] for _ in range(lists)]
        if arguments.endswith("k"):
            given.append(draw(range(-9, 13)))
            if kind == 3:
                given[0] += [given[-1]] * 2  # type: ignore[operator]
        called = ", ".join(map(repr, given))
        tests.append(f"assert {name}({called}) == {function(*given)!r}")
    return tuple(tests)


def _compiled(arguments: str, body: str) -> Callable[..., object]:
    space: dict[str, Callable[..., object]] = {}
    exec(f"def function({arguments}):\n{body}", space)  # the code comes from the tables above
    return space["function"]
