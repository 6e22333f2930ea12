"""Published answers of other projects as examples of our tasks: lines of {"question", "output", "gold"}.

d1 (Zhao et al., 2025; Apache-2.0) publishes LLaDA's answers to four of the tasks in this format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from ..core.errors import require
from .task import Example
from .tasks.countdown import Puzzle as CountdownPuzzle
from .tasks.gsm8k import Problem as Gsm8kProblem
from .tasks.math500 import Problem as MathProblem
from .tasks.sudoku import Puzzle as SudokuPuzzle

SPECIAL = re.compile(r"<\|(?:eot_id|endoftext|im_end|startoftext|start_header_id|end_header_id)\|>")


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
    require(task in _READERS, f"answers of this format are known of {', '.join(_READERS)}, not of '{task}'.")
    kind, read = _READERS[task]
    if gold is None:
        raise ValueError("it has no gold answer; give the benchmark's data as `data=DIR`")
    if not isinstance(gold, kind):
        raise ValueError(f"its gold {gold!r} is not that of {task}")
    return read(f"d1/{number}", question, gold)


def by_question(examples: Sequence[Example]) -> dict[str, Example]:
    """The examples by the text of their problem."""
    found = {}
    for example in examples:
        text = getattr(example, "question", None) or getattr(example, "problem", None)
        if text is not None:
            found[text.strip()] = example
    return found


def final_text(output: str) -> str:
    """The answer up to its first special token."""
    found = SPECIAL.search(output)
    return output[: found.start()] if found else output


def released_text(output: str) -> str:
    """The answer as the released code reads it: without special tokens, with the text after them."""
    return SPECIAL.sub("", output)


def _gsm8k(name: str, question: str, gold: Any) -> Example:
    value = Fraction(str(gold))
    return Gsm8kProblem(name, question, str(value) if value.denominator == 1 else str(gold))


def _math(name: str, question: str, gold: Any) -> Example:
    return MathProblem(name, question, gold)


def _countdown(name: str, question: str, gold: Any) -> Example:
    numbers, target = gold
    return CountdownPuzzle(name, tuple(numbers), target, first_derivation(numbers, target))


def _sudoku(name: str, question: str, gold: Any) -> Example:
    clues = re.search(r"\d{16}", question)
    if clues is None:
        raise ValueError("the question holds no puzzle of sixteen digits")
    return SudokuPuzzle(name, clues[0], gold)


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


_READERS: dict[str, tuple[Any, Callable[[str, str, Any], Example]]] = {
    "gsm8k": ((int, float), _gsm8k),
    "math500": (str, _math),
    "countdown": (list, _countdown),
    "sudoku": (str, _sudoku),
}
"""For each task the type of its gold answers, and a function that builds an example."""
