"""GSM8K: grade-school word problems with a number for an answer (Cobbe et al., 2021)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from ..data import Source
from ..grade.find import Found, boxed, everything, first_of, stated, tagged
from ..grade.numbers import as_fraction, numbers, only_number, stated_number
from ..task import Example, Grade, Grader, Settings, Task

LONGEST_TEXT = 2000
"""Characters that are looked at, from the end, where no number is marked."""


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
    paper_stops = ("Question:", "</s>", "<|im_end|>")

    def read(self, row: Mapping[str, Any], number: int) -> Problem:
        return Problem(f"gsm8k/{number}", row["question"], row["answer"].split("####")[1].strip())

    def blanks(self, example: Problem) -> dict[str, str]:
        return {"question": example.question}

    @property
    def graders(self) -> dict[str, Grader[Problem]]:
        return super().graders | {"strict": self.strict, "paper_strict": self.paper_strict}

    def ours(self, example: Problem, text: str) -> Grade:
        region, read = answer_of(everything(text))
        if region is None:
            return Grade(False, None, "there is no number")
        found = read(region)
        return _compared(example, *found) if found else Grade(False, region.span, f"{region.text} is not one number")

    def strict(self, example: Problem, text: str) -> Grade:
        """Only a number behind `####`, as the prompt asks."""
        region = first_of([_hashed], everything(text))
        found = stated_number(region) if region else None
        return _compared(example, *found) if found else Grade(False, None, "there is no number behind ####")

    def paper(self, example: Problem, text: str) -> Grade:
        """lm-eval's gsm8k (version 3), filter flexible-extract; the paper does not say which filter it reports."""
        found = list(re.finditer(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", text))
        return _lm_eval(example, found[-1] if found else None)

    def paper_strict(self, example: Problem, text: str) -> Grade:
        """The same, filter strict-match."""
        return _lm_eval(example, re.search(r"#### (\-?[0-9\.\,]+)", text))


def answer_of(text: Found) -> tuple[Found | None, Callable[[Found], tuple[Fraction, Found] | None]]:
    """Where a text gives its answer, and how it is read: behind ####, boxed, in tags, stated; else its last number."""
    hashed = first_of([_hashed], text)
    if hashed is not None:
        return hashed, stated_number
    marked = first_of([_box_in_tags, boxed, tagged], text)
    if marked is not None:
        return marked, only_number
    said = first_of([stated], text)
    if said is not None and numbers(_sentence(said)) and not _is_solution(said):
        return _sentence(said), stated_number
    anywhere = [found for found in numbers(text.tail(LONGEST_TEXT)) if not _denied(found[1])]
    return (anywhere[-1][1], only_number) if anywhere else (None, only_number)


def _box_in_tags(text: Found) -> Found | None:
    inside = tagged(text)
    return boxed(inside) if inside is not None else None


def _hashed(text: Found) -> Found | None:
    """What stands behind the last #### that has a number behind it, on its line."""
    lines = [text.part(*m.span(1)) for m in re.finditer(r"####(.*)", text.text)]
    return next((line for line in reversed(lines) if numbers(line)), None)


def _is_solution(said: Found) -> bool:
    """Whether "Answer:" begins a worked solution of several sentences, rather than stating a number."""
    colon = said.whole[: said.start].rstrip().endswith(":")
    return colon and bool(numbers(Found(said.whole, _sentence(said).end, len(said.whole)).tail(LONGEST_TEXT)))


def _denied(number: Found) -> bool:
    return re.search(r"\bnot \$?$", number.whole[max(0, number.start - 6) : number.start]) is not None


def _sentence(text: Found) -> Found:
    end = re.search(r"[.!?](?:\s|$)|\n", text.text.rstrip())
    return text.part(0, end.start() if end else len(text.text))


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
