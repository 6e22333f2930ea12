"""MATH500: competition mathematics with a formula for an answer (Hendrycks et al., 2021; Lightman et al., 2023)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

from ...util.extras import check_installed
from ..data import DataSource, Fields
from ..grade.claims import bounds_formula
from ..grade.find import (
    Found,
    before_next,
    boxed,
    fenced,
    first_of,
    sentence_of,
    stated,
    tagged,
    without_open_equation,
    without_remark,
)
from ..grade.formulas import Formulas, is_value, normal_form
from ..grade.numbers import is_asserted, number_words, numbers
from ..task import Example, Grade, Task, TaskSettings

_OPEN, _CLOSE = r"(?:(?<!\\)\$\$?|\\\(|\\\[)", r"(?:(?<!\\)\$\$?|\\\)|\\\])"
"""The delimiters of a formula. A dollar after a backslash is money."""
MAX_CHARACTERS = 2000
"""Sentences are cut at this length, and only this much of the end of a text is read."""


@dataclass(frozen=True)
class MathProblem(Example):
    problem: str
    answer: str
    """The answer in LaTeX, without the box."""


@final
class Math500(Task[MathProblem]):
    """Our rule compares the last box, or without a box the final answer, with math-verify."""

    name = "math500"
    grades_in_processes = True
    title = "MATH500"
    source = DataSource("math500.jsonl", "HuggingFaceH4/MATH-500")
    settings = TaskSettings(shots=4, length=1024, rate=0.25, chat=True, block_length=128)
    format = r"[\s\S]*\\boxed\{.+\}\$?\.?"

    def check_packages(self) -> None:
        check_installed("math_verify", "eval", "grading formulas")

    def read(self, row: Fields, number: int) -> MathProblem:
        return MathProblem(row.get("unique_id") or f"math500/{number}", row["problem"], row["answer"])

    def placeholders(self, example: MathProblem) -> dict[str, str]:
        return {"problem": example.problem}

    @cached_property
    def formulas(self) -> Formulas:
        return Formulas()

    def grade_ours(self, example: MathProblem, text: str) -> Grade:
        before = before_next(text, "Problem:", answered=lambda before: False)
        found = answer_of(before, wants_value=is_value(example.answer))
        if found is None:
            return Grade(False, None, "there is no answer")
        if restates(example, found.text):
            return Grade(False, found.span, f"{_short(found.text)} is the problem's own formula")
        same, why = self.formulas.same(example.answer, found.text)
        return Grade(same, found.span, f"{_short(found.text)} and {_short(example.answer)}: {why}")

    def grade_as_released(self, example: MathProblem, text: str) -> Grade:
        r"""The gold string must occur between the last `boxed{` and the last brace of its line."""
        for pattern in (r"boxed{(.*)}", r"framebox{(.*)}"):
            found = list(re.finditer(pattern, text, flags=re.MULTILINE))
            if found and found[-1][1]:
                inside = found[-1][1].strip(".")
                same = example.answer in inside
                relation = "contains" if same else "does not contain"
                return Grade(same, found[-1].span(1), f"{_short(inside)} {relation} {_short(example.answer)}")
        return Grade(example.answer == "", None, "there is no box")


def restates(example: MathProblem, answer: str) -> bool:
    """Whether an answer repeats a formula of the problem. It may equal the gold answer without solving anything."""
    normal = normal_form(answer)
    computes = re.search(r"[-+*/^!]|\\[a-zA-Z]{2,}", normal.removeprefix("-")) is not None
    return computes and normal in normal_form(example.problem) and normal != normal_form(example.answer)


def answer_of(text: Found, wants_value: bool = True) -> Found | None:
    """The last box; else the tagged, stated or fenced answer; else the last formula or number.

    If `wants_value`, a mark with a bound counts only if no other mark holds a value.
    """
    found = (_marked(text, _holds_bound) if wants_value else None) or _marked(text, None) or _last(text, wants_value)
    return _bare(found) if found is not None else None


def _holds_bound(place: Found) -> bool:
    """Whether a mark holds an inequality, or words such as "at least"."""
    return bounds_formula(without_remark(sentence_of(place)).text)


def _marked(text: Found, skip: Callable[[Found], bool] | None) -> Found | None:
    region = first_of([tagged], text, skip)
    found = first_of([boxed], region or text, skip) or first_of([boxed], text, skip) or region
    if found is None:
        statement = first_of([stated], text, skip)
        found = _sentence(statement) if statement else first_of([fenced], text, skip)
    return found


def _sentence(text: Found) -> Found:
    """The formula at the beginning of a statement, or the statement up to its end or an explanation."""
    begin = text.text[:MAX_CHARACTERS]
    several = re.match(rf"[\s*:]{{0,9}}{_OPEN}(.*?{_CLOSE}\s*(?:and|or|,)\s*{_OPEN}.*?){_CLOSE}", begin, re.S)
    delimited = several or re.match(rf"[\s*:]{{0,9}}{_OPEN}(.*?){_CLOSE}", begin, re.S)
    if delimited:
        return text.part(*delimited.span(1))
    end = re.search(
        r"[.!?](?:\s|$)|\n\s*\n|,? (?:since|because|which|so|where|as)\b| \([a-z]", text.text[:MAX_CHARACTERS]
    )
    return _number_in_words(text.part(0, end.start() if end else len(text.text)))


def _number_in_words(text: Found) -> Found:
    """The single number of a phrase ("9 divisors"). A formula is returned unchanged."""
    found = numbers(text) or number_words(text)
    return found[0][1] if len(found) == 1 and _in_words(text.text) and is_asserted(found[0][1], text) else text


def _in_words(text: str) -> bool:
    return re.search(r"(?<![\\a-z])(?:[a-z]{3,}|(?:is|it|of|so|we)\b)", text, re.I) is not None and not re.search(
        r"[\\^_{}=<>]", text
    )


def _last(text: Found, wants_value: bool) -> Found | None:
    """The last formula, or a number after it. A one-line text without a formula is returned unchanged."""
    text = without_open_equation(text)
    tail = text.tail(MAX_CHARACTERS)
    formulas = list(re.finditer(rf"{_OPEN}([^$]+?){_CLOSE}", tail.text))
    formulas = [formula for formula in formulas if not tail.part(*formula.span(1)).is_denied]
    rest = tail.part(formulas[-1].end() if formulas else 0, len(tail.text))
    after = [number for number in numbers(rest) if is_asserted(number[1], rest)]
    if after and (formulas or "\n" in text.text.strip() or _in_words(text.text)):
        return after[-1][1]
    if not formulas and wants_value and any(place.is_denied for _, place in numbers(tail)):
        return None
    return tail.part(*formulas[-1].span(1)) if formulas else _number_in_words(text)


def _bare(found: Found) -> Found | None:
    """The answer without surrounding blanks, dollars, emphasis and full stop; None if nothing is left."""
    found = found.strip().strip("*`_").strip()
    delimited = re.fullmatch(rf"{_OPEN}(.*?){_CLOSE}\.?", found.text[:MAX_CHARACTERS], re.S)
    if delimited and not re.search(_CLOSE, delimited[1]):
        found = found.part(*delimited.span(1)).strip()
    opened = re.match(rf"{_OPEN}\s*", found.text)
    if opened and not re.search(_CLOSE, found.text[opened.end() : MAX_CHARACTERS]):  # a formula that is never closed
        found = found.part(opened.end(), len(found.text))
    found = found if "\n" in found.text else without_remark(found)
    found = found.part(0, len(found.text) - 1) if re.search(r"[^\\.]\.$", found.text[-2:]) else found
    return found if found.text else None


def _short(formula: str) -> str:
    return formula if len(formula) <= 60 else f"{formula[:57]}..."
