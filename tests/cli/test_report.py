"""The verb report, as a user runs it."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.running import run, run_apart
from tests.evals.runs import make_run
from uncode.cli.app import app
from uncode.cli.report_text import fitting
from uncode.evals.report.table import TextTable

LLADA = "GSAI-ML/LLaDA-8B-Instruct"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    marks = {(LLADA, "gsm8k", "confidence"): "1100" * 4, (LLADA, "gsm8k", "uncode"): "1110" * 4}
    marks |= {(LLADA, "sudoku", "confidence"): "10", (LLADA, "sudoku", "uncode"): "11"}
    return make_run(tmp_path / "run", marks)


def test_a_pipe_gets_markdown_and_a_file_the_format_of_its_suffix(folder: Path, tmp_path: Path) -> None:
    shown = run_apart("report", str(folder))
    assert shown.returncode == 0 and shown.stderr == ""
    assert shown.stdout.startswith("<!-- uncode report -->\n# By hand\n") and f"## {LLADA}" in shown.stdout
    assert "| uncode | correct | **75.0 [50.5, 89.8]** |" in shown.stdout
    begins = {"md": "<!-- uncode", "csv": "model,sampler,", "tex": "% uncode report", "html": "<!DOCTYPE html>"}
    names = {"md": "markdown", "csv": "csv", "tex": "latex", "html": "html"}
    for suffix, begin in begins.items():
        file = tmp_path / f"report.{suffix}"
        written = run("report", str(folder), "--out", str(file))
        assert written.returncode == 0 and written.stdout == "" and f"{file}: 4 cells" in written.stderr
        assert file.read_text().startswith(begin)
        assert run("report", str(folder), "--format", names[suffix]).stdout == file.read_text()
        assert run("report", str(folder), "--out", str(file)).returncode == 0, "a report is replaced"


def test_a_file_of_another_kind_asks_for_force(folder: Path, tmp_path: Path) -> None:
    for name in ("notes.md", "data.csv", "page.html", "paper.tex"):
        file = tmp_path / name
        file.write_text('<!DOCTYPE html>\n<meta name="generator" content="uncode">\n' if "page" in name else "mine\n")
        before = file.read_text()
        refused = run("report", str(folder), "--out", str(file))
        assert refused.returncode == 2 and file.read_text() == before
        assert "exists and is not a report: choose another name, or replace it with --force." in refused.stderr
        assert run("report", str(folder), "--out", str(file), "--force").returncode == 0
        assert file.read_text() != before


def test_json_holds_the_records(folder: Path) -> None:
    data = json.loads(run("report", str(folder), "--json", "--paper").stdout)
    assert data["baseline"] == "confidence" and data["metric"] == "correct" and data["runs"][0]["config"] == "hand"
    (record,) = [
        one for one in data["records"] if (one["sampler"], one["task"], one["metric"]) == ("uncode", "gsm8k", "correct")
    ]
    assert record["accuracy"] == 0.75 and record["difference"] == 0.25 and record["only_sampler"] == 4
    assert record["mcnemar_p"] == record["holm_p"] == 0.125 and record["paper"] == pytest.approx(0.792)


def test_the_paper_and_the_baseline_can_be_chosen(tmp_path: Path) -> None:
    run_folder = make_run(tmp_path / "run", {("./mine", "gsm8k", label): "1100" for label in ("uncode", "margin")})
    unknown = run("report", str(run_folder), "--paper").stdout
    assert "The paper has no figures of uncode, margin on gsm8k by ./mine: its tables are main, " in unknown
    assert "Beside the paper's figures" not in unknown and "Difference" not in unknown
    shown = run("report", str(run_folder), "--paper-model", LLADA, "--baseline", "margin").stdout
    assert "| uncode | correct | 50.0 (79.2, -29.2) |" in shown and "Difference from margin" in shown
    found = run("report", str(run_folder), "--metric", "paper", "--baseline", "margin").stdout
    assert "Difference from margin, points (paper)" in found


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--baseline", "confidense"], "no run has the sampler 'confidense': did you mean 'confidence'?"),
        (["--metric", "papr"], "no sample has the metric 'papr': did you mean 'paper'?"),
        (["--format", "latx"], "there is no format 'latx': did you mean 'latex'?"),
        (
            ["--out", "report.pdf"],
            "'report.pdf' names no format: end it in .md, .csv, .tex or .html, or give --format.",
        ),
        (["--json", "--format", "csv"], "--json prints JSON: leave out --format and --out."),
        (["--paper-model", "GSAI-ML/LLaDA-8B"], "the paper has no model 'GSAI-ML/LLaDA-8B': did you mean"),
        (["--out", "/nowhere/report.md"], "the folder '/nowhere' does not exist: create it first."),
    ],
)
def test_errors_are_one_sentence(words: list[str], sentence: str, folder: Path) -> None:
    shown = run("report", str(folder), *words)
    assert shown.returncode == 2 and shown.stdout == "" and sentence in shown.stderr
    assert shown.stderr.count("\n") == 1


def test_a_run_must_be_a_run_and_given_once(folder: Path, tmp_path: Path) -> None:
    assert "there is no run folder" in run("report", str(tmp_path / "nothing")).stderr
    assert "is no run folder: it has no run.json" in run("report", str(tmp_path)).stderr
    assert "is given twice: name each run once." in run("report", str(folder), str(folder)).stderr
    assert "RUN... is missing" in run("report").stderr
    empty = make_run(tmp_path / "empty", {})
    assert "holds no cells yet" in run("report", str(empty)).stderr
    begun = make_run(tmp_path / "begun", {(LLADA, "gsm8k", "uncode"): "..."})
    shown = run("report", str(begun))
    assert shown.returncode == 0 and shown.stdout.startswith("<!-- uncode report -->")


@pytest.mark.parametrize(
    ("line", "what"),
    [(b"\xff", "is not UTF-8 text"), (b"[1]", "is not a JSON object"), (b"{", "is not JSON (Expecting property name")],
)
def test_a_damaged_line_is_named_and_no_option_of_another_verb(line: bytes, what: str, folder: Path) -> None:
    file = folder / "samples.0.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:2], line + b"\n", *lines[2:]]))
    for words in (("report", str(folder)), ("regrade", str(folder))):
        shown = run(*words)
        assert shown.returncode == 2 and f"uncode: line 3 of '{file}' {what}" in shown.stderr
        assert shown.stderr.endswith(": correct or remove this line.\n") and "out" not in shown.stderr.split("'")[-1]


@pytest.mark.parametrize("columns", ["60", "200"])
def test_a_terminal_gets_tables_that_fit(columns: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from uncode.cli import report_text
    from uncode.evals.report.analysis import Choices
    from uncode.evals.report.scores import read_runs

    monkeypatch.setenv("COLUMNS", columns)
    runner = CliRunner()
    with runner.isolation(env={"COLUMNS": columns}) as streams:
        report_text.print_document(read_runs([folder]), Choices("correct", "confidence", True))
        sys.stdout.flush()
        text = streams[0].getvalue().decode()
    lines = text.splitlines()
    assert max(map(len, lines)) <= int(columns) and "75.0 [50.5, 89.8]" in text and "By hand" in lines[0]
    assert text.count("confidence  correct") >= (2 if columns == "60" else 1)


def test_wide_tables_are_split_between_columns() -> None:
    table = TextTable(["name", "aaaa", "bbbb", "cccc"], [["x", "1", "2", "3"]])
    assert list(fitting(table, 100)) == [[0, 1, 2, 3]]
    assert list(fitting(table, 16)) == [[0, 1, 2], [0, 3]]
    assert list(fitting(table, 1)) == [[0, 1], [0, 2], [0, 3]]


def test_the_csv_is_one_row_per_cell(folder: Path) -> None:
    rows = list(csv.DictReader(run("report", str(folder), "--format", "csv").stdout.splitlines()))
    assert {(r["sampler"], r["task"]) for r in rows if r["metric"] == "paper"} == {
        (sampler, task) for sampler in ("confidence", "uncode") for task in ("gsm8k", "sudoku", "average")
    }


def test_help_names_the_verb() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "report" in shown and shown.index("regrade") < shown.index("report ") < shown.index("mini ")
