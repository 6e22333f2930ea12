"""Answers that are easy to misjudge: right ones in odd layouts, wrong ones that look right, texts made to do harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

import pytest

from uncode.evals.grade import arithmetic, formulas
from uncode.evals.grade.find import everything
from uncode.evals.task import Example, Grade, Task
from uncode.evals.tasks import countdown, find_task, gpqa, gsm8k, math500, sudoku

RIGHT, WRONG = True, False
Case = tuple[str, Any, str, bool]
"""Name, what makes the example, text, verdict."""

EXAMPLES: dict[str, Callable[[Any], Example]] = {
    "gsm8k": lambda answer: gsm8k.Gsm8kProblem("x", "", answer),
    "math500": lambda facts: math500.MathProblem("x", *(facts if isinstance(facts, tuple) else ("", facts))),
    "gpqa": lambda letter: gpqa.GpqaQuestion("x", "", ("alpha", "beta", "gamma", "delta"), letter),
    "countdown": lambda facts: countdown.CountdownPuzzle("x", facts[:-1], facts[-1], "-"),
    "sudoku": lambda clues: sudoku.SudokuPuzzle("x", clues, "-"),
}


@cache
def task_of(name: str) -> Task[Any]:
    return find_task(name)


@pytest.fixture(autouse=True, scope="module")
def _closed() -> Iterator[None]:
    yield
    task_of("math500").formulas.close()


def graded(task: str, facts: Any, text: str) -> Grade:
    if task == "math500":
        pytest.importorskip("math_verify")
    grade = task_of(task).grade(EXAMPLES[task](facts), text)
    if grade.span is not None:
        assert 0 <= grade.span[0] < grade.span[1] <= len(text)
    assert grade.span is not None or not grade.correct
    return grade


def listed(cases: list[Case]) -> Any:
    assert len({name for name, *_ in cases}) == len(cases), "two cases of one name"
    return pytest.mark.parametrize(
        ("facts", "text", "verdict"), [pytest.param(*rest, id=name) for name, *rest in cases]
    )


def all_of(verdict: bool, facts: Any, prefix: str, *texts: str) -> list[Case]:
    return [(f"{prefix}-{number}", facts, text, verdict) for number, text in enumerate(texts)]


# GSM8K

GSM8K: list[Case] = [
    *all_of(
        RIGHT,
        "18",
        "layout",
        "#### 18",
        "#### $18",
        "#### 18 dollars per day",
        "#### 18.",
        "#### 18.00",
        "#### 18<|endoftext|>",
        "She makes **$18** every day.",
        "The answer is 18.",
        "**Answer:** $18",
        "**Final Answer**\n\n18",
        "The answer is\n\n18",
        "The answer is: \\(18\\)",
        "The answer is $\\boxed{18}$.",
        "\\boxed{\\$18}",
        "\\boxed{18 \\text{ dollars}}",
        "\\boxed{\\text{18 dollars}}",
        "\\boxed{x = 18}",
        "\\boxed{9 \\times 2 = 18}",
        "\\boxed{18",
        "boxed{18}",
        "<answer>18</answer>",
        "<answer>18",
        "<answer>18</answer",
        "<answer>\n\\boxed{}18\n</answer>",
        "<answer>$9 \\times 2 = 18$</answer>",
        "16 - 3 - 4 = 9\n9 * 2 = 18",
        "9 * 2 = <<9*2=18>>18 dollars",
        "\\[ 9 \\times \\$2 = \\$18 \\]",
        "So he earns \\(\\$18\\)",
        "Total=18€",
        "#### 18 cm^2",
        "#### 18\n\nQuestion: And if there were 4?\nAnswer: 4\n#### 4",
        "The answer is 18, because 16 - 3 - 4 = 9 and 9 * 2 = 18.",
        "The answer is $18, not $20.",
    ),
    *all_of(
        RIGHT,
        "18",
        "computed",
        "The answer is 9 * 2 = 18.",
        "The answer is $9 \\times 2 = 18$.",
        "The answer is:\n\\[\n9 \\times 2 = 18\n\\]",
        "Answer: 9 eggs * $2 = $18",
        "#### 9 * 2 = 18",
        "#### 9*2=18",
        "The answer is twice 9, which is 18.",
        "Answer: 16 - 3 - 4 = 9 eggs are left. They bring 9 * 2 = 18 dollars.",
        "Answer: 9 eggs are left.\nThey bring 9 * 2 = 18 dollars.",
    ),
    *all_of(
        WRONG,
        "9",
        "a-step-is-no-answer",
        "The answer is 9 * 2 = 18.",
        "The answer is 9 * 2.",
        "Answer: 9 eggs * $2 = $18",
        "#### 9*2=18",
        "The answer is twice 9, which is 18.",
        "Answer: 9 eggs are left.\nThey bring 9 * 2 = 18 dollars.",
        "\\boxed{9 + 9}",
        "\\boxed{9 \\times 9}",
        "<answer>9 - 9</answer>",
        "\\boxed{9^2}",
    ),
    *all_of(
        WRONG,
        "18",
        "several-or-other",
        "\\boxed{18 or 20}",
        "\\boxed{17} or \\boxed{18}",
        "<answer>17, 18</answer>",
        "#### 18 or 20",
        "#### 18, 20",
        "#### 17 18 19",
        "The answer is 18 or 20.",
        "The answer is 20 or 18.",
        "\\boxed{18 \\text{ or } -18}",
        "#### 180",
        "#### 118",
        "#### 18.5",
        "#### 18,000",
        "#### -18",
        "The answer is 1/18.",
        "18\n#### 20",
        "",
        "####",
        "\\boxed{}",
        "no idea",
    ),
    ("blank-5000-hash", "5000", "#### 5 000", RIGHT),
    ("blank-5000-hash-unit", "5000", "#### $5 000 in all", RIGHT),
    ("blank-5000-stated", "5000", "The answer is 5 000.", RIGHT),
    ("blank-5000-prose", "5000", "They have 5 000 dollars.", RIGHT),
    ("blank-5000-box", "5000", "\\boxed{5 000}", RIGHT),
    ("blank-million", "1234567", "#### 1 234 567", RIGHT),
    ("nbsp-5000", "5000", "#### 5\u00a0000", RIGHT),
    ("thin-5000", "5000", "The answer is 5\u202f000 dollars.", RIGHT),
    ("brace-comma-5000", "5000", "\\boxed{5{,}000}", RIGHT),
    ("tex-blank-5000", "5000", "The answer is $5\\,000$.", RIGHT),
    ("comma-5000", "5000", "The answer is \\$5,000.", RIGHT),
    ("five-is-not-5000", "5", "#### 5 000", WRONG),
    ("minus-hash", "-5", "#### -5", RIGHT),
    ("minus-unicode", "-5", "#### \u22125", RIGHT),
    ("minus-chain", "-5", "10 - 15 = -5", RIGHT),
    ("minus-currency", "-5", "The answer is -$5.", RIGHT),
    ("minus-in-dollars", "-5", "The answer is $-5$.", RIGHT),
    ("minus-behind-currency", "-5", "#### $-5", RIGHT),
    ("minus-in-prose", "-5", "The temperature is -5 degrees.", RIGHT),
    ("minus-in-prose-is-kept", "5", "The temperature is -5 degrees.", WRONG),
    ("minus-in-dollars-is-kept", "5", "The answer is $-5$.", WRONG),
    ("no-minus-in-difference", "3", "10-7 = 3", RIGHT),
    ("bullet-is-no-minus", "18", "Amount left:\n- 18 dollars", RIGHT),
    ("bullet-answer-is-no-minus", "18", "Answer:\n- 18", RIGHT),
    ("dash-is-no-minus", "18", "Answer \u2014 18", RIGHT),
    ("percent-box", "70", "\\boxed{70\\%}", RIGHT),
    ("percent-prose", "70", "It is 70%.", RIGHT),
    ("half", "2.5", "#### 2.50", RIGHT),
    ("half-fraction", "2.5", "\\boxed{\\frac{5}{2}}", RIGHT),
    ("half-slash", "2.5", "#### 5/2", RIGHT),
    ("half-mixed", "2.5", "\\boxed{2\\frac{1}{2}}", RIGHT),
    ("half-mixed-plain", "2.5", "#### 2 1/2", RIGHT),
    ("half-mixed-is-not-two", "2", "#### 2 1/2", WRONG),
    ("underscores", "18", "The answer is _18_.", RIGHT),
    ("currency-code", "18", "She earns USD18.", RIGHT),
    ("square-unit-box", "18", "\\boxed{18 \\text{ m}^2}", RIGHT),
    ("square-unit-prose", "18", "The area is 18 m^2.", RIGHT),
    ("square-unit-is-no-answer", "2", "The area is 18 m^2.", WRONG),
    ("million", "1000000", "The answer is 1 million.", RIGHT),
    ("million-is-not-one", "1", "The answer is 1 million.", WRONG),
    *all_of(
        RIGHT,
        "12",
        "dozen",
        "The answer is 1 dozen.",
        "The answer is 1 dozen eggs.",
        "#### 1 dozen",
        "\\boxed{1 \\text{ dozen}}",
        "\\boxed{\\text{1 dozen}}",
        "The answer is a dozen.",
        "She has a dozen eggs.",
        "The answer is **1** dozen.",
        "The answer is \\(1\\) dozen.",
        "The answer is one dozen.",
        "A dozen.",
        "The answer is 1 dozen (12).",
        "The answer is a dozen, or 12.",
        "The answer is 12, which is a dozen.",
        "The answer is 12 (1 dozen).",
        "2 boxes of half a dozen are 12 eggs.",
        "The answer is 12 at 3 dollars a dozen.",
        "12 eggs are 1 dozen eggs.",
    ),
    ("dozen-is-not-one", "1", "The answer is 1 dozen.", WRONG),
    ("dozen-is-not-one-in-words", "1", "The answer is one dozen.", WRONG),
    ("two-dozen", "24", "The answer is 2 dozen.", RIGHT),
    ("two-dozens", "24", "2 * 12 = 2 dozens", RIGHT),
    ("two-is-not-two-dozen", "2", "#### 2 dozen", WRONG),
    ("half-a-dozen", "6", "The answer is half a dozen.", RIGHT),
    ("half-dozen", "6", "<answer>a half dozen</answer>", RIGHT),
    ("half-a-dozen-in-digits", "18", "#### 1.5 dozen", RIGHT),
    ("mixed-dozen", "18", "#### 1 1/2 dozen", RIGHT),
    ("half-sign-dozen", "6", "The answer is \u00bd dozen.", RIGHT),
    ("three-dozen-eggs", "36", "The answer is three dozen eggs.", RIGHT),
    ("three-dozen-is-not-three", "3", "She has three dozen eggs.", WRONG),
    ("two-and-a-half-dozen", "30", "The answer is two and a half dozen.", RIGHT),
    ("a-dozen-is-a-measure", "11", "Answer: a dozen cookies need 11 cups.", RIGHT),
    ("dozens-of-eggs", "7", "Dozens of eggs: 7", RIGHT),
    ("power-of-ten", "1200", "\\boxed{1.2 \\times 10^3}", RIGHT),
    ("clock", "8", "The answer is 8:00.", RIGHT),
    ("empty-box-broken-tag", "50", "So it is 50 miles.\n<answer>\n\\boxed{}\n</answer}", RIGHT),
    ("box-of-dots", "50", "So it is 50 miles.\n<answer>\n\\boxed{...}\n</answer>", RIGHT),
    ("quoted-shots", "4", "#### 89\n#### 7\n#### 2160\n#### 42", WRONG),
]


@listed(GSM8K)
def test_gsm8k(facts: str, text: str, verdict: bool) -> None:
    grade = graded("gsm8k", facts, text)
    assert grade.correct is verdict, grade


@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        ("How many dozens of eggs will she eat?", RIGHT),
        ("How many dozen eggs are left?", RIGHT),
        ("How many eggs are in 7 dozen?", WRONG),
        ("How many eggs does she eat at 2 dollars a dozen?", WRONG),
    ],
)
def test_a_question_may_ask_for_dozens(question: str, verdict: bool) -> None:
    for text in ("The answer is 7 dozen.", "84 / 12 = 7 dozens.", "The answer is seven dozen."):
        assert task_of("gsm8k").grade(gsm8k.Gsm8kProblem("x", question, "7"), text).correct is verdict, text


# MATH500

HALF = "\\frac{1}{2}"
MATH500: list[Case] = [
    *all_of(
        RIGHT,
        HALF,
        "half",
        "\\boxed{\\frac{1}{2}}",
        "\\boxed{\\dfrac12}",
        "\\boxed{1/2}",
        "\\boxed{0.5}",
        "\\boxed{x = \\frac{1}{2}}",
        "$\\boxed{\\frac{1}{2}$",
        "The answer is $\\frac{1}{2}$.",
        "The answer is 1/2.",
        "<answer>\\frac{1}{2}</answer>",
        "<answer>\n\\frac{1}{2}\n</answer",
        "\\boxed{\u00bd}",
    ),
    *all_of(
        WRONG,
        HALF,
        "not-half",
        "\\boxed{\\frac{1}{2}, \\frac{1}{3}}",
        "\\boxed{\\frac{1}{3} \\text{ or } \\frac{1}{2}}",
        "\\boxed{1/2 or 1/3}",
        "\\boxed{\\frac{1}{2}} Wait: \\boxed{\\frac{1}{3}}",
        "\\boxed{\\pm\\frac{1}{2}}",
        "\\boxed{\\frac{2}{1}}",
        "\\boxed{50}",
    ),
    *all_of(
        RIGHT,
        "5",
        "five",
        "\\boxed{5 \\text{ cm}}",
        "\\boxed{5\\,\\text{cm}^2}",
        "\\boxed{5 \\mathrm{~cm}}",
        "\\boxed{\\text{5}}",
        "\\boxed{f(2) = 2 + 3 = 5}",
        "\\boxed{\\boxed{5}}",
        "\\boxed{5.}",
        "\\boxed{5\n</answer>",
        "The answer is **5**.",
        "The answer is:\n\n\\[\n5\n\\]",
        "The answer is 2 + 3 = 5.",
        "**Final Answer:**\n\n$$5$$",
        "**Final Answer**\n\n5",
        "Therefore $x=5$ and we are done.",
        "The answer is 5, since 2+3=5.",
        "The answer is 5 (five).",
        "Therefore, there are 5 solutions.",
        "Let $y=3$.\n\nSo we get 5.",
        "To find the answer: compute $2+3$.\n\nWe get $5$.",
        "```\n5\n```",
        "The answer is $\\boxed{5}$.\n\nProblem: What is $1+1$?\nSolution: The answer is $\\boxed{2}$.",
    ),
    *all_of(
        WRONG,
        "2",
        "not-two",
        "\\boxed{1,2,3,4}",
        "\\boxed{\\{1,2,3\\}}",
        "\\boxed{1 \\text{ and } 2}",
        "\\boxed{2 \\text{ or } 3}",
        "\\boxed{\\text{2 or 3}}",
        "\\boxed{x=1 \\text{ or } x=2}",
        "\\boxed{x=1, y=2}",
        "\\boxed{1 \\quad 2}",
        "\\boxed{1; 2}",
        "\\boxed{(1,2)}",
        "\\boxed{1 \\\\ 2}",
        "\\boxed{2\\\\3}",
        "\\boxed{1\n2}",
        "\\boxed{2=3}",
        "\\boxed{3 = 2}",
        "\\boxed{x=3=2}",
        "\\boxed{\\neq 2}",
        "\\boxed{x \\ne 2}",
        "\\boxed{x \\geq 2}",
        "\\boxed{\\text{not } 2}",
        "\\boxed{-2}",
        "\\boxed{2x}",
        "\\boxed{2\\pi}",
        "\\boxed{x}",
        "\\boxed{}",
        "",
    ),
    ("thousands-tex-blank", "10,080", "\\boxed{10\\,080}", RIGHT),
    ("thousands-brace-comma", "10,080", "\\boxed{10{,}080}", RIGHT),
    ("thousands-thin", "10,\\!080", "\\boxed{10080}", RIGHT),
    ("thousands-blank", "10,080", "\\boxed{10 080}", RIGHT),
    ("pair", "(3,4)", "\\boxed{\\left(3, 4\\right)}", RIGHT),
    ("pair-swapped", "(3,4)", "\\boxed{(4,3)}", WRONG),
    ("pair-is-no-interval", "(3,4)", "\\boxed{[3,4]}", WRONG),
    ("interval-half-open", "(3,4)", "\\boxed{(3,4]}", WRONG),
    ("interval-infinity-sign", "[0,\\infty)", "\\boxed{[0,\u221e)}", RIGHT),
    ("union", "(-\\infty,2)\\cup(3,\\infty)", "\\boxed{(3, \\infty) \\cup (-\\infty, 2)}", RIGHT),
    ("union-half", "(-\\infty,2)\\cup(3,\\infty)", "\\boxed{(3, \\infty)}", WRONG),
    ("both-roots", "1,-2", "\\boxed{x = -2 \\text{ or } x = 1}", RIGHT),
    ("one-root", "1,-2", "\\boxed{1}", WRONG),
    ("too-many-roots", "1,-2", "\\boxed{1, -2, 3}", WRONG),
    ("plus-minus", "1 \\pm \\sqrt{3}", "\\boxed{1 + \\sqrt{3}, 1 - \\sqrt{3}}", RIGHT),
    ("root", "3\\sqrt{13}", "\\boxed{\\sqrt{117}}", RIGHT),
    ("root-sign", "3\\sqrt{13}", "The answer is 3\u221a13.", RIGHT),
    ("root-sign-box", "\\sqrt{2}", "\\boxed{\u221a2}", RIGHT),
    ("root-rounded", "3\\sqrt{13}", "\\boxed{10.8}", WRONG),
    ("pi-sign", "4\\pi", "\\boxed{4\u03c0}", RIGHT),
    ("pi-rounded", "\\pi", "\\boxed{3.14}", WRONG),
    ("square-sign", "x^2", "\\boxed{x\u00b2}", RIGHT),
    ("degree-sign", "90^\\circ", "\\boxed{90\u00b0}", RIGHT),
    ("degrees-in-words", "90^\\circ", "\\boxed{90 \\text{ degrees}}", RIGHT),
    ("minus-sign", "-5", "\\boxed{\u22125}", RIGHT),
    ("mixed", "\\frac{7}{2}", "\\boxed{3\\frac{1}{2}}", RIGHT),
    ("mixed-is-no-product", "\\frac{3}{2}", "\\boxed{3\\frac{1}{2}}", WRONG),
    ("dollars", "\\$18.90", "\\boxed{18.90}", RIGHT),
    ("dollars-stated", "\\$36", "The answer is $\\$36$.", RIGHT),
    ("name", "\\text{Evelyn}", "\\boxed{Evelyn}", RIGHT),
    ("names", "\\text{Evelyn}", "\\boxed{\\text{Carla or Evelyn}}", WRONG),
    ("letter", "\\text{(C)}", "\\boxed{C}", RIGHT),
    ("letters", "\\text{(C)}", "\\boxed{A, B, C}", WRONG),
    ("base", "2516_8", "\\boxed{2516_{8}}", RIGHT),
    ("base-other", "2516_8", "\\boxed{2516_7}", WRONG),
    ("base-unasked", "12", "\\boxed{12_3}", WRONG),
    ("matrix", "\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "\\boxed{\\begin{bmatrix}1\\\\2\\end{bmatrix}}", RIGHT),
    ("line", "y = 2x + 3", "\\boxed{2x+3}", RIGHT),
    ("sum-in-words", "9", "The solutions are $3$ and $6$, whose sum is 9.", RIGHT),
    ("sum-in-words-other", "6", "The solutions are $3$ and $6$, whose sum is 9.", WRONG),
    ("restated-sum", ("What is $2+3$?", "5"), "\\boxed{2+3}", WRONG),
    ("restated-log", ("Evaluate $\\log_2 8$.", "3"), "\\boxed{\\log_2 8}", WRONG),
    ("restated-log-braces", ("Evaluate $\\log_2 8$.", "3"), "\\boxed{\\log_{2} 8}", WRONG),
    ("restated-binomial", ("Compute $\\dbinom{8}{4}$.", "70"), "\\boxed{\\binom{8}{4}}", WRONG),
]


@listed(MATH500)
def test_math500(facts: Any, text: str, verdict: bool) -> None:
    grade = graded("math500", facts, text)
    assert grade.correct is verdict, grade


# GPQA

GPQA: list[Case] = [
    *all_of(
        RIGHT,
        "B",
        "names-b",
        "The answer is (B).",
        "the correct answer is **B**.",
        "Answer: B) beta",
        "**Answer:** (B) beta",
        "ANSWER: B",
        "The answer is:\n\n**B) beta**",
        "\\boxed{B}",
        "\\boxed{\\text{(B)}}",
        "\\boxed{\\text{B. beta}}",
        "\\boxed{\\text{Option B}}",
        "<answer>\nB\n</answer>",
        "<answer>B. a cat and c</answer>",
        "<answer>The answer is B.</answer>",
        "<answer>Option B: a cat and d</answer>",
        "B",
        "**(B)**",
        "B) beta",
        "Therefore, the correct answer is option (B): beta.",
        "The answer is (B) beta, not (A) alpha.",
        "The answer is (B).\n\nQuestion: ?\nChoices:\n(A) x\nReasoning: The answer is (C).",
        "The answer is **B) beta**.\n\nThe others fail:\n(A) is too small\n(C) is too large\n(D) is absurd",
        'The answer is "B".',
        "The answer is $B$.",
        "The answer is therefore (B).",
        "The answer is (B)<|endoftext|>",
        "the answer is (b)",
        "The correct option is **B**",
        "The correct option is B.",
        "Correct option: B",
        "Option B is correct.",
        "Option B: beta",
        "B is the correct answer.",
        "Hence B is the correct answer.",
        "The answer is B because A is a trap.",
        "The answer is B and not A.",
        "The answer is not (A) but (B).",
        "The answer should be B.",
        "The answer is beta, which is B.",
        "The answer is Option B: beta",
        "The answer is `B`.",
        "The answer is 'B'.",
        "The answer is $\\mathbf{B}$",
        "### Final Answer\n\n**B**",
        "The right answer here is B",
    ),
    *all_of(
        WRONG,
        "B",
        "not-b",
        "The answer is (A).",
        "The answer is B or C",
        "The answer is (A) or (B).",
        "The answer is (B) or possibly (C).",
        "The answer is B, or maybe C",
        "The answer is B & C",
        "The answer is B; C",
        "The answer is (B)(C)",
        "The answer is (D), (C), (A), (B)",
        "The answer is neither (A) nor (B).",
        "The answer is not (B).",
        "The answer is not B.",
        "The answer is E",
        "\\boxed{B, C}",
        "\\boxed{B \\text{ or } C}",
        "\\boxed{A,B,C,D}",
        "<answer>A B C D</answer>",
        "<answer>B\nC</answer>",
        "<answer>BC</answer>",
        "<answer>a+b</answer>",
        "I don't know: (A) or (B)",
        "",
    ),
    *[
        (f"{name}-{letter}", letter, text, WRONG)
        for letter in "ABCD"
        for name, text in {
            "quotes-choices": "(A) alpha\n(B) beta\n(C) gamma\n(D) delta",
            "quotes-choices-dots": "A. alpha\nB. beta\nC. gamma\nD. delta",
            "quotes-choices-line": "(A) alpha (B) beta (C) gamma (D) delta",
            "answers-choices": "The answer is\n(A) alpha\n(B) beta\n(C) gamma\n(D) delta",
            "tags-choices": "<answer>(A) alpha\n(B) beta\n(C) gamma\n(D) delta</answer>",
            "boxes-letters": "\\boxed{A B C D}",
            "one-of": "The answer is one of (A), (B), (C), (D).",
        }.items()
    ],
    ("article", "A", "The answer is a matter of taste.", WRONG),
    ("article-in-tags", "A", "<answer>the product is a ketone</answer>", WRONG),
    ("sum-in-box", "A", "\\boxed{a + b}", WRONG),
    ("celsius", "C", "<answer>5 \u00b0C</answer>", WRONG),
    ("vitamin", "D", "<answer>vitamin D</answer>", WRONG),
    ("orbital", "D", "<answer>d orbital</answer>", WRONG),
    ("sugar", "D", "The answer is D-glucose", WRONG),
    ("carbonyl", "C", "The answer is C=O stretch", WRONG),
    ("denied", "A", "The answer is not (A) but (B).", WRONG),
    ("denied-in-tags", "A", "<answer>not A</answer>", WRONG),
]


GPQA += [
    *all_of(
        RIGHT,
        "C",
        "three-are-rejected",
        "Options A, B, and D are wrong.",
        "Options (A), (B) and (D) are incorrect.",
        "A, B and D can be excluded.",
        "We can eliminate A, B and D.",
        "B is too small. So options A, B, and D are wrong.",
    ),
    *all_of(
        WRONG,
        "C",
        "none-is-left",
        "Options A and B are wrong.",
        "Options A, B, and A are wrong.",
        "Options A, B, C, and D are wrong.",
        "Options A, B, and D are wrong, and C is too.",
        "C is too small. Options A, B, and D are wrong.",
        "Are options A, B, and D wrong?",
        "Options A, B, and D are not wrong.",
        "We cannot eliminate A, B and D.",
        "We don't exclude A, B or D.",
        "If options A, B, and D are wrong, we have to look further.",
        "Options A, B, and D may be wrong.",
        "Options A, B, and D are wrong, so none is right.",
        "A and B can be excluded; D too.",
        "A is right. Options A, B, and D are wrong.",
        "Options A, B, and D are right.",
        "A, B, D",
    ),
]


@listed(GPQA)
def test_gpqa(facts: str, text: str, verdict: bool) -> None:
    grade = graded("gpqa", facts, text)
    assert grade.correct is verdict, grade


# Countdown

FIFTY = (15, 44, 79, 50)
TWELVE = (8, 3, 2, 12)
COUNTDOWN: list[Case] = [
    *all_of(
        RIGHT,
        FIFTY,
        "fifty",
        "44-15=29,79-29=50",
        "The answer is: 44-15=29,79-29=50.",
        "79 - (44 - 15)",
        "50 = 79 - (44 - 15)",
        "<answer>\\boxed{79 - (44 - 15)}</answer>",
        "\\boxed{79 - (44 - 15)",
        "15 + 79 = 94\n94 - 44 = 50",
        "1. 15 + 79 = 94\n2. 94 - 44 = 50",
        "- 15 + 79 = 94\n- 94 - 44 = 50",
        "Step 1: 15 + 79 = 94\nStep 2: 94 - 44 = 50",
        "| 1 | 15 + 79 = 94 |\n| 2 | 94 - 44 = 50 |",
        "**15 + 79 = 94**, then **94 - 44 = 50**",
        "\\(15 + 79 = 94\\)\n\\(94 - 44 = 50\\)",
        "15 + 79 \u2212 44 = 50",
        "15 + 79 - 44\n= 94 - 44\n= 50",
        "\\begin{aligned}\n15 + 79 &= 94 \\\\\n94 - 44 &= 50\n\\end{aligned}",
        "\\begin{aligned}\n79-44+15&=35+15\\\\\n&=50\n\\end{aligned}",
        "79 - 29 = 50, where 44 - 15 = 29.",
        "15 + 79 - 44 = 50\n\\boxed{50}",
        "15*44 = 660 is too much.\nThe answer is: 15+79=94,94-44=50",
        "15+79-44=50. This uses 15, 79 and 44 once each.",
        "```python\n79 - (44 - 15)\n```",
        "15+79-44=50 does it.\n15+44+79=138 does not.\nSo 15+79-44=50.",
        "15+79=94,94-44=50<|endoftext|>",
        "The answer is: 79-44=35,35+15=50\n\nNumbers: 8,13,47\nTarget: 57\nSolution: The answer is: 8*13=104,104-47=57",
    ),
    *all_of(
        WRONG,
        FIFTY,
        "not-fifty",
        "",
        "50",
        "\\boxed{50}",
        "Numbers: 15,44,79\nTarget: 50",
        "79-29=50",
        "44-15=29",
        "25+25=50",
        "50*1=50",
        "15+79=94,94-44=51",
        "15+79=94,94-45=50",
        "15+79=95,95-45=50",
        "79-44+15=51",
        "79-15-44=50",
        "79-44+15+0=50",
        "(15+79-44)/1=50",
        "44+44-44-44+15+79-44=50",
        "15+79-44=50=51",
        "15+79=94-44=50",
        "15+79=94,94-44=50,50+1=51",
        "15+79-44=50 or 79-15-44=20",
        "15+79-44=50\n<answer>79-29=50</answer>",
        "1544-79=50",
        "79-44+15 \\neq 50",
        "79-44+15 \u2260 50",
    ),
    *all_of(
        RIGHT,
        TWELVE,
        "twelve",
        "8*3=24,24/2=12",
        "\\frac{8 \\times 3}{2} = 12",
        "8 \u00d7 3 \u00f7 2 = 12",
        "8x3/2=12",
        "8 x 3 = 24\n24 / 2 = 12",
        "8/(2/3)=12",
        "3/2=1.5,1.5*8=12",
        "**8 * 3 / 2 = 12**",
        "8\\*3=24,24/2=12",
        "8\u22173/2=12",
        "8\u22193/2=12",
        "8\u20223/2=12",
    ),
    ("rounded-quotient", TWELVE, "2/3=0.67,8/0.67=12", WRONG),
    ("thousands", (50, 40, 25, 1975), "50*40=2,000 and 2,000-25=1,975", RIGHT),
    ("thousands-braces", (50, 40, 25, 1975), "50*40=2{,}000 and 2{,}000-25=1{,}975", RIGHT),
    ("negative-step-first", (3, 8, 20, 15), "3-8=-5,-5+20=15", RIGHT),
    ("negative-step-last", (3, 8, 20, 15), "3-8=-5,20+-5=15", RIGHT),
    ("negative-step-brackets", (3, 8, 20, 15), "3-8=-5, 20+(-5)=15", RIGHT),
    ("negative-step-minus", (3, 8, 20, 25), "3-8=-5, 20-(-5)=25", RIGHT),
    ("same-step-twice", (1, 1, 2, 2), "2*1=2,2*1=2", RIGHT),
    ("one-left-out", (1, 1, 2, 2), "2*1=2", WRONG),
    ("step-equals-a-number", (10, 20, 30, 60), "10+20=30,30+30=60", RIGHT),
    ("number-twice", (10, 20, 30, 60), "30+30=60", WRONG),
    ("zero-without-numbers", (10, 20, 30, 0), "30-30=0", WRONG),
    ("zero", (10, 20, 30, 0), "10+20=30,30-30=0", RIGHT),
]


@listed(COUNTDOWN)
def test_countdown(facts: tuple[int, ...], text: str, verdict: bool) -> None:
    grade = graded("countdown", facts, text)
    assert grade.correct is verdict, grade


# Sudoku

CLUES, SOLVED, OTHER = "3102200002100320", "3142243142131324", "1234341221434321"
ROWS = [SOLVED[at : at + 4] for at in range(0, 16, 4)]
GIVEN = [CLUES[at : at + 4] for at in range(0, 16, 4)]


def grid(row: str, between: str = "\n", cells: str = " ") -> str:
    """The solved rows; {n} is a row's number, {row} its digits."""
    return between.join(row.format(n=n, row=cells.join(digits)) for n, digits in enumerate(ROWS, 1))


