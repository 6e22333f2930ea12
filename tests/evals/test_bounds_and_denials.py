"""Bounds, denials and retractions are no answers, in any task.

A phrase is tried with several answers, in every mark of every task. `judged_answers.jsonl` has single answers, each
judged by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.evals.test_graders_adversarial import graded, task_of

JUDGED = Path(__file__).parent / "judged_answers.jsonl"


@pytest.fixture(autouse=True, scope="module")
def _closed() -> Iterator[None]:
    yield
    task_of("math500").formulas.close()


NUMBERS = ("18", "7", "2500")
MARKS = ("\\boxed{{{}}}", "<answer>{}</answer>", "The answer is ${}$.", "So we have $\\boxed{{{}}}$ in the end.")
BOUNDS = (
    *(
        f"{sign} {{n}}"
        for sign in ("<", ">", "<=", ">=", "\\le", "\\leq", "\\ge", "\\geq", "\\leqslant", "\u2264", "\u2265")
    ),
    *(f"x {sign} {{n}}" for sign in ("<", ">", "\\leq", "\\ge", "\\gt", "\\lt")),
    *(f"{{n}} {sign} x" for sign in ("<", ">", "\\leq", "\u2265")),
    *(f"\\text{{{words} }} {{n}}" for words in ("at least", "at most", "more than", "less than", "fewer than")),
    *(f"\\text{{{words} {{n}}}}" for words in ("up to", "no more than", "no fewer than", "over", "under")),
    *(f"{{n}} \\text{{ {words}}}" for words in ("or more", "or fewer", "or less", "or higher", "and above")),
    "> {n}^\\circ",
    "\\text{more than } \\${n}",
)
DENIALS = (
    "The answer is not {}.",
    "The answer is **not** {}.",
    "The answer is definitely not {}.",
    "The answer isn't {}.",
    "The answer cannot be {}.",
    "It cannot be {}.",
    "It can't be {}.",
    "It is not {}.",
    "It could not be {}.",
    "I do not think it is {}.",
    "It is not true that the answer is {}.",
    "The answer is anything but {}.",
    "{} is wrong.",
    "{} is incorrect.",
    "{} is not the answer.",
    "{} is not correct.",
    "{} cannot be right.",
    "The answer is {}. No, that is wrong.",
    "The answer is {}. Wait, no.",
    "The answer is {}? No.",
)
"""Of any answer: a number, a letter, an expression, a grid."""


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("task", ["gsm8k", "math500"])
def test_a_bound_is_no_value(task: str, bound: str, mark: str) -> None:
    for number in NUMBERS:
        text = mark.format(bound.replace("{n}", number))
        assert not graded(task, number, text).correct, text


@pytest.mark.parametrize(
    "words", ["at least", "at most", "more than", "less than", "up to", "no more than", "greater than"]
)
@pytest.mark.parametrize("task", ["gsm8k", "math500"])
def test_a_value_beside_a_bound_is_found(task: str, words: str) -> None:
    for number in NUMBERS:
        bound = f"The answer is {words} {number}."
        assert not graded(task, number, bound).correct
        other = str(int(number) + 2)
        for text in (
            f"{bound} The answer is {other}.",
            f"The answer is {other}. {bound}",
            f"\\boxed{{{other}}}. {bound}",
        ):
            assert graded(task, other, text).correct, text
            assert not graded(task, number, text).correct, text


@pytest.mark.parametrize("gold", ["x < 18", "x \\geq 2", "-2 < x < 3", "x \\neq 3", "y \\le 0", "x > \\frac{1}{2}"])
def test_an_inequality_that_is_asked_for_is_right(gold: str) -> None:
    for text in (
        gold,
        *(mark.format(gold) for mark in MARKS),
        f"\\boxed{{{gold.replace(' ', '')}}}".replace("\\neq", "\\neq "),
    ):
        assert graded("math500", gold, text).correct, text
    for text in ("\\boxed{18}", "\\boxed{2}", "\\boxed{x = 3}"):
        assert not graded("math500", gold, text).correct


ANSWERS: dict[str, tuple[Any, str, str]] = {
    "gsm8k": ("18", "18", "20"),
    "math500": ("18", "18", "20"),
    "gpqa": ("B", "B", "C"),
    "countdown": ((3, 7, 11, 32), "3*7+11", "3*7-11"),
    "sudoku": ("3102200002100320", "3142243142131324", "1234341221434321"),
}
"""What makes the example, the right answer, a wrong one."""


@pytest.mark.parametrize("denial", DENIALS)
@pytest.mark.parametrize("task", ANSWERS)
def test_a_denied_answer_is_none(task: str, denial: str) -> None:
    facts, right, wrong = ANSWERS[task]
    assert not graded(task, facts, denial.format(right)).correct
    for text in (f"{denial.format(wrong)} The answer is {right}.", f"<answer>{right}</answer> {denial.format(wrong)}"):
        if not (text.startswith("<") and denial.startswith("{}")):  # a sentence may go on behind a tag
            assert graded(task, facts, text).correct, text


@pytest.mark.parametrize("task", [task for task in ANSWERS if task != "gpqa"])
@pytest.mark.parametrize(
    "denial", ["not {}", "It is not {}.", "{} is wrong.", "{} is not correct.", "{}. No, that is wrong."]
)
def test_a_denied_box_is_skipped(task: str, denial: str) -> None:
    facts, right, wrong = ANSWERS[task]
    boxes = [f"\\boxed{{{answer}}}" for answer in (right, wrong)]
    assert not graded(task, facts, denial.format(boxes[0])).correct
    assert graded(task, facts, f"{boxes[0]}. But {denial.format(boxes[1])}").correct
    assert graded(task, facts, f"{denial.format(boxes[1])} So {boxes[0]}").correct


UNSOLVABLE = (
    "No solution",
    "There is no solution.",
    "No solution exists.",
    "It is impossible.",
    "This cannot be solved.",
)


@pytest.mark.parametrize("words", UNSOLVABLE)
@pytest.mark.parametrize("task", ["countdown", "sudoku"])
def test_no_solution_is_none(task: str, words: str) -> None:
    facts, right, _ = ANSWERS[task]
    for text in (f"{right}\n{words}", f"<answer>{words}</answer>\n{right}", f"\\boxed{{\\text{{{words}}}}} {right}"):
        assert not graded(task, facts, text).correct, text
    assert graded(task, facts, f"{right}. There is no other solution.").correct


GIVEN_UP = (
    "That does not work.",
    "No, that is wrong.",
    "Let me start over.",
    "Let's try again.",
    "This fails. Attempt 2:",
)


@pytest.mark.parametrize("words", GIVEN_UP)
def test_a_step_that_was_given_up_is_no_step(words: str) -> None:
    for numbers, first, last in (((3, 7, 11, 32), "3*7=21", "21+11=32"), ((15, 44, 79, 50), "44-15=29", "79-29=50")):
        assert graded("countdown", numbers, f"{first}. Then {last}.").correct
        assert not graded("countdown", numbers, f"{first}. {words} {last}.").correct
        assert graded("countdown", numbers, f"{first}, 1+1=2. {words} {first}, {last}.").correct


@pytest.mark.parametrize(
    "text", ["({a})({b})+{c}", "{a}({b})+{c}", "({a}){b}+{c}", "\\left({a}\\right)\\left({b}\\right)+{c}"]
)
@pytest.mark.parametrize("numbers", [(3, 7, 11), (12, 2, 1), (40, 5, 99)])
def test_brackets_side_by_side_are_a_product(text: str, numbers: tuple[int, int, int]) -> None:
    a, b, c = numbers
    expression = text.format(a=a, b=b, c=c)
    assert graded("countdown", (a, b, c, a * b + c), expression).correct
    assert not graded("countdown", (a, b, c, a + b + c), expression).correct


@pytest.mark.parametrize(
    "words", ["It does not work for strings.", "That is wrong.", "No, wait.", "There is no solution."]
)
def test_the_tests_of_a_program_decide_whatever_is_said_of_it(words: str) -> None:
    task = task_of("mbpp")
    row = {
        "task_id": 1,
        "prompt": "-",
        "code": "def double(x):\n    return 2 * x",
        "test_list": ["assert double(3) == 6"],
    }
    example = task.read(row | {"test_imports": []}, 0)
    assert task.grade(example, f"<answer>{row['code']}</answer>\n{words}").correct
    assert not task.grade(example, f"<answer>{str(row['code']).replace('2', '3')}</answer>\nThis is right.").correct


HEADERS = (
    "1 2 3 4",
    "  1 2 3 4",
    "| 1 | 2 | 3 | 4 |\n|---|---|---|---|",
    "  1 2 3 4\n ---------",
    "  A B C D",
    "c1 c2 c3 c4",
)
LABELS = {"none": "", "digits": "1234", "from zero": "0123", "letters": "ABCD", "small": "abcd"}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("header", HEADERS)
def test_a_grid_may_have_a_header_and_labels(header: str, labels: str) -> None:
    clues, solved, other = ANSWERS["sudoku"]
    for cells in (solved, other):
        rows = [" ".join(cells[at : at + 4]) for at in range(0, 16, 4)]
        lines = [f"{label} {row}" for label, row in zip(labels, rows, strict=True)] if labels else rows
        text = "\n".join([header, *lines])
        wide = "".join(chr(ord(c) + 0xFEE0) if c.isdigit() else c for c in text)
        for answer in (text, f"<answer>\n{text}\n</answer>", wide, f"{text}\n\nThe puzzle was {clues}."):
            assert graded("sudoku", clues, answer).correct is (cells == solved), answer


JUDGED_ROWS = [json.loads(line) for line in JUDGED.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("task", ANSWERS)
def test_answers_judged_by_hand(task: str) -> None:
    rows = [row for row in JUDGED_ROWS if row["task"] == task]
    assert len(rows) > 60
    facts = [tuple(row["told"]) if isinstance(row["told"], list) else row["told"] for row in rows]
    verdicts = [graded(task, about, row["text"]) for about, row in zip(facts, rows, strict=True)]
    assert not [(r["text"], v) for r, v in zip(rows, verdicts, strict=True) if v.correct != r["correct"]]
