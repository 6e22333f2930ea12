"""The page about grading says what grading the published answers says."""

from __future__ import annotations

import io
import itertools
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.evals.material import data
from uncode.cli.verbs.evaluation.regrade import _table
from uncode.evals.published import final_text, released_text
from uncode.evals.regrade import FileAnswer, Graded, grade_all, read_answers, sample, task_of
from uncode.evals.task import Task

PAGE = (Path(__file__).parents[2] / "docs" / "grading.md").read_text()


Answers = dict[str, tuple[Task[Any], list[FileAnswer]]]
"""The published answers and their task, by the name of their file."""


@pytest.fixture(scope="module")
def published() -> Answers:
    folder = data("llada_outputs")
    files = sorted((folder / "llada_outputs").glob("*.jsonl"))
    tasks = [task_of(path, None) for path in files]
    return {path.name: (task, read_answers(path, task, folder)) for path, task in zip(files, tasks, strict=True)}


@pytest.fixture(scope="module")
def graded(published: Answers) -> list[Graded]:
    """Only for the slow tests: grading thousands of answers takes half a minute."""
    pytest.importorskip("math_verify")
    return [grade_all(name, task, answers, 1) for name, (task, answers) in published.items()]


@pytest.mark.slow
def test_the_table_of_the_page_is_what_regrade_prints(graded: list[Graded]) -> None:
    page = io.StringIO()
    Console(width=80, file=page).print(_table(graded))
    printed = "\n".join(line.rstrip() for line in page.getvalue().splitlines())
    assert printed.strip() in PAGE


@pytest.mark.slow
def test_the_disagreements_of_the_page_are_those_that_are_drawn(graded: list[Graded]) -> None:
    for one in graded:
        length = re.sub(r"\D", "", one.name.rsplit("_", 1)[1])
        drawn = [(one.answers[n].example.id, one.grades[n]) for n in sample(one, 10, seed=0)]
        assert len(drawn) == (0 if one.task.name == "sudoku" else 10)
        for name, grades in drawn:
            line = next((line for line in PAGE.splitlines() if line.startswith(f"| {length} {name} |")), None)
            assert line is not None, f"{one.name} {name} is not on the page"
            if one.task.name != "countdown":
                said = ["right" if grades[metric].correct else "wrong" for metric in ("correct", "paper")]
                assert [cell.strip() for cell in line.split("|")[4:6]] == said, line


def test_no_derivation_in_the_datas_style_occurs_in_an_answer(published: Answers) -> None:
    """So that the released rule's 0 % does not hang on the reference that was chosen."""
    assert any(task.name == "countdown" for task, _ in published.values())
    for task, answers in published.values():
        if task.name == "countdown":
            for answer in answers:
                example = answer.example
                chains = derivations([Fraction(n) for n in example.numbers], example.target)  # type: ignore[attr-defined]
                assert not any(chain in answer.output for chain in chains)


def derivations(numbers: list[Fraction], target: int) -> list[str]:
    if len(numbers) == 1:
        return [""] if numbers[0] == target else []
    found = []
    for (i, a), (j, b) in itertools.permutations(enumerate(numbers), 2):
        rest = [c for k, c in enumerate(numbers) if k not in (i, j)]
        for sign, value in (("+", a + b), ("-", a - b), ("*", a * b), ("/", a / b if b else None)):
            if value is not None and value.denominator == 1:
                tails = derivations([*rest, value], target)
                found += [f"{a}{sign}{b}={value}" + (f",{tail}" if tail else "") for tail in tails]
    return found


def test_an_answer_ends_at_its_first_special_token() -> None:
    output = "one<|eot_id|><|endoftext|>two<|endoftext|>"
    assert final_text(output) == "one" and released_text(output) == "onetwo" and final_text("all") == "all"