TABLE = "| {row} |"
SUDOKU: list[Case] = [
    *all_of(
        RIGHT,
        CLUES,
        "solved",
        SOLVED,
        f"<answer>{SOLVED}</answer>",
        f"<answer>\n{SOLVED}",
        f"{SOLVED}</answer>",
        f"**Answer:** {SOLVED}",
        f"\\boxed{{{SOLVED}}}",
        f"{SOLVED}<|eot_id|>",
        grid("{row}", cells=""),
        f"<answer>\n{grid('{row}')}\n</answer>",
        f"```\n{grid('{row}')}\n```",
        grid(TABLE, cells=" | "),
        f"|   |   |   |   |\n|---|---|---|---|\n{grid(TABLE, cells=' | ')}",
        grid("Row {n}: {row}"),
        grid("- **Row {n}:** {row}  "),
        grid("{n}. {row}"),
        grid("Row {n}: [{row}]", cells=", "),
        f"[{grid('[{row}]', ', ', ',')}]",
        grid("{row}", " ", ""),
        "\\begin{bmatrix}\n" + grid("{row}", " \\\\\n", " & ") + "\n\\end{bmatrix}",
        f"Puzzle: {CLUES}\nSolution: {SOLVED}",
        "\n".join(["Puzzle:", *GIVEN, "Answer:", *ROWS]),
        "\n".join([*GIVEN, "", *ROWS]),
        grid("{row}", "\r\n"),
        grid("R{n}: {row}"),
        grid("Row {n} - {row}"),
        grid("Row {n} is {row}"),
        grid("Row {n} \u2192 {row}"),
        f"| | Col 1 | Col 2 | Col 3 | Col 4 |\n|---|---|---|---|---|\n{grid('| Row {n} | {row} |', cells=' | ')}",
        "\\begin{array}{|c|c|c|c|}\n\\hline\n" + grid("{row} \\\\ \\hline", cells=" & ") + "\n\\end{array}",
        f"The answer is {SOLVED} (16 digits).",
        f"Step 4: {SOLVED}",
        f"<answer>{SOLVED}</answer>\n\nPuzzle:\n0000\n0000\n0000\n0000\nAnswer: <answer>{OTHER}</answer>",
    ),
    *all_of(
        WRONG,
        CLUES,
        "unsolved",
        "",
        CLUES,
        "\n".join(GIVEN),
        f"<answer>{CLUES}</answer>",
        OTHER,
        f"{SOLVED[:-1]}3",
        SOLVED[:-1],
        f"{SOLVED}1",
        f"1{SOLVED}",
        f"<answer>{SOLVED[:-1]}</answer>",
        f"{SOLVED}\n{OTHER}",
        f"{SOLVED}\n<answer>{OTHER}</answer>",
        f"<answer>{OTHER}</answer>\n{SOLVED}",
        f"<answer>{OTHER} or {SOLVED}</answer>",
        f"<answer>{OTHER}{SOLVED}</answer>",
        f"The answer is {OTHER}. Not {SOLVED}.",
        "\n".join(ROWS[:3]),
        "\n".join([*ROWS[1:], ROWS[0]]),
        "1234" * 4,
        "1111222233334444",
    ),
]


