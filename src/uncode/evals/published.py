"""Published answers of other projects as examples of our tasks: lines of {"question", "output", "gold"}.

d1 (Zhao et al., 2025; Apache-2.0) publishes LLaDA's answers to four of the tasks in this format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from ..core.errors import require
from .task import Example
from .tasks.countdown import CountdownPuzzle
from .tasks.gpqa import GpqaQuestion
from .tasks.gsm8k import Gsm8kProblem
from .tasks.math500 import MathProblem
from .tasks.sudoku import SudokuPuzzle

SPECIAL = re.compile(r"<\|(?:eot_id|endoftext|im_end|startoftext|start_header_id|end_header_id)\|>")
_GOLD = {"gsm8k": (int, float), "math500": (str,), "countdown": (list,), "sudoku": (str,)}
"""For each task the types of its gold answers."""


def example_of(task: str, row: Mapping[str, Any], number: int, known: Mapping[str, Example]) -> Example:
    """The problem of a published answer: from the benchmark's data if it is `known`, else from the row itself.

    Raises ValueError if the row cannot be used; the caller adds the line number. d1's files have no gold answer where
    it is negative (two problems of GSM8K). These need the benchmark's data.
    """
    question, gold = row["question"].strip(), row["gold"]
    if known:
        if question not in known:
            raise ValueError("the data does not hold its question")
        return known[question]
    require(task in _GOLD, f"answers of this format are known of {', '.join(_GOLD)}, not of '{task}'.")
    if gold is None:
        raise ValueError("it has no gold answer; give the benchmark's data as `data=DIR`")
    if type(gold) not in _GOLD[task]:
        raise ValueError(f"its gold {gold!r} is not that of {task}")
    name = f"d1/{number}"
    if task == "gsm8k":
        value = Fraction(str(gold))
        return Gsm8kProblem(name, question, str(value) if value.denominator == 1 else str(gold))
    if task == "math500":
        return MathProblem(name, question, gold)
    if task == "countdown":
        numbers, target = gold
        return CountdownPuzzle(name, tuple(numbers), target, first_derivation(numbers, target))
    clues = re.search(r"\d{16}", question)
    if clues is None:
        raise ValueError("the question holds no puzzle of sixteen digits")
    return SudokuPuzzle(name, clues[0], gold)


def by_question(examples: Sequence[Example]) -> dict[str, Example]:
    """The examples by the text of their problem."""
    found = dict[str, Example]()
    for example in examples:
        if isinstance(example, Gsm8kProblem | GpqaQuestion):
            found[example.question.strip()] = example
        elif isinstance(example, MathProblem):
            found[example.problem.strip()] = example
    return found


def final_text(output: str) -> str:
    """The answer up to its first special token."""
    found = SPECIAL.search(output)
    return output[: found.start()] if found else output


def released_text(output: str) -> str:
    """The answer as the released code reads it: without special tokens, with the text after them."""
    return SPECIAL.sub("", output)


def first_derivation(numbers: list[int], target: int) -> str:
    """A reference derivation in the style of the data (a+b=c,c*d=e), which the published answers do not include.

    It is the first one found. "(none)" if the target cannot be reached.
    """

    def search(left: list[Fraction]) -> list[str] | None:
        if len(left) == 1:
            return [] if left[0] == target else None
        for i, a in enumerate(left):
            for j, b in enumerate(left):
                for sign in "+-*/" if i != j else "":
                    if (sign in "+*" and i > j) or (sign == "/" and b == 0):
                        continue
                    value = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else a}[sign]
                    rest = [c for k, c in enumerate(left) if k not in (i, j)]
                    if value >= 0 and value.denominator == 1 and (more := search([*rest, value])) is not None:
                        return [f"{a}{sign}{b}={value}", *more]
        return None

    return ",".join(search([Fraction(n) for n in numbers]) or ["(none)"])
