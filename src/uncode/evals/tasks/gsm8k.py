"""GSM8K: grade-school word problems with a number for an answer (Cobbe et al., 2021)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from ..data import DataSource, Fields
from ..grade.find import Found, boxed, first_of, readable, sentence_of, stated, tagged, without_open_equation
from ..grade.numbers import (
    MAX_NUMBERS,
    as_fraction,
    asserted,
    is_asserted,
    number_words,
    numbers,
    only_number,
    stated_number,
)
from ..stop_strings import StopStrings
from ..task import Example, Grade, Grader, Task, TaskSettings

_ASKS_DOZENS = re.compile(r"\bhow many (?:more |full |whole |complete |extra )?dozens?\b|\bin dozens\b", re.I)
MAX_TAIL_CHARACTERS = 2000
"""If no number is marked, only the last characters of a text are read."""


@dataclass(frozen=True)
class Gsm8kProblem(Example):
    question: str
    answer: str
    """The number, as the data writes it."""

    @property
    def value(self) -> Fraction:
        return as_fraction(self.answer) * (-1 if self.answer.startswith("-") else 1)


@final
class Gsm8k(Task[Gsm8kProblem]):
    """Our rule takes the marked number (`####`, tags, box, "the answer is"), else the last one. Values are exact."""

    name = "gsm8k"
    title = "GSM8K"
    source = DataSource("gsm8k.jsonl", "openai/gsm8k", "main")
    settings = TaskSettings(shots=4, length=256, rate=0.25, chat=False, block_length=32)
    format = r"[\s\S]*#### -?[0-9]+"
    stops = StopStrings(ours=("Question:",), released=("Question:", "</s>", "<|im_end|>"))

    def read(self, row: Fields, number: int) -> Gsm8kProblem:
        return Gsm8kProblem(f"gsm8k/{number}", row["question"], row["answer"].split("####")[1].strip())

    def placeholders(self, example: Gsm8kProblem) -> dict[str, str]:
        return {"question": example.question}

    @property
    def graders(self) -> dict[str, Grader[Gsm8kProblem]]:
        return super().graders | {"strict": self.grade_strictly, "paper_strict": self.grade_as_released_strictly}

    def grade_ours(self, example: Gsm8kProblem, text: str) -> Grade:
        region, read = answer_of(_text_for(example, text))
        if region is None:
            return Grade(False, None, "there is no number")
        found = read(region)
        return _compared(example, *found) if found else Grade(False, region.span, f"{region.text} is not one number")

    def grade_strictly(self, example: Gsm8kProblem, text: str) -> Grade:
        """Accept only a number after `####`, as the prompt demands."""
        region = first_of([_hashed], _text_for(example, text))
        found = stated_number(region) if region else None
        return _compared(example, *found) if found else Grade(False, None, "there is no number behind ####")

    def grade_as_released(self, example: Gsm8kProblem, text: str) -> Grade:
        """lm-eval's gsm8k (version 3), filter flexible-extract. The paper does not say which filter it reports."""
        found = list(re.finditer(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", text))
        return _lm_eval(example, found[-1] if found else None)

    def grade_as_released_strictly(self, example: Gsm8kProblem, text: str) -> Grade:
        """The same, filter strict-match."""
        return _lm_eval(example, re.search(r"#### (\-?[0-9\.\,]+)", text))


def _text_for(example: Gsm8kProblem, text: str) -> Found:
    """The text to read. "7 dozen" is 84, but 7 where a question asks for dozens: there they are units. Positions do not
    change."""
    return readable(re.sub("dozen", "units", text, flags=re.I) if _ASKS_DOZENS.search(example.question) else text)


def answer_of(text: Found) -> tuple[Found | None, Callable[[Found], tuple[Fraction, Found] | None]]:
    """The place of the answer and its reader: after ####, boxed, in tags, stated, or the last number."""
    hashed = first_of([_hashed], text, _asserts_no_number)
    if hashed is not None:
        return hashed, stated_number
    marked = first_of(_MARKS, text, _asserts_no_number)
    if marked is not None:
        return marked, only_number
    statement = first_of([stated], text, lambda place: _asserts_no_number(sentence_of(place)))
    if statement is not None and asserted(sentence_of(statement)) and not _is_solution(statement):
        return sentence_of(statement), stated_number
    limit = first_of([_hashed, *_MARKS, stated], text, _is_no_limit)
    if limit is not None:
        return sentence_of(limit), only_number
    return _last_number(text), only_number


def _last_number(text: Found) -> Found | None:
    """The last number that is asserted and not denied later. Number words count only in a text without digits."""
    tail = without_open_equation(text).tail(MAX_TAIL_CHARACTERS)
    denied: set[Fraction] = set()
    for value, place in reversed(numbers(tail)):
        if place.is_denied:
            denied.add(value)
        elif value not in denied and is_asserted(place, tail):
            return place
    if re.search(r"\d", text.text):
        return None
    words = [
        place for _, place in asserted(tail) if place.text.lower() != "one" or place.text == text.text.strip(" .*")
    ]
    return words[-1] if words else None


def _asserts_no_number(place: Found) -> bool:
    """Whether a mark holds numbers that are all denied or bounds."""
    return bool(numbers(place, 1) or number_words(place)) and not asserted(place)


def _is_no_limit(place: Found) -> bool:
    """Whether a mark holds no bound. A denied number is not a bound."""
    sentence = sentence_of(place)
    limits = any(
        not number.is_denied and not is_asserted(number, sentence) for _, number in numbers(sentence, MAX_NUMBERS)
    )
    return not limits or _is_solution(place)


def _box_in_tags(text: Found) -> Found | None:
    inside = tagged(text)
    return boxed(inside) if inside is not None else None


_MARKS = (_box_in_tags, boxed, tagged)


def _hashed(text: Found) -> Found | None:
    """The rest of the line after the last #### that is followed by a number."""
    lines = [text.part(*m.span(1)) for m in re.finditer(r"####(.*)", text.text)]
    return next((line for line in reversed(lines) if numbers(line, 1) or number_words(line)), None)


def _is_solution(statement: Found) -> bool:
    """Whether "Answer:" starts a worked solution of several sentences, rather than stating a number."""
    colon = statement.whole[: statement.start].rstrip().endswith(":")
    return colon and bool(
        numbers(Found(statement.whole, sentence_of(statement).end, len(statement.whole)).tail(MAX_TAIL_CHARACTERS))
    )


def _compared(example: Gsm8kProblem, value: Fraction, place: Found) -> Grade:
    if value == example.value:
        return Grade(True, place.span, f"{place.text} is {example.answer}")
    return Grade(False, place.span, f"{place.text} is not {example.answer}")


def _lm_eval(example: Gsm8kProblem, match: re.Match[str] | None) -> Grade:
    """Compare the strings after removing what lm-eval removes from both."""
    if match is None:
        return Grade(False, None, "the pattern matches nothing")
    group = next((n for n, part in enumerate(match.groups(), 1) if part), 0)
    matched, gold = match[group].strip(), example.answer
    for pattern in (",", r"\$", r"(?s).*#### ", r"\.$"):
        matched, gold = re.sub(pattern, "", matched), re.sub(pattern, "", gold)
    same = matched.lower() == gold.lower()
    return Grade(same, match.span(group), f"'{matched}' is {'' if same else 'not '}'{gold}'")