@listed(SUDOKU)
def test_sudoku(facts: str, text: str, verdict: bool) -> None:
    grade = graded("sudoku", facts, text)
    assert grade.correct is verdict, grade


# Spans, and texts made to do harm


@pytest.mark.parametrize(
    ("task", "facts", "text", "span"),
    [
        ("gsm8k", "18", "9 * 2 = 18\n#### $18.", "$18"),
        ("gsm8k", "18", "\\boxed{18 \\text{ dollars}} for 9", "18"),
        ("math500", HALF, "So $\\boxed{\\frac{1}{2}}$.", HALF),
        ("math500", "5", "The answer is **5**. Done.", "5"),
        ("gpqa", "B", "The answer is **(B)** beta", "B"),
        ("gpqa", "B", "A\n<answer>B</answer>", "B"),
        ("countdown", FIFTY, "The answer is: 44-15=29,79-29=50.", "44-15=29,79-29=50"),
        ("countdown", FIFTY, "So \\(79 - (44 - 15) = 50\\).", "79 - (44 - 15) = 50"),
        ("sudoku", CLUES, f"Done:\n<answer>\n{SOLVED}\n</answer>", SOLVED),
        ("sudoku", CLUES, grid("Row {n}: {row}"), grid("Row {n}: {row}").removeprefix("Row 1: ")),
    ],
)
def test_span_is_the_answer(task: str, facts: Any, text: str, span: str) -> None:
    grade = graded(task, facts, text)
    assert grade.correct and grade.span is not None
    assert text[slice(*grade.span)] == span


