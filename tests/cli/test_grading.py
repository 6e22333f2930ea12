"""The verbs tasks and regrade, as a user runs them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.cli.running import run, run_apart
from uncode.cli import main
from uncode.cli.app import app
from uncode.evals.tasks import TASKS

PUZZLES = "Puzzle,Solution\n3102200002100320,3142243142131324\n0140432014020000,2143432114323214\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "sudoku.csv").write_text(PUZZLES)
    problem = {
        "prompt": 'def twice(x):\n    """Twice x."""\n',
        "entry_point": "twice",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n",
        "canonical_solution": "    return 2 * x\n",
    }
    rows = [{"task_id": f"HumanEval/{n}"} | problem for n in range(3)]
    (tmp_path / "humaneval.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_tasks_lists_the_papers_settings() -> None:
    shown = run("tasks")
    assert shown.returncode == 0 and shown.stdout.splitlines()[7].startswith("sudoku")
    assert "mini_story (gsm8k)" in shown.stdout
    assert "math500        4    1024  0.25    128  chat" in shown.stdout
    result = json.loads(run("tasks", "--json").stdout)
    assert [task["name"] for task in result] == ["humaneval", "mbpp", "gsm8k", "math500", "gpqa", "countdown", "sudoku"]
    assert result[6]["settings"] == {"shots": 5, "length": 128, "rate": 0.0, "chat": True, "block_length": 32}


@pytest.mark.parametrize("columns", ["40", "80"])
def test_tasks_is_readable_at_any_width_without_trailing_blanks(columns: str) -> None:
    lines = CliRunner().invoke(app, ["tasks"], env={"COLUMNS": columns}).output.splitlines()
    assert max(map(len, lines)) <= int(columns) and all(line == line.rstrip() for line in lines)
    assert set(TASKS) <= {line.split()[0] for line in lines if line}, "no name is broken"


def test_tasks_prints_a_prompt_ours_or_another(data: Path) -> None:
    shown = run("tasks", "sudoku", "--data", str(data), "--example", "1").stdout
    assert shown.endswith("Puzzle:\n0140\n4320\n1402\n0000\nAnswer:\n")
    (data / "mine.txt").write_text("Solve {{ grid }} now.\n")
    assert run("tasks", "sudoku", "--data", str(data), "--prompt", str(data / "mine.txt")).stdout == (
        "Solve 3102\n2000\n0210\n0320 now.\n"
    )
    assert "{{grid}}" in run("tasks", "sudoku", "--template").stdout
    for words, message in (
        (("tasks", "sudoko"), "did you mean 'sudoku'?"),
        (("tasks", "stroy"), "did you mean 'mini_story'?"),
        (
            ("tasks", "--example", "0"),
            "--example needs a task: write uncode tasks TASK, where TASK is one of humaneval,",
        ),
        (("tasks", "--data", ".", "--template"), "--data and --template need a task: write uncode tasks TASK"),
        (("tasks", "--example", "3"), "mini_story, mini_algebra"),
        (("tasks", "sudoku", "--template", "--example", "0"), "leave --example out."),
        (("tasks", "sudoku", "--template", "--data", ".", "--json"), "leave --data and --json out."),
        (
            ("tasks", "sudoku", "--data", str(data), "--example", "2"),
            "Sudoku has no example 2: give a number from 0 to 1.",
        ),
        (
            ("tasks", "sudoku", "--data", str(data), "--prompt", "no.txt"),
            "the file 'no.txt' does not exist: give the path of a prompt file.",
        ),
    ):
        refused = run(*words)
        assert refused.returncode == 2 and message in refused.stderr and refused.stderr.count("\n") == 1


def test_regrade_shows_both_rules_and_writes_every_grade(data: Path) -> None:
    answers = data / "sudoku_answers.jsonl"
    rows = [
        {"id": "sudoku/0", "text": "<answer>\n3142\n2431\n4213\n1324\n</answer>"},
        {"id": "sudoku/1", "text": "<answer>0140432014020000</answer>"},
    ]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = data / "graded.jsonl"
    shown = run("regrade", str(answers), "--data", str(data), "--out", str(out), "--show", "5")
    assert shown.returncode == 0, shown.stderr
    assert all(line == line.rstrip() for line in shown.stdout.splitlines())
    assert "sudoku_answers.jsonl  2  50.0 [9.5, 90.5]  0.0 [0.0, 65.8]       1     0" in shown.stdout
    assert "correct: right: 3142243142131324 keeps the clues and the rules" in shown.stdout
    grades = [json.loads(line) for line in out.read_text().splitlines()]
    assert [g["correct"]["correct"] for g in grades] == [True, False] and grades[0]["correct"]["span"] == [9, 28]
    assert grades[1]["paper"]["why"] == "the tags do not hold 2143432114323214"
    result = json.loads(run("regrade", str(answers), "--data", str(data), "--json").stdout)
    assert result[0]["gained"] == 1 and result[0]["metrics"]["correct"]["estimate"] == 0.5


@pytest.mark.parametrize(
    ("prompts", "warned"),
    [
        ([{}, {}], None),
        ([{"prompt": "Solve 3102 2000 0210 0320 now"}, {"question": "0140\n4320\n1402\n0000"}], None),
        ([{}, {"prompt": "Solve 3102 2000 0210 0320 now"}], "of 1 of 2 answers in '.*' are .* first: 'sudoku/1'"),
        ([{"messages": [{"role": "user", "content": "Hello"}]}, {"prompt": "Hi"}], "2 of 2 .* first: 'sudoku/0'"),
    ],
)
def test_regrade_warns_of_prompts_of_other_problems(
    data: Path, prompts: list[dict[str, Any]], warned: str | None
) -> None:
    answers = data / "sudoku_answers.jsonl"
    rows = [{"id": f"sudoku/{n}", "text": "x"} | more for n, more in enumerate(prompts)]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown = run("regrade", str(answers), "--data", str(data))
    assert shown.returncode == 0 and shown.stderr.count("\n") == (warned is not None)
    assert warned is None or re.search(warned, shown.stderr)


def test_regrade_refuses_a_file_twice_and_a_file_that_is_not_its_own(data: Path) -> None:
    answers, other = data / "sudoku_answers.jsonl", data / "other.txt"
    answers.write_text('{"id": "sudoku/0", "text": "x"}\n')
    other.write_text("mine\n")
    words = ("regrade", str(answers), "--data", str(data))
    twice = run(*words, str(data / "." / "sudoku_answers.jsonl"))
    assert twice.returncode == 2 and "is given twice: name each file once." in twice.stderr
    refused = run(*words, "--out", str(other))
    assert refused.returncode == 2 and other.read_text() == "mine\n"
    assert "other.txt' exists and was not written by this command (there is no 'other.txt.job'" in refused.stderr


def test_regrade_resumes_after_an_interruption(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from uncode.evals.tasks.sudoku import Sudoku

    answers, out, asked = data / "sudoku_two.jsonl", data / "kept.jsonl", list[str]()
    solved = "<answer>3142243142131324</answer>"
    answers.write_text("".join(json.dumps({"id": f"sudoku/{n}", "text": solved}) + "\n" for n in (0, 1)))
    words = ("regrade", str(answers), "--data", str(data), "--out", str(out), "--workers", "1", "--json")
    real = Sudoku.grade_ours

    def interrupted(self: Sudoku, example: Any, text: str) -> Any:
        asked.append(example.id)
        if example.id == "sudoku/1" and len(asked) == 2:
            raise KeyboardInterrupt
        return real(self, example, text)

    monkeypatch.setattr(Sudoku, "grade_ours", interrupted)
    assert run(*words).returncode == 130
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == ["sudoku/0"]
    result = json.loads(run(*words).stdout)
    assert result[0]["metrics"]["correct"]["estimate"] == 0.5 and asked == ["sudoku/0", "sudoku/1", "sudoku/1"]
    assert json.loads(run(*words).stdout) == result and len(asked) == 3  # nothing is graded again
    answers.write_text(answers.read_text().replace("3142", "3124"))
    refused = run(*words)
    assert refused.returncode == 2 and "begun with other files" in refused.stderr


def test_regrade_runs_programs_in_the_sandbox(data: Path) -> None:
    answers = data / "mine.jsonl"
    texts = ["    return x + x", "import sys\nsys.exit(0)", "```python\ndef twice(x):\n    return 4\n```"]
    rows = [{"id": f"HumanEval/{n}", "text": text} for n, text in enumerate(texts)]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("regrade", str(answers), "--task", "humaneval", "--data", str(data), "--json")
    result = json.loads(run_apart(*words).stdout)
    assert result[0]["metrics"]["correct"]["estimate"] == pytest.approx(2 / 3)
    assert result[0]["metrics"]["paper"]["estimate"] == pytest.approx(2 / 3)
    assert (result[0]["gained"], result[0]["lost"]) == (1, 1)


def test_regrade_reads_answers_as_d1_publishes_them(data: Path) -> None:
    answers = data / "gsm8k_256.jsonl"
    row = {"question": "How many?", "output": "\\boxed{18.0}<|eot_id|><|endoftext|> 7", "gold": 18.0}
    answers.write_text(json.dumps(row) + "\n")
    result = json.loads(run("regrade", str(answers), "--json").stdout)
    assert result[0]["metrics"]["correct"]["estimate"] == 1 and result[0]["metrics"]["paper"]["estimate"] == 0
    answers.write_text(json.dumps(row | {"gold": None}) + "\n")
    refused = run("regrade", str(answers))
    assert (
        refused.returncode == 2 and "it has no gold answer; give the benchmark's data as --data DIR" in refused.stderr
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "answers.jsonl",
            "{}",
            "answers.jsonl' does not begin with a task: give --task NAME (known: humaneval, mbpp, ",
        ),
        (
            "sudko_a.jsonl",
            "{}",
            "sudko_a.jsonl' does not begin with a task: give --task NAME (did you mean --task sudoku?)",
        ),
        ("sudoku_a.jsonl", "", "holds no answers:"),
        (
            "sudoku_a.jsonl",
            '{"id": "sudoku/7", "text": "x"}',
            "Sudoku has no example with the id 'sudoku/7', only such",
        ),
        ("sudoku_a.jsonl", '{"id": 0, "text": "x"}', "`uncode tasks sudoku --example N --json` prints an id"),
        ("sudoku_a.jsonl", '{"id": "HumanEval/0", "text": "x"}', "not of Sudoku: did you mean --task humaneval?"),
        ("sudoku_a.jsonl", '{"id": "test/algebra/1.json", "text": "x"}', "did you mean --task math500?"),
        ("sudoku_a.jsonl", '{"id": "sudoku/0"}', "it has no 'text'"),
        (
            "sudoku_a.jsonl",
            '\n{"id": "sudoku/0", "text": "x"}\n{',
            "line 3 of 'sudoku_a.jsonl' is not JSON (Expecting property name enclosed in double quotes at column 2)",
        ),
        ("sudoku_a.jsonl", "[1]", "line 1 of 'sudoku_a.jsonl' is not a JSON object"),
        ("sudoku_a.jsonl", '{"id": "sudoku/0", "text": null}', "its text is None"),
        ("sudoku_a.jsonl", '{"id": "sudoku/0", "text": "x"}\n' * 2, "answers 'sudoku/0' more than once"),
    ],
)
def test_regrade_says_what_is_wrong_with_a_file(
    data: Path,
    name: str,
    content: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (data / name).write_text(content)
    monkeypatch.setattr(sys, "argv", ["uncode", "regrade", str(data / name), "--data", str(data)])
    with pytest.raises(SystemExit) as left:
        main()
    result = capsys.readouterr().err
    assert left.value.code == 2 and message in result and result.count("\n") == 1


@pytest.mark.parametrize("verb", ["tasks", "regrade", "mini", "demo"])
def test_examples_in_the_help_are_whole_at_80_columns(verb: str) -> None:
    shown = CliRunner().invoke(app, [verb, "--help"], env={"COLUMNS": "80"}).output
    examples = shown.split("Examples:")[1].split("\n\nOptions:")[0].split("\n\nArguments:")[0]
    assert all(line.strip().startswith("uncode ") for line in examples.splitlines() if line.strip()), examples
