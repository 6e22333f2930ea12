"""The seven tasks: gold answers are right in every layout, constant answers are wrong, prompts leak nothing."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.evals.material import data
from tests.hub import Repo, pointing_at, serve
from uncode import UncodeError
from uncode.evals.data import DataSource, parse, rows_of
from uncode.evals.suite.families.family import Family
from uncode.evals.task import Task, fill
from uncode.evals.tasks import TASKS, find_task

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
Layout = Callable[[Any], str]


def thousands(number: str, separator: str) -> str:
    sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number)
    whole, dot, part = digits.replace(",", "").partition(".")
    return sign + f"{int(whole):,}".replace(",", separator) + dot + part


GSM8K: dict[str, Layout] = {
    "bare": lambda e: e.answer,
    "hashes": lambda e: f"3 + 4 = 7\nSo it is that.\n#### {e.answer}",
    "prose": lambda e: f"She had 12 and got 5 more. The answer is {e.answer} dollars.",
    "LaTeX box with unit": lambda e: (
        f"We get \\(3 \\times 4\\).\n\\[\\boxed{{{e.answer} \\text{{ eggs}}}}\\] as wished."
    ),
    "answer tags": lambda e: f"<reasoning>5 + 5 = 10</reasoning>\n<answer>\n{e.answer}\n</answer>",
    "trailing text": lambda e: f"#### {e.answer}\n\nQuestion: How many are 2 and 2?\nAnswer: #### 4",
    "thousands by comma, currency": lambda e: f"It costs 3 each. The answer is: ${thousands(e.answer, ',')}.",
    "thousands by blank, boxed": lambda e: f"\\boxed{{{thousands(e.answer, ' ')}}}",
    "thousands in LaTeX": lambda e: f"\\boxed{{\\${thousands(e.answer, '{,}')}}}",
    "decimals": lambda e: f"<answer>{e.answer.replace(',', '')}{'' if '.' in e.answer else '.00'}</answer>",
}
MATH500: dict[str, Layout] = {
    "bare": lambda e: e.answer,
    "dollars": lambda e: f"${e.answer}$",
    "prose": lambda e: f"First $x = 1$. Therefore the answer is ${e.answer}$.",
    "LaTeX box": lambda e: f"We have \\[\\boxed{{{e.answer}}}\\]",
    "second box": lambda e: f"At first \\boxed{{123456}}, but rather $\\boxed{{{e.answer}}}$.",
    "answer tags": lambda e: f"<think>17</think>\n<answer>\n{e.answer}\n</answer>",
    "box in tags": lambda e: f"</reasoning>\n<answer>\n\\boxed{{{e.answer}}}\n</answer>",
    "trailing text": lambda e: f"So $\\boxed{{{e.answer}}}$, which finishes the proof for all $n > 3$.",
    "fence": lambda e: f"The result:\n```latex\n{e.answer}\n```",
    "blanks": lambda e: f"\\boxed{{ {e.answer} }}",
}
GPQA: dict[str, Layout] = {
    "bare": lambda e: e.answer,
    "parenthesis": lambda e: f"({e.answer})",
    "prose": lambda e: f"A photon is absorbed, so B fields vanish. The answer is ({e.answer}).",
    "bold with words": lambda e: f"The correct answer is **{e.answer}) {e.choices['ABCD'.index(e.answer)]}**",
    "answer tags": lambda e: f"<answer>\n{e.answer}\n</answer>",
    "LaTeX box": lambda e: f"Hence \\boxed{{\\text{{{e.answer}}}}} holds.",
    "trailing text": lambda e: (
        f"The answer is ({e.answer}). The others (A to D) break a law.\n\nQuestion: next (A) one"
    ),
    "option": lambda e: f"Answer: Option {e.answer}",
}
COUNTDOWN: dict[str, Layout] = {
    "bare": lambda e: e.reference,
    "prose": lambda e: f"We try 1+1=2 first. The answer is: {e.reference}",
    "blanks": lambda e: f"The answer is: {spaced(e.reference)}",
    "lines": lambda e: "The answer is:\n" + "\n".join(f"- {spaced(step)}" for step in e.reference.split(",")),
    "answer tags": lambda e: f"<answer>{e.reference}</answer>",
    "LaTeX": lambda e: "\\[" + spaced(e.reference).replace("*", "\\times").replace("/", "\\div") + "\\]",
    "LaTeX box": lambda e: f"So \\boxed{{{e.reference}}} it is.",
    "fence": lambda e: f"```\n{e.reference}\n```",
    "one expression": lambda e: f"\\boxed{{{nested(e.reference)}}}",
    "expression with its value": lambda e: f"The answer is: {nested(e.reference)} = {e.target}.",
    "trailing text": lambda e: f"The answer is: {e.reference}\nAll numbers were used once.",
}
SUDOKU: dict[str, Layout] = {
    "bare": lambda e: e.solution,
    "prose": lambda e: f"The puzzle was {e.clues}. The solved grid reads {e.solution}.",
    "answer tags": lambda e: f"<answer>{e.solution}</answer>",
    "closing tag alone": lambda e: f" {e.solution}\n</answer>",
    "rows in tags": lambda e: f"<answer>\n{rows(e, '')}\n</answer>",
    "grid": lambda e: f"Solution:\n\n{rows(e, ' ')}\n\nDone.",
    "grid after the puzzle": lambda e: "\n".join([*grid(e.clues), "", *grid(e.solution)]),
    "table": lambda e: "\n".join(f"| {' | '.join(row)} |" for row in grid(e.solution)),
    "labelled rows": lambda e: "\n".join(f"Row {n}: {', '.join(row)}" for n, row in enumerate(grid(e.solution), 1)),
    "list of lists": lambda e: f"```python\n{[[int(c) for c in row] for row in grid(e.solution)]}\n```",
    "boxes drawn": lambda e: "\n------\n".join(rows(e, "|").split("\n")),
    "LaTeX box": lambda e: f"\\boxed{{{e.solution}}} with all digits once.",
}
HUMANEVAL: dict[str, Layout] = {
    "body": lambda e: e.solution,
    "bare": lambda e: e.stub + e.solution,
    "fence in prose": lambda e: f"Here it is:\n```python\n{e.stub}{e.solution}```\nIt loops once.",
    "prose without a fence": lambda e: f"Here is the code.\n\n{e.stub}{e.solution}\nThis function does what is asked.",
    "answer tags": lambda e: f"<answer>\n{e.stub}{e.solution}</answer>",
    "body in a fence": lambda e: f"```python\n{e.solution}```",
}
MBPP: dict[str, Layout] = {
    "bare": lambda e: e.solution,
    "fence in prose": lambda e: f"Sure!\n```python\n{e.solution}\n```\nIt returns the result.",
    "plain fence": lambda e: f"```\n{e.solution}\n```",
    "prose without a fence": lambda e: f"Here is the code.\n\n{e.solution}\n\nThis function does what is asked.",
    "answer tags": lambda e: f"<answer>{e.solution}</answer>",
}
LAYOUTS = {
    "humaneval": HUMANEVAL,
    "mbpp": MBPP,
    "gsm8k": GSM8K,
    "math500": MATH500,
    "gpqa": GPQA,
    "countdown": COUNTDOWN,
    "sudoku": SUDOKU,
}
TEXTS = [(task, layout) for task in ("gsm8k", "math500", "gpqa", "countdown", "sudoku") for layout in LAYOUTS[task]]


def spaced(chain: str) -> str:
    return re.sub(r"([-+*/=])", r" \1 ", chain).replace(",", ", ")


def nested(chain: str) -> str:
    """A chain of equations as one expression."""
    (first, value), *others = (step.split("=") for step in chain.split(","))
    for step, result in others:
        first, value = re.sub(rf"\b{value}\b", f"({first})", step, count=1), result
    return first


def grid(cells: str) -> list[str]:
    return [cells[at : at + 4] for at in range(0, 16, 4)]


def rows(example: Any, between: str) -> str:
    return "\n".join(between.join(row) for row in grid(example.solution))


def examples(task: Task[Any]) -> list[Any]:
    return task.examples(data(task.source.file))


@pytest.mark.parametrize(("name", "layout"), TEXTS, ids=[f"{task}, {layout}" for task, layout in TEXTS])
def test_every_gold_answer_is_right(name: str, layout: str) -> None:
    """Every fourth; all under `make verify`."""
    task = find_task(name)
    if name == "math500":
        pytest.importorskip("math_verify")
    wrong = []
    for example in examples(task)[:: 1 if SOAK else 4]:
        text = LAYOUTS[name][layout](example)
        grade = task.grade(example, text)
        good = grade.correct and grade.span is not None and 0 <= grade.span[0] < grade.span[1] <= len(text)
        wrong += [] if good else [(example.id, text, grade)]
    assert not wrong[:5], f"{len(wrong)} wrong"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["humaneval", "mbpp"])
def test_every_canonical_solution_passes(name: str) -> None:
    """Every third (of MBPP every sixth) in one of the layouts, in turn; all in all layouts under `make verify`."""
    task = find_task(name)
    layouts = list(LAYOUTS[name].values())
    turns = range(len(layouts)) if SOAK else [0]
    found = examples(task)[:: 1 if SOAK else {"humaneval": 3, "mbpp": 6}[name]]
    answers = [(e, layouts[(n + turn) % len(layouts)](e)) for turn in turns for n, e in enumerate(found)]
    with ThreadPoolExecutor(2) as pool:
        grades = list(pool.map(lambda answer: task.grade(*answer), answers))
    assert not [(a[0].id, g.why) for a, g in zip(answers, grades, strict=True) if not g.correct]


def test_a_task_needs_a_name() -> None:
    members = {member: getattr(TASKS["gsm8k"], member) for member in Task.__abstractmethods__}
    with pytest.raises(UncodeError, match=r'^the task Mine needs a name: set `name = "mine"` in its class\.$'):
        type("Mine", (Task,), members)
    assert type("Mine", (Task,), members | {"name": "mine"})().name == "mine"
    with pytest.raises(UncodeError, match=r"^the task MiniMine needs a name"):
        type("MiniMine", (Family,), dict.fromkeys(Family.__abstractmethods__, print))
    type("Base", (Task,), {})  # abstract: it is no task yet


def test_layouts_are_at_least_five() -> None:
    assert list(LAYOUTS) == list(TASKS)
    assert all(len(layouts) >= 5 for layouts in LAYOUTS.values())


CONSTANTS = [
    ("math500", "\\boxed{12345678910}"),
    ("math500", "\\boxed{" + " ".join(map(str, range(1000))) + "}"),
    ("sudoku", "1234341221434321"),
    ("countdown", "44-15=29,79-29=50"),
    ("gsm8k", " ".join(map(str, range(1000, 0, -1)))),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), CONSTANTS, ids=[f"{name}-{text[:24]}" for name, text in CONSTANTS])
def test_constant_answers_are_wrong_but_where_they_are_right(name: str, text: str) -> None:
    """Of the constants that fool the released rule, ours accepts none but the examples whose answer they are."""
    task = find_task(name)
    if name == "math500":
        pytest.importorskip("math_verify")
    found = examples(task)
    found = found[::4] if name == "math500" and not SOAK else found  # math-verify is slow: all under `make verify`
    right = [e for e in found if task.grade(e, text).correct]
    if name == "countdown":
        assert {(tuple(sorted(e.numbers)), e.target) for e in right} == {((15, 44, 79), 50)}
    elif name == "gsm8k":
        assert all(e.answer == "1" for e in right)
    elif name == "sudoku":
        assert all(e.solution == text or _open(e.clues, text) for e in right)
    else:
        assert right == []


def _open(clues: str, cells: str) -> bool:
    return all(clue in ("0", cell) for clue, cell in zip(clues, cells, strict=True))


def test_the_box_of_ten_is_right_where_ten_is() -> None:
    pytest.importorskip("math_verify")
    task = find_task("math500")
    found = examples(task)
    some = found if SOAK else [e for e in found if "10" in e.answer or e in found[::8]]
    ours = [e.answer for e in some if task.grade(e, "\\boxed{10}").correct]
    paper = [e.answer for e in found if task.grade(e, "\\boxed{10}", "paper").correct]
    assert len(paper) == 29 and len(ours) < 15
    assert all(re.fullmatch(r"10(\\%|_.*|\^\\circ)?", answer) for answer in ours)


def test_the_released_rules_are_reproduced() -> None:
    """The figures others measured with the released code itself."""
    math, sudoku, countdown = find_task("math500"), find_task("sudoku"), find_task("countdown")
    problems = examples(math)
    constant = "\\boxed{12345678910}"
    assert sum(math.grade(e, constant, "paper").correct for e in problems) == 144
    everything = "\\boxed{" + " ".join(map(str, range(1000))) + "}"
    assert sum(math.grade(e, everything, "paper").correct for e in problems) == 273
    solutions = {row["unique_id"]: row["solution"] for _, row in rows_of(math.source, data(math.source.file))}
    assert sum(math.grade(e, solutions[e.id], "paper").correct for e in problems) == 498
    puzzles = examples(sudoku)
    assert sum(sudoku.grade(e, SUDOKU["rows in tags"](e), "paper").correct for e in puzzles) == 0
    assert sum(sudoku.grade(e, rows(e, "") + "\n</answer>", "paper").correct for e in puzzles) == 500
    example = examples(countdown)[0]
    assert countdown.grade(example, "144-15=29,79-29=500", "paper").correct
    assert not countdown.grade(example, "144-15=29,79-29=500").correct


@pytest.mark.parametrize(
    ("text", "paper"),
    [("import sys\nsys.exit(0)", 163), ("import os\nos._exit(1)", 163), ("return None", 0)],
    ids=["sys.exit(0)", "os._exit(1)", "a body"],
)
def test_leaving_early_solves_nothing(text: str, paper: int) -> None:
    """On every sixteenth problem; on all under `make verify`."""
    task, each = find_task("humaneval"), 1 if SOAK else 16
    some = examples(task)[::each]
    with ThreadPoolExecutor(2) as pool:
        accepted = sum(pool.map(lambda e: task.grade(e, text, "paper").correct, some))
        assert accepted == paper if SOAK else accepted >= paper // each
        assert sum(pool.map(lambda e: task.grade(e, text).correct, some)) == 0


@pytest.mark.skipif(not SOAK, reason="runs all programs three times: make verify")
def test_right_programs_by_the_released_rule() -> None:
    humaneval, mbpp = find_task("humaneval"), find_task("mbpp")
    with ThreadPoolExecutor(2) as pool:
        for layout, count in (("body", 0), ("fence in prose", 0), ("bare", 163)):
            texts = [(e, HUMANEVAL[layout](e), "paper") for e in examples(humaneval)]
            assert sum(grade.correct for grade in pool.map(lambda t: humaneval.grade(*t), texts)) == count
        solutions = [(e, e.solution, "paper") for e in examples(mbpp)]
        grades = {
            t[0].id: grade for t, grade in zip(solutions, pool.map(lambda t: mbpp.grade(*t), solutions), strict=True)
        }
        slow = grades.pop(
            "mbpp/123"
        )  # it computes for most of the rule's ten seconds, which a busy machine does not have
        assert slow.correct or "too long" in slow.why
        accepted = sum(grade.correct for grade in grades.values())
        assert accepted == (416 if sys.version_info < (3, 12) else 413)  # newer compilers warn on standard error


def test_any_solution_of_a_sudoku_is_right() -> None:
    """A quarter of the puzzles have several; counted here by trying all 288 grids."""
    task = find_task("sudoku")
    from uncode.evals.tasks.sudoku import fault_of

    orders = [f"{a}{b}{c}{d}" for a in "1234" for b in "1234" for c in "1234" for d in "1234" if len({a, b, c, d}) == 4]
    halves = [a + b for a in orders for b in orders if not set(a[:2]) & set(b[:2])]
    grids = [top + low for top in halves for low in halves if fault_of(top + low, "0" * 16) is None]
    assert len(grids) == 288
    found = examples(task)
    counts = [sum(fault_of(cells, e.clues) is None for cells in grids) for e in found]
    assert (len(found), sum(count > 1 for count in counts)) == (500, 124)
    example = next(e for e, count in zip(found, counts, strict=True) if count > 1)
    others = [cells for cells in grids if fault_of(cells, example.clues) is None and cells != example.solution]
    assert task.grade(example, others[0]).correct and not task.grade(example, others[0], "paper").correct


def test_the_choices_of_a_question_do_not_depend_on_the_machine() -> None:
    task = find_task("gpqa")
    rows = [
        {"question": f"What is {n}?", "correct_answer": "right", "option_A": "x", "option_B": "y", "option_C": "z"}
        for n in range(400)
    ]
    found = [task.read(row, n) for n, row in enumerate(rows)]
    assert all(e.choices["ABCD".index(e.answer)] == "right" for e in found)
    assert [e.answer for e in found[:8]] == list("ABBDACAC")
    shares = {letter: sum(e.answer == letter for e in found) for letter in "ABCD"}
    assert all(70 < share < 130 for share in shares.values())
    hub = {"Question": "What is 0?", "Correct Answer": "right"} | {
        f"Incorrect Answer {n}": "xyz"[n - 1] for n in (1, 2, 3)
    }
    assert task.read(hub, 0) == found[0]
    for layout in GPQA.values():
        assert all(task.grade(e, layout(e)).correct for e in found)
        other = [task.read(rows[n], n) for n in range(400)]
        assert not any(
            task.grade(e, layout(o)).correct for e, o in zip(found, other[1:], strict=False) if e.answer != o.answer
        )


SETTINGS = {  # shots, length, rate, chat, block length of Fast-dLLM: the paper's section 5 and appendix
    "humaneval": (0, 256, 0.25, True, 32),
    "mbpp": (0, 128, 0.25, True, 16),
    "gsm8k": (4, 256, 0.25, False, 32),
    "math500": (4, 1024, 0.25, True, 128),
    "gpqa": (5, 256, 0.25, False, 32),
    "countdown": (3, 128, 0.5, True, 32),
    "sudoku": (5, 128, 0.0, True, 32),
}
SHOTS = {"gsm8k": "Question:", "math500": "Problem:", "gpqa": "Question:", "countdown": "Numbers:", "sudoku": "Puzzle:"}


@pytest.mark.parametrize("name", TASKS)
def test_the_papers_settings_stand_beside_each_task(name: str) -> None:
    s = TASKS[name].settings
    assert (s.shots, s.length, s.rate, s.chat, s.block_length) == SETTINGS[name]
    template = find_task(name).template
    assert template.count(SHOTS[name]) - 1 == s.shots if name in SHOTS else s.shots == 0


def test_no_shot_is_a_test_row() -> None:
    known = {name: find_task(name).template for name in SHOTS}
    for name, field in (("gsm8k", "question"), ("math500", "problem")):
        texts = [re.sub(r"\W+", " ", getattr(e, field)).lower() for e in examples(find_task(name))]
        shots = [part.split("\n")[0] for part in known[name].split(SHOTS[name])[1:-1]]
        assert not [shot for shot in shots if re.sub(r"\W+", " ", shot).strip().lower() in " ".join(texts)]
    used = {(tuple(sorted(e.numbers)), e.target) for e in examples(find_task("countdown"))}
    shots = re.findall(r"Numbers: ([\d,]+)\nTarget: (\d+)", known["countdown"])
    assert len(shots) == 3 and not [s for s in shots if (tuple(sorted(map(int, s[0].split(",")))), int(s[1])) in used]
    puzzles = examples(find_task("sudoku"))
    answers = re.findall(r"<answer>(\d{16})</answer>", known["sudoku"])
    clues = [re.sub(r"\s", "", grid) for grid in re.findall(r"Puzzle:\n((?:\d{4}\n){4})", known["sudoku"])]
    assert len(answers) == len(clues) == 5
    assert not {e.solution for e in puzzles} & set(answers) and not {e.clues for e in puzzles} & set(clues)


def test_the_shots_of_the_prompts_are_right_by_our_own_graders() -> None:
    from uncode.evals.tasks.countdown import CountdownPuzzle
    from uncode.evals.tasks.sudoku import fault_of

    countdown, template = find_task("countdown"), find_task("countdown").template
    for numbers, target, answer in re.findall(r"Numbers: ([\d,]+)\nTarget: (\d+)\nSolution: (.*)", template):
        example = CountdownPuzzle("shot", tuple(map(int, numbers.split(","))), int(target), "")
        assert countdown.grade(example, answer).correct
    pairs = re.findall(r"Puzzle:\n((?:\d{4}\n){4})Answer: <answer>(\d{16})", find_task("sudoku").template)
    assert len(pairs) == 5 and all(fault_of(cells, re.sub(r"\s", "", clues)) is None for clues, cells in pairs)


def test_prompts_are_filled() -> None:
    task = find_task("countdown")
    example = task.read({"input": "3,4,5,12", "output": "3+4=7,7+5=12"}, 0)
    assert task.prompt(example).endswith("Numbers: 3,4,5\nTarget: 12\nSolution:")
    assert task.prompt(example, "Reach {{target}} with {{numbers}}.\n") == "Reach 12 with 3,4,5."
    with pytest.raises(UncodeError, match=r"placeholder \{\{targt\}\}: did you mean 'target'"):
        task.prompt(example, "{{targt}}")
    with pytest.raises(UncodeError, match=r"no placeholder \{\{numbers\}\}, \{\{target\}\}: the model"):
        task.prompt(example, "Say something.")
    assert fill("{{a}} {x} \\1", {"a": "{{b}} \\2"}) == "{{b}} \\2 {x} \\1"


def test_mbpp_names_the_function_that_is_tested() -> None:
    found = {e.number: e for e in examples(find_task("mbpp"))}
    assert len(found) == 427
    assert found[2].signature == "similar_elements(test_tup1, test_tup2)"
    assert found[126].entry == "sum" and found[408].entry == "k_smallest_pairs"
    assert "import sys" in found[596].imports
    assert all(e.signature.startswith(f"{e.entry}(") for e in found.values())


def test_data_is_read_or_said_to_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = find_task("sudoku")
    with pytest.raises(UncodeError, match=r"has no sudoku\.csv"):
        task.examples(tmp_path)
    with pytest.raises(UncodeError, match=r"data folder '.*no' does not exist"):
        task.examples(tmp_path / "no")
    (tmp_path / "sudoku.csv").write_text("Puzzle,Solution\n1,2\n")
    with pytest.raises(UncodeError, match="row 1 of Sudoku's data is not as expected: '1' is no puzzle"):
        task.examples(tmp_path)
    (tmp_path / "sudoku.csv").write_text("A,B\n1,2\n")
    with pytest.raises(UncodeError, match="no field 'Puzzle'"):
        task.examples(tmp_path)
    (tmp_path / "gsm8k.jsonl").write_text("{")
    with pytest.raises(UncodeError, match=r"line 1 of 'gsm8k.jsonl' is not JSON"):
        find_task("gsm8k").examples(tmp_path)
    with pytest.raises(UncodeError, match="did you mean 'gsm8k'"):
        find_task("gsm8")
    with pytest.raises(UncodeError, match="did you mean 'paper'"):
        task.grade(task.read({"Puzzle": "0" * 16, "Solution": "1" * 16}, 0), "", "papr")
    assert parse(json.dumps([{"a": 1}]), "x.json") == [("row 1", {"a": 1})]
    monkeypatch.setenv("UNCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("uncode.evals.data.RELEASE", f"file://{tmp_path}/")
    (tmp_path / "some.csv").write_text("a\n1\n")
    with pytest.raises(UncodeError, match="is not the released file"):
        rows_of(DataSource("some.csv", sha256="0" * 64), None)
    digest = sha256(b"a\n1\n").hexdigest()
    assert list(rows_of(DataSource("some.csv", sha256=digest), None)) == [("row 1", {"a": "1"})]
    (tmp_path / "some.csv").unlink()
    assert list(rows_of(DataSource("some.csv", sha256=digest), None)) == [("row 1", {"a": "1"})], "kept in the cache"


def test_without_math_verify_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    task = find_task("math500")
    with pytest.raises(UncodeError, match=r"needs math_verify: pip install 'uncode\[eval\]'"):
        task.grade(task.read({"problem": "?", "answer": "2"}, 0), "\\boxed{3}")


def test_data_comes_from_the_hub(tmp_path: Path) -> None:
    rows = [{"question": "How many?", "answer": "Two.\n#### 2"}]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    with serve() as hub:
        hub.datasets["openai/gsm8k"] = Repo([{"main/test.jsonl": lines, "README.md": CARD}])
        hub.datasets["Idavidrein/gpqa"] = Repo([{"train.jsonl": lines}], gated=True)
        with pointing_at(hub, tmp_path):
            assert [(e.question, e.answer) for e in find_task("gsm8k").examples()] == [("How many?", "2")]
            with pytest.raises(UncodeError, match=r"'Idavidrein/gpqa' could not be downloaded.*gated.*gpqa\.jsonl"):
                find_task("gpqa").examples()
    with (
        pointing_at(hub, tmp_path),
        pytest.raises(UncodeError, match=r"cannot be reached: give a folder with san"),
    ):
        find_task("mbpp").examples()


CARD = b"""---
configs:
- config_name: main
  data_files:
  - split: test
    path: main/test.jsonl
---
"""