@contextmanager
def within(seconds: float, cpu: bool = True) -> Iterator[None]:
    """Raises after so many seconds: of this process's own work, which does not depend on others, or of the clock."""

    def late(signum: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"took longer than {seconds} s")

    timer, number = (signal.ITIMER_VIRTUAL, signal.SIGVTALRM) if cpu else (signal.ITIMER_REAL, signal.SIGALRM)
    before = signal.signal(number, late)
    signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)


TOLD = {"gsm8k": "18", "gpqa": "B", "countdown": FIFTY, "sudoku": CLUES, "math500": "18"}
HOSTILE = {
    "gsm8k": [
        "1",
        "\\boxed{",
        "<answer>",
        " -1",
        "1,",
        "#### 1 ",
        "one hundred ",
        "not 1 ",
        "answer is > 1. ",
        "5\u00bd",
        "1,00 \u20ac",
        "1 (since ",
        ", as ",
        "2\u221a",
        "1 million ",
        "1.(",
        "$1k ",
    ],
    "gpqa": [
        " ",
        "\n",
        "\\boxed{",
        "(A)",
        "answer is ",
        "not (A). ",
        "A, ",
        "A: correct. ",
        "A and ",
        "# ",
        "_",
        "so A ",
        "A, B and D are wrong. ",
    ],
    "countdown": ["1", "\n", "(", "1=", "1+1=2,", "\\frac{1}{", "|1", "1-", "(1)", "1+1 is not it. "],
    "sudoku": [
        "(",
        " ",
        "1",
        "1 2 3 4\n",
        "Row 1: ",
        "not 1",
        "no solution ",
        "row one ",
        "First row: 1 2 3 4. ",
        "1. ",
    ],
    "math500": [
        "\\(",
        "\\boxed{",
        "*",
        "```",
        "$",
        "{",
        "\\boxed{> 1}",
        "not 1 ",
        "1k",
        "\\boxed{1}, ",
        "1^",
        "1 base ",
    ],
}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize(("task", "piece"), [(task, piece) for task, pieces in HOSTILE.items() for piece in pieces])
def test_long_texts_take_no_time_and_break_nothing(task: str, piece: str) -> None:
    graded(task, TOLD[task], "0")  # whatever is started once is started
    text = (piece * 20_000)[:20_000]
    with within(1.5):
        assert not graded(task, TOLD[task], text).correct


