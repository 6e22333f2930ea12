"""Sound reasoning: every equation holds and follows, in gold answers and never in broken chains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.evals.runs import sample
from uncode.evals.grade.arithmetic import read_sides
from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.families.algebra import Worked
from uncode.evals.suite.families.reasoning import grade_reasoning
from uncode.evals.suite.families.story import Solved
from uncode.evals.suite.from_run import cell_of
from uncode.evals.suite.outcomes import Outcome
from uncode.evals.suite.report import reasoning
from uncode.evals.suite.results import CellResults, Results
from uncode.evals.task import Grade

STORY = Solved("", "Ada has 9 eggs. Ben has 16 more eggs than Ada. Cleo has twice as many eggs as Ben.", "50")
CHAIN = " Ben has 9 + 16 = 25 eggs.\nCleo has 25 * 2 = 50 eggs.\n#### 50"
SOLVE = Worked("", "Solve for x: 6(x + 3) - 9 = 3x + 111", "34")
STEPS = (
    " Expand: 6x + 18 - 9 = 3x + 111. Add: 6x + 9 = 3x + 111. Subtract 3x: 3x + 9 = 111. Subtract 9: 3x = 102."
    " Divide by 3: x = 34. So the answer is \\boxed{34}."
)
LETTERS = Worked("", "Let a = 12, b = a - 30 and c = 4b. Compute c", "-72")


@pytest.mark.parametrize("name", ["mini_story", "mini_algebra"])
def test_every_gold_answer_is_sound_except_one_without_reasoning(name: str) -> None:
    """All held-out problems, their styles in turn: each style of each problem would take long."""
    family = FAMILIES[name]
    styles = [style for style, _ in family.styles if style != "direct"]
    for number, example in enumerate([*family.examples(), *family.unlabelled()]):
        grade = family.grade(example, family.response(example, styles[number % len(styles)]), "sound")
        assert grade.correct, (example, grade)
        if number < 10:
            without = family.grade(example, family.response(example, "direct"), "sound")
            assert not without.correct and without.why == "there is no equation"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("9 + 16 = 25", "9 + 16 = 95", "'9 + 16 = 95' is false"),
        ("9 + 16 = 25", "9 + 6 = 15", "computes with 6, which is neither given nor a result"),
        ("25 * 2 = 50", "35 * 2 = 70", "computes with 35"),
        ("25 * 2 = 50", "50 = 50", "computes with 50"),
        ("25 * 2 = 50", "50 = 25 * 2 = 50", "computes with 50"),
        ("#### 50", "#### 25", "the final answer is not the result of the last equation"),
        ("#### 50", "####", ""),
        ("Cleo has 25 * 2 = 50 eggs.\n", "", "the final answer is not"),
        ("25 * 2 = 50", "25 * = 50", "'25 * = 50' cannot be read"),
        ("25 * 2 = 50", "25 * 2 = = 50", "cannot be read"),
        ("25 * 2 = 50", "25 * 2 =", "cannot be read"),
        ("25 * 2 = 50", "25 y * 2 = 50", "cannot be read"),
        ("25 * 2 = 50", "25x = 25x", "does not follow by one operation"),
        (CHAIN, "#### 50", "there is no equation"),
        (CHAIN, "", "there is no equation"),
        (CHAIN, "I know that it is 50.", "there is no equation"),
    ],
)
def test_a_broken_chain_is_not_sound(old: str, new: str, why: str) -> None:
    family = FAMILIES["mini_story"]
    assert family.grade(STORY, CHAIN, "sound").correct and old in CHAIN
    text = CHAIN.replace(old, new)
    grade = family.grade(STORY, text, "sound")
    if why:
        assert not grade.correct and why in grade.why
    else:  # without a number after the mark, the grader takes the last one, which is the last result
        assert grade.correct and family.grade(STORY, text).correct


def test_an_answer_may_be_right_without_being_sound_and_sound_without_being_right() -> None:
    family = FAMILIES["mini_story"]
    lucky = CHAIN.replace("9 + 16 = 25", "9 + 16 = 95")
    assert family.grade(STORY, lucky).correct and not family.grade(STORY, lucky, "sound").correct
    assert lucky[slice(*family.grade(STORY, lucky, "sound").span)] == "9 + 16 = 95"  # type: ignore[misc]
    misread = " Ben has 16 - 9 = 7 eggs.\nCleo has 7 * 2 = 14 eggs.\n#### 14"
    assert not family.grade(STORY, misread).correct and family.grade(STORY, misread, "sound").correct


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("3x = 102", "3x = 112"),  # false
        ("6x + 18 - 9", "6x + 3 - 9"),
        (" Subtract 9: 3x = 102. Divide by 3: x = 34.", " So 3x = 111. Then x = 34."),
        (
            "Expand: 6x + 18 - 9 = 3x + 111. Add: 6x + 9 = 3x + 111. Subtract 3x: 3x + 9 = 111. Subtract 9: 3x = 102. ",
            "",
        ),
        (" Divide by 3: x = 34.", ""),  # its last equation says nothing of x alone
        ("3x = 102", "3x 102 ="),
        ("3x = 102", "3x = 102 = 102"),
        ("3x = 102", "0 = 0x"),
        ("boxed{34}", "boxed{37}"),
    ],
)
def test_an_equation_that_does_not_follow_is_not_sound(old: str, new: str) -> None:
    family = FAMILIES["mini_algebra"]
    assert family.grade(SOLVE, STEPS, "sound").correct and old in STEPS
    assert not family.grade(SOLVE, STEPS.replace(old, new), "sound").correct


def test_an_equation_with_x_needs_one_in_the_problem() -> None:
    assert not grade_reasoning("Compute 3 + 4", "x = 7. The answer is 7", (21, 22)).correct
    assert not grade_reasoning("Let f(x) = 2x and h(x) = 3x. Compute f(h(1))", "3x = 3x", (0, 1)).correct


def test_letters_get_values_and_a_result_may_be_negative() -> None:
    text = "b = 12 - 30 = -18\nc = 4 * -18 = -72\n\\boxed{-72}"
    family = FAMILIES["mini_algebra"]
    assert family.grade(LETTERS, text, "sound").correct
    assert family.grade(LETTERS, text.replace("b =", "a = 12. b ="), "sound").correct, "what is given may be said again"
    assert not family.grade(LETTERS, text.replace("b = 12 - 30 =", "b ="), "sound").correct
    assert not family.grade(LETTERS, text.replace("4 * -18", "4 * 18"), "sound").correct
    assert not grade_reasoning("Compute 3 + 4", "3 + 4 = 7", None).correct, "an answer is needed"


def test_sides_are_those_of_a_whole_text() -> None:
    assert [side.value for side in read_sides(" 2(3 + 4) = 14 ")] == [14, 14] and len(read_sides("7")) == 1
    assert read_sides("") == read_sides("2 = 2 =") == read_sides("about 2 = 2") == read_sides("2 \\ne 3") == ()


def test_a_cell_holds_what_was_graded() -> None:
    """A run that was graded before soundness was known has none; grading it again adds it."""
    known = [sample(("tiny", "mini_story", "eb"), number, (True, True)) for number in range(3)]
    graded = [
        replace(one, grades={**one.grades, "sound": Grade(value, None, "")})
        for one, value in zip(known, (True, False, True), strict=True)
    ]
    assert cell_of([Outcome.of(one) for one in graded]).sound == "101"
    assert cell_of([Outcome.of(one) for one in [*graded[:2], known[2]]]).sound is None


def marked(right: str, sound: str | None) -> CellResults:
    return CellResults(right, "0" * len(right), 5.0, 5.0, sound)


def test_right_and_sound_stand_side_by_side() -> None:
    about = {"model": "small", "dtype": "float32", "problems": 4, "training_seed": 0}
    left, lucky = marked("1110", "1110"), marked("1111", "0111")
    cells = {
        "mini_story": {"left_to_right": left, "eb": lucky, "margin": marked("1111", None)},
        "mini_algebra": {"left_to_right": left, "eb": lucky, "margin": left},
        "mini_sudoku": {"left_to_right": marked("1111", None), "eb": marked("1111", None), "margin": marked("1", None)},
    }
    table = reasoning(Results(about, cells, {}, {}))
    assert table is not None
    titles = ["story right", "story sound", "algebra right", "algebra sound"]
    assert table.titles == ["sampler", *titles, "right, not sound", "sound minus left_to_right"]
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["left_to_right"] == ["75.0", "75.0", "75.0", "75.0", "0.0", "-"]
    assert rows["eb"][:5] == ["100.0", "75.0", "100.0", "75.0", "25.0"] and rows["eb"][5].startswith("+0.0 [")
    assert rows["margin"] == ["100.0", "-", "75.0", "75.0", "-", "-"], "a dash where it was not measured"
    without = {family: {name: replace(one, sound=None) for name, one in of.items()} for family, of in cells.items()}
    assert reasoning(Results(about, without, {}, {})) is None
