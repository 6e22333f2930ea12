"""The benchmarks in miniature: right in every style, no problem on both sides, a second opinion on the graders."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.families.functions import draw_function
from uncode.evals.suite.families.sudoku import grids
from uncode.evals.tasks import TASKS, find_task

WHY = "reasoning-gym is a second opinion on our graders: make verify"
PROGRAMS = ("mini_docstring", "mini_sentence")


def test_there_is_a_family_for_each_benchmark_of_the_paper() -> None:
    assert [family.benchmark for family in FAMILIES.values()] == list(TASKS)
    assert all(name == family.name for name, family in FAMILIES.items())
    assert [name for name, family in FAMILIES.items() if len(family.styles) == 1] == ["mini_sudoku"]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_style_of_answer_is_right_and_no_other_problems_answer_is(name: str) -> None:
    family = FAMILIES[name]
    found = family.problems(8 if name in PROGRAMS else 40, seed=3, testing=True)
    for number, example in enumerate(found):
        for style, _ in family.styles:
            grade = family.grade(example, family.response(example, style))
            assert grade.correct and grade.span is not None, (style, grade)
        other = found[number - 1]
        wrong = family.grade(example, family.response(other, family.styles[0][0]))
        assert not wrong.correct or _answer(example) == _answer(other) or name in PROGRAMS


def _answer(example: Any) -> str:
    return str(getattr(example, "answer", getattr(example, "solution", "")))


@pytest.mark.parametrize("name", FAMILIES)
def test_train_and_test_share_no_problem(name: str) -> None:
    """Compared as texts, whatever the families say of themselves; the seeds are neighbours on purpose."""
    family, many = FAMILIES[name], 400
    train = family.problems(many, seed=0, testing=False)
    test = family.problems(many // 4, seed=1, testing=True)

    def essence(example: Any) -> str:
        text = family.prompt(example)
        if name in PROGRAMS:
            return re.sub(r"def \w+|Function: \w+", "", text)
        if name == "mini_countdown":
            return str((sorted(example.numbers), example.target))
        if name == "mini_sudoku":
            return str(example.solution)
        if name == "mini_choice":
            return " ".join(re.findall(r"under \w+ \w|\w-\w", text))
        return re.sub(r"[^\w+=-]+", " ", text).lower()

    assert not {essence(e) for e in train} & {essence(e) for e in test}
    assert len({family.key(e) for e in train}) == many
    assert [family.prompt(e) for e in family.problems(20, seed=0, testing=False)] == [
        family.prompt(e) for e in train[:20]
    ]


def test_no_story_is_taught_under_other_names() -> None:
    """Compares the equations of tested problems with those of training examples: names and items do not count."""
    from uncode.train.examples.curriculum import draw

    def equations(text: str) -> tuple[str, ...]:
        return tuple(sorted(re.findall(r"\d+ . \d+ = \d+", text)))

    family = FAMILIES["mini_story"]
    tested = {equations(family.response(example, "terse")) for example in family.examples()}
    taught = {found for example in draw("mini_story", 0, 0, 3000) if (found := equations(example.response))}
    assert len(tested) > 1000 and len(taught) > 900 and not tested & taught


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.direct])
def test_a_direct_answer_begins_as_the_family_says(name: str) -> None:
    family = FAMILIES[name]
    for example in family.examples()[:50]:
        answer = family.response(example, "direct")
        assert answer.startswith(family.direct) and not re.search(r"\d|\([A-D]", family.direct)


def test_a_third_draw_shares_no_problem_with_the_published_ones() -> None:
    for name in ("mini_algebra", "mini_countdown"):
        family = FAMILIES[name]
        published = {family.key(example) for example in family.examples() + family.unlabelled()}
        fresh = family.fresh_problems(200, seed=7)
        assert len(fresh) == 200 and not published & {family.key(example) for example in fresh}
        assert all(family.held_out(example) for example in fresh)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_tested_program_computes_what_a_training_example_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family, random = FAMILIES[name], Random(f"{name} 0 0")
    first = next(one for one in iter(lambda: family.draw(random), None) if not family.held_out(one))
    assert not family.is_fair_test(first), "the first training example is its own twin"
    published, fresh = family.examples() + family.unlabelled(), family.fresh_problems(200, seed=4)
    assert len(fresh) == 200 and all(map(family.is_fair_test, [*published, *fresh]))
    with monkeypatch.context() as patched:
        patched.setattr(type(family), "is_fair_test", lambda self, example: True)
        unchecked = family.problems(200, seed=4, testing=True)
    assert 150 < sum(map(family.is_fair_test, unchecked)) < 190, "without the check a draw has twins"


def test_the_training_programs_are_those_of_the_first_training_examples() -> None:
    """`python -m studies.training_programs` writes all of them."""
    from studies.training_programs import program, training_programs

    from uncode.evals.suite.families.behaviour import Behaviour
    from uncode.train.examples.curriculum import draw

    taught = [Behaviour.of(program(example)) for name in PROGRAMS for example in draw(name, 0, 7)]
    assert all(one.is_in_training for one in taught)
    assert set(training_programs((40, 40, 0, 0, 0, 0, 0))) == {
        Behaviour.of(program(example)).digest for name in PROGRAMS for example in draw(name, 0, 0, 40)
    }
    unknown = "def f(xs):\n    return sum(x * x * x - 17 for x in xs)\n"
    assert not Behaviour.of(unknown).is_in_training and not Behaviour.of(unknown).is_constant
    assert Behaviour.of("def f(xs, k):\n    return [x for x in xs if x < 0 and x > 2]\n").is_constant


def test_the_two_families_of_programs_are_tested_with_different_functions() -> None:
    one, two = ({e.words for e in FAMILIES[name].examples() + FAMILIES[name].unlabelled()} for name in PROGRAMS)
    assert len(one) == len(two) == 1088 and not one & two


def test_the_two_families_of_programs_hold_out_the_same_functions() -> None:
    """All functions that are tested, from the files, against functions that are taught, drawn."""
    tested = {e.words for name in PROGRAMS for e in FAMILIES[name].examples() + FAMILIES[name].unlabelled()}
    taught = {e.words for name in PROGRAMS for e in FAMILIES[name].problems(1000, seed=5, testing=False)}
    assert len(tested) == 2176 and len(taught) > 1000 and not tested & taught


def test_styles_are_drawn_as_often_as_they_say() -> None:
    family, random = FAMILIES["mini_story"], Random(0)
    drawn = [family.style(random) for _ in range(5000)]
    whole = sum(share for _, share in family.styles)
    assert all(abs(drawn.count(style) / 5000 - share / whole) < 0.03 for style, share in family.styles)


def test_a_function_is_the_same_short_and_as_a_loop() -> None:
    for number in range(300):
        function, space = draw_function(Random(number)), {}
        for body in (function.short, function.loop):
            exec(f"def {function.name}({function.arguments}):\n{body}", space)
            for test in function.tests:
                exec(test, space)


def test_a_puzzle_has_one_solution() -> None:
    from uncode.evals.tasks.sudoku import fault_of

    assert len(grids()) == len(set(grids())) == 288
    for puzzle in FAMILIES["mini_sudoku"].problems(50, seed=2, testing=False):
        assert (
            sum(fault_of(grid, puzzle.clues) is None for grid in grids()) == 1
            and 4 <= 16 - puzzle.clues.count("0") <= 6
        )


def test_reasoning_gym_agrees_with_our_graders() -> None:
    """Its own answers are right by our rules, and wrong ones wrong by both; and ours are right by its rules."""
    gym = pytest.importorskip("reasoning_gym", reason=WHY)
    countdown, sudoku = find_task("countdown"), find_task("sudoku")
    puzzles = gym.create_dataset("countdown", size=60, seed=9)
    for entry in puzzles:
        facts = entry["metadata"]
        example = countdown.read({"input": ",".join(map(str, [*facts["numbers"], facts["target"]])), "output": "-"}, 0)
        for text in (entry["answer"], entry["answer"].replace("+", "-", 1), entry["answer"].replace("-", "+", 1)):
            assert countdown.grade(example, text).correct == (puzzles.score_answer(text, entry) == 1.0), text
    grids_ = gym.create_dataset("mini_sudoku", size=30, seed=9)
    for entry in grids_:
        facts = entry["metadata"]
        clues, solution = ("".join(str(c) for row in facts[k] for c in row) for k in ("puzzle", "solution"))
        assert sudoku.grade(sudoku.read({"Puzzle": clues, "Solution": solution}, 0), entry["answer"]).correct
        assert grids_.score_answer(entry["answer"], entry) == 1.0
    family = FAMILIES["mini_countdown"]
    for example in family.problems(40, seed=4, testing=True):
        first, second = (step.split("=") for step in example.reference.split(","))
        nested = re.sub(rf"\b{first[1]}\b", f"({first[0]})", second[0], count=1)
        entry = {"answer": nested, "metadata": {"numbers": list(example.numbers), "target": example.target}}
        assert puzzles.score_answer(nested, entry) == 1.0, nested


def test_a_reference_solution_is_right_without_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its grade is that of the sandbox, and any other answer still runs."""
    for name in ("mini_docstring", "mini_sentence"):
        family = FAMILIES[name]
        example = family.examples()[0]
        for style, _ in family.styles:
            text = family.response(example, style)
            known, run = family.grade(example, text), family.benchmark_task.grade(example, text)
            assert known.correct and run.correct and known.span == run.span
        assert not family.grade(example, text.replace("return", "return 1 +")).correct
        monkeypatch.setattr(type(family.benchmark_task), "grade_ours", None)
        assert family.grade(example, text).why == "it is a reference solution"
        with pytest.raises(TypeError):
            family.grade(example, text + "#")


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_graded_by_our_rule_alone(name: str) -> None:
    is_worked = name in ("mini_story", "mini_algebra")
    assert list(FAMILIES[name].graders) == (["correct", "sound"] if is_worked else ["correct"])