@pytest.mark.parametrize("piece", ["(1", "(1+", "1+(1", "((1)", "\\frac{1"])
def test_open_brackets_are_read_once(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: some steps for each token that is looked at, however deep the brackets go."""
    asked, real = list[int](), arithmetic._Parser.factor
    monkeypatch.setattr(arithmetic._Parser, "factor", lambda self, depth: (asked.append(depth), real(self, depth))[1])
    arithmetic.equations(everything(piece * (20_000 // len(piece))))
    assert len(asked) < 4 * arithmetic.MAX_TOKENS


def test_many_ways_to_each_number_take_no_time() -> None:
    steps = [f"{n}-{n - 15}=15,{n}-{n - 44}=44,{n}+{79 - n}=79" for n in range(50, 78)]
    with within(1.0):
        graded("countdown", FIFTY, ",".join([*steps, "15+79-44=50"]))


PROVER = """
import sys, time
for line in sys.stdin:
    slow = "slow" in line
    time.sleep(0.5 if slow else 0)
    print("false" if slow else "true", flush=True)
"""
"""Stands for the process of math-verify: it says that all formulas are equal but "slow", and that after a while."""


@pytest.fixture
def prover(monkeypatch: pytest.MonkeyPatch) -> Iterator[formulas.Formulas]:
    pipe = subprocess.PIPE
    monkeypatch.setattr(
        formulas, "_start", lambda: subprocess.Popen([sys.executable, "-c", PROVER], stdin=pipe, stdout=pipe)
    )
    asked = formulas.Formulas()
    yield asked
    monkeypatch.undo()
    asked.close()


def test_an_interrupted_question_is_not_answered_to_the_next(prover: formulas.Formulas) -> None:
    """The process still works on the old question; its answer must not be taken for the new one's."""
    assert prover.same("a", "b")[0]
    with pytest.raises(TimeoutError), within(0.2, cpu=False):
        prover.same("a", "slow")
    assert prover.same("a", "c")[0]


def test_a_long_comparison_holds_up_no_other_thread(prover: formulas.Formulas) -> None:
    assert prover.same("a", "b")[0]
    order = []
    slow = threading.Thread(target=lambda: order.append(prover.same("a", "slow")[0]))
    slow.start()
    while prover._idle[os.getpid()]:  # until the thread has taken the process
        time.sleep(0.01)
    order.append(prover.same("a", "c")[0])
    slow.join()
    assert order == [True, False]


def test_a_fork_starts_its_own_process(prover: formulas.Formulas, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes on one pipe would read each other's results."""
    assert prover.same("a", "b")[0]
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        assert prover.same("a", "c")[0]
        prover.close()
    assert [len(idle) for idle in prover._idle.values()] == [1, 0]


@pytest.mark.parametrize("formula", ["\\binom{900000000}{50000000}", "\\binom{100000000}{5000000}"])
def test_a_long_comparison_ends_in_its_time(formula: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arithmetic of big integers calls no Python handler, so the kernel must end the process."""
    pytest.importorskip("math_verify")
    monkeypatch.setattr(formulas, "CPU_SECONDS", 1.0)
    asked = formulas.Formulas()
    try:
        with within(45, cpu=False):
            assert asked.same("9", formula) == (False, "comparing them took too long")
        assert asked.same("2", "\\frac{4}{2}")[0]
    finally:
        asked.close()


@pytest.mark.parametrize(
    "formula", ["9^{9^{9^{9}}}", "1000000!", "9^{9^9}", "(9^9)^{9^9}", "2^{3^{4^{5}}}", "x^{9^{9^9}}", "(1000000)!"]
)
def test_a_huge_number_is_not_computed(formula: str) -> None:
    assert formulas.is_too_large(formula)


@pytest.mark.parametrize("formula", ["2^{2004}", "10^{100}", "100!", "3^{2^{10}}", "x^{2^n}", "1.5^2", "7!!"])
def test_a_large_number_is_computed(formula: str) -> None:
    assert not formulas.is_too_large(formula)


REVIEWED = [
    ("9", "\\boxed{3^2 = 9}", True),
    ("1024", "\\boxed{2^{10} = 1024}", True),
    ("55", "\\boxed{F_{10} = 55}", True),
    ("10", "\\boxed{\\binom{5}{2} = 10}", True),
    ("x^2 + y^2 - 4 = 0", "\\boxed{y^2 + x^2 - 4 = 0}", True),
    ("\\frac{3}{2}", "\\boxed{\\log_4 8 = \\frac{3}{2}}", True),
    ("120", "\\boxed{5!=120}", True),
    ("9", "\\boxed{9} and \\boxed{8}", False),
    ("9", "\\boxed{9}, \\boxed{8}", False),
    ("9", "The answer is $9$ and $8$", False),
    ("9", "\\boxed{9 \\text{ red and } 8 \\text{ blue}}", False),
    ("1,-2", "\\boxed{1} and \\boxed{-2}", True),
    ("9", "The answer is 9 divisors", True),
    ("9", "So 196 has 9 divisors.", True),
]


@pytest.mark.parametrize(("gold", "text", "verdict"), REVIEWED)
def test_math500_after_a_review(gold: str, text: str, verdict: bool) -> None:
    pytest.importorskip("math_verify")
    task = find_task("math500")
    grade = task.grade(task.read({"problem": "?", "answer": gold}, 0), text)
    assert grade.correct is verdict, grade


@pytest.mark.parametrize(
    ("name", "row", "text", "verdict"),
    [
        ("countdown", {"input": "1,2,12,25", "output": "-"}, "(2)(12)+1", True),
        ("countdown", {"input": "1,2,12,25", "output": "-"}, "12*2+1^1", False),
        ("countdown", {"input": "1,2,12,25", "output": "-"}, "12*2+1\n\nNumbers: 1,2,3\nTarget: 6\n1+2+3", True),
        ("gsm8k", {"question": "?", "answer": "#### 18"}, "The answer is not 18.", False),
        ("gsm8k", {"question": "?", "answer": "#### 18"}, "The answer is not 17 but 18.", True),
    ],
)
def test_others_after_a_review(name: str, row: dict[str, str], text: str, verdict: bool) -> None:
    task = find_task(name)
    assert task.grade(task.read(row, 0), text).correct is verdict


def test_the_released_code_stops_where_it_stops() -> None:
    task = find_task("gsm8k")
    example = task.read({"question": "?", "answer": "#### 18"}, 0)
    for text in ("18</s> 7", "18<|im_end|> 7", "18 Question: 7"):
        assert task.grade(example, text, "paper").correct
    assert not task.grade(example, "Question: 18", "paper").correct and task.grade(example, "Question: 18").correct


SOLVED = ("3142", "2431", "4213", "1324")


@pytest.mark.parametrize(
    "text",
    [
        ", ".join(f"Row {n}: {row}" for n, row in enumerate(SOLVED, 1)),
        "{}, {}, {} and {}".format(*SOLVED),
        f"<answer>{'<br>'.join(SOLVED)}</answer>",
        f"{''.join(SOLVED)}\n\nPuzzle:\n1000\n0021\n0130\n3410\nAnswer: 1243432121343412",
        "\\begin{array}{|c|c|c|c|}\\hline\n" + "\n".join(f"{' & '.join(row)} \\\\ \\hline" for row in SOLVED),
    ],
)
def test_more_layouts_of_a_grid(text: str) -> None:
    task = find_task("sudoku")
    assert task.grade(task.read({"Puzzle": "3102200002100320", "Solution": "".join(SOLVED)}, 0), text).correct
