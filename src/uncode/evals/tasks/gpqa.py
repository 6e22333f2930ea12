"""GPQA main: graduate-level science questions with four choices (Rein et al., 2024)."""

from __future__ import annotations

import hashlib
import itertools
import re
import unicodedata
from dataclasses import dataclass
from typing import final

from ..data import DataSource, Fields
from ..grade.choices import chosen_letter, left_letter
from ..grade.find import readable
from ..stop_strings import StopStrings
from ..task import Example, Grade, Grader, Task, TaskSettings

LETTERS = "ABCD"
_ORDERS = list(itertools.permutations(range(4)))
_FIELDS = (
    ("question", "correct_answer", "option_A", "option_B", "option_C"),
    ("Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3"),
)
"""The fields of the release's file, and of the hub's."""


@dataclass(frozen=True)
class GpqaQuestion(Example):
    question: str
    choices: tuple[str, ...]
    answer: str
    """The letter of the correct choice."""


@final
class Gpqa(Task[GpqaQuestion]):
    """The order of the choices depends on the question's text alone, so it is the same on every machine."""

    name = "gpqa"
    title = "GPQA"
    source = DataSource("gpqa.jsonl", "Idavidrein/gpqa", "gpqa_main", "train")
    settings = TaskSettings(shots=5, length=256, rate=0.25, chat=False, block_length=32)
    format = r"[\s\S]*The answer is \([A-D]\)\."
    stops = StopStrings(ours=("Question:",), released=("Question:", "</s>", "<|im_end|>"))

    def read(self, row: Fields, number: int) -> GpqaQuestion:
        fields = next((names for names in _FIELDS if names[0] in row), _FIELDS[0])
        question, *choices = (str(row[name]).strip() for name in fields)
        order = _ORDERS[int.from_bytes(hashlib.sha256(question.encode()).digest()[:8]) % len(_ORDERS)]
        return GpqaQuestion(f"gpqa/{number}", question, tuple(choices[n] for n in order), LETTERS[order.index(0)])

    def placeholders(self, example: GpqaQuestion) -> dict[str, str]:
        return {"question": example.question} | dict(zip(LETTERS, example.choices, strict=True))

    @property
    def graders(self) -> dict[str, Grader[GpqaQuestion]]:
        return super().graders | {"paper_strict": self.grade_as_released_strictly}

    def grade_ours(self, example: GpqaQuestion, text: str) -> Grade:
        read = readable(_without_words(text, example.choices))
        found = chosen_letter(read)
        chosen = left_letter(read) if found is None else (found.text.upper(), found)
        if chosen is None:
            return Grade(False, None, "no single choice is named")
        letter, place = chosen
        right = letter == example.answer
        return Grade(right, place.span, f"{letter} is {'the' if right else 'not the'} right choice")

    def grade_as_released(self, example: GpqaQuestion, text: str) -> Grade:
        """lm-eval's gpqa, filter flexible-extract: the last (X), else a choice's text, else a letter after a colon."""
        if found := list(re.finditer(r"(\([A-Z]\))", text)):
            return _lm_eval(example, found[-1][1], found[-1].span(1))
        words = {_no_case(choice): f"({letter})" for letter, choice in zip(LETTERS, example.choices, strict=True)}
        matched = re.findall("|".join(re.escape(word) for word in words), _no_case(text))
        if matched and matched[-1].strip():
            return _lm_eval(example, words.get(matched[-1].strip(), matched[-1]), None)
        if found := list(re.finditer(r":[\s]*(A|B|C|D)", text)):
            return _lm_eval(example, f"({found[-1][1]})", found[-1].span(1))
        return Grade(False, None, "no pattern matches")

    def grade_as_released_strictly(self, example: GpqaQuestion, text: str) -> Grade:
        """lm-eval's gpqa, filter strict-match: the text after the first "The answer is ", less its last character."""
        found = re.search(r"(?<=The answer is )(.*)(?=.)", text)
        return _lm_eval(example, found[1].strip(), found.span(1)) if found else Grade(False, None, "no pattern matches")


def _without_words(text: str, choices: tuple[str, ...]) -> str:
    """A text with the texts of the choices blanked out, because they may contain letters too."""
    for choice in sorted(choices, key=len, reverse=True):
        text = text.replace(choice, "~" * len(choice)) if len(choice) > 3 else text
    return text


def _no_case(text: str) -> str:
    """The text without case and punctuation, as lm-eval compares it."""
    return "".join(c for c in text.strip().lower() if not unicodedata.category(c).startswith("P"))


def _lm_eval(example: GpqaQuestion, matched: str, span: tuple[int, int] | None) -> Grade:
    """Compare without case and ASCII punctuation."""
    kept = re.sub(r"[!-/:-@\[-`{-~]", "", matched).lower()
    same = kept == example.answer.lower()
    return Grade(same, span, f"'{matched}' is {'' if same else 'not '}({example.answer})")
