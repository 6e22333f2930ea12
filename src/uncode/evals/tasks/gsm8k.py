"""GSM8K: grade-school word problems with a number for an answer (Cobbe et al., 2021)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from ..data import Source
from ..grade.find import Found, boxed, everything, first_of, stated, tagged
from ..grade.numbers import as_fraction, numbers, only_number
from ..task import Example, Grade, Grader, Settings, Task


@dataclass(frozen=True)
class Problem(Example):
    question: str
    answer: str
    """The number, as the data writes it."""

    @property
    def value(self) -> Fraction:
        return as_fraction(self.answer) * (-1 if self.answer.startswith("-") else 1)


@final
class Gsm8k(Task[Problem]):
    """Our rule takes the marked number (`####`, tags, box, "the answer is"), else the last; as exact values."""

    name = "gsm8k"
    title = "GSM8K"
    source = Source("gsm8k.jsonl", "openai/gsm8k", "main")
    settings = Settings(shots=4, length=256, rate=0.25, chat=False, block_length=32)
    stops = ("Question:",)

    def read(self, row: Mapping[str, Any], number: int) -> Problem:
        return Problem(f"gsm8k/{number}", row["question"], row["answer"].split("####")[1].strip())

    def blanks(self, example: Problem) -> dict[str, str]:
        return {"question": example.question}

    @property
    def graders(self) -> dict[str, Grader[Problem]]:
        return super().graders | {"strict": self.strict, "paper_strict": self.paper_strict}

    def ours(self, example: Problem, text: str) -> Grade:
        region = answer_of(everything(text))
        if region is None:
            return Grade(False, None, "there is no number")
        found = only_number(region)
        return _compared(example, *found) if found else Grade(False, region.span, f"{region.text} is not one number")

    def strict(self, example: Problem, text: str) -> Grade:
        """Only a number behind `####`, as the prompt asks."""
        found = _hashed(everything(text))
        if found is None:
            return Grade(False, None, "there is no number behind ####")
        return _compared(example, numbers(found)[0][0], found)

    def paper(self, example: Problem, text: str) -> Grade:
        """lm-eval's gsm8k (version 3), filter flexible-extract; the paper does not say which filter it reports."""
        found = list(re.finditer(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", text))
        return _lm_eval(example, found[-1] if found else None)

    def paper_strict(self, example: Problem, text: str) -> Grade:
        """The same, filter strict-match."""
        return _lm_eval(example, re.search(r"#### (\-?[0-9\.\,]+)", text))


def answer_of(text: Found) -> Found | None:
    """What a text gives for its answer: behind ####, in a box, in tags, in "the answer is"; else its last number."""
    marked = first_of([_hashed, _box_in_tags, boxed, tagged], text)
    if marked is not None:
        return marked
    said = numbers(first_of([stated], text) or text.part(0, 0))
    anywhere = numbers(text)
    return said[0][1] if said else anywhere[-1][1] if anywhere else None


def _box_in_tags(text: Found) -> Found | None:
    inside = tagged(text)
    return boxed(inside) if inside is not None else None


def _hashed(text: Found) -> Found | None:
    """The first number behind the last ####, on its line."""
    lines = [text.part(*m.span(1)) for m in re.finditer(r"####(.*)", text.text)]
    found = [first[0][1] for line in lines if (first := numbers(line))]
    return found[-1] if found else None


def _compared(example: Problem, value: Fraction, place: Found) -> Grade:
    if value == example.value:
        return Grade(True, place.span, f"{place.text} is {example.answer}")
    return Grade(False, place.span, f"{place.text} is not {example.answer}")


def _lm_eval(example: Problem, match: re.Match[str] | None) -> Grade:
    """Equal strings, after what the harness removes from both is removed."""
    if match is None:
        return Grade(False, None, "the pattern matches nothing")
    group = next((n for n, part in enumerate(match.groups(), 1) if part), 0)
    said, gold = match[group].strip(), example.answer
    for pattern in (",", r"\$", r"(?s).*#### ", r"\.$"):
        said, gold = re.sub(pattern, "", said), re.sub(pattern, "", gold)
    same = said.lower() == gold.lower()
    return Grade(same, match.span(group), f"'{said}' is {'' if same else 'not '}'{gold}'")
