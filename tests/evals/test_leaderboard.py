"""The leaderboard: which presets run, how processes share them, and what the board shows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.running import call
from uncode import UncodeError
from uncode.evals.run.config import EvalConfig
from uncode.evals.run.grading import GradingPool
from uncode.evals.run.runner import claim, work_units
from uncode.evals.suite.board import NOT_RUN, Board
from uncode.evals.suite.every_preset import entries_by_label, with_every_preset, with_samplers
from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.names import with_rate
from uncode.evals.suite.report import standings
from uncode.evals.suite.results import CellResults, Results
from uncode.evals.suite.scatter import draw_board
from uncode.evals.task import Example, Grade
from uncode.samplers.catalog import catalog
from uncode.samplers.presets import PRESETS

PROBLEMS = 40


def results_with(seed: int = 0, left_out: dict[str, str] | None = None, **rows: tuple[int, float]) -> Results:
    """Results in which each sampler solves the first problems of every family: so many, in so many forwards."""
    about = {"model": "small", "dtype": "float32", "problems": PROBLEMS, "training_seed": seed}
    cells = {
        family: {
            name.replace("__", " "): CellResults("1" * right + "0" * (PROBLEMS - right), "0" * PROBLEMS, forwards, 9.0)
            for name, (right, forwards) in rows.items()
        }
        for family in FAMILIES
    }
    return Results(about | {"left_out": left_out or {}}, cells, {}, {})


def test_every_preset_has_a_row() -> None:
    config = with_every_preset(EvalConfig.load("mini"))
    assert {entry.preset for entry in config.samplers} == set(PRESETS)
    labels = [entry.label for entry in config.samplers]
    assert len(labels) == len(set(labels)) and labels[: len(EvalConfig.load("mini").samplers)] == [
        entry.label for entry in EvalConfig.load("mini").samplers
    ]


def test_defaults_that_depend_on_the_length_become_the_familys() -> None:
    rows = {label: dict(entry.options) for label, entry in entries_by_label().items()}
    assert rows["entropy_threshold"] == {"block_length": "$block_length"}
    assert rows["klass"] == {"block_length": "$block_length*2"}
    assert rows["dynamic"] == {} and rows["certain_first"] == {} and rows["saber"] == {}


def test_rows_are_chosen_by_label_or_as_sampler_files() -> None:
    config = with_samplers(with_every_preset(EvalConfig.load("mini")), ["semi_ar 16", "my/own.toml", "klass"])
    assert [(entry.label, entry.preset) for entry in config.samplers] == [
        ("semi_ar 16", "semi_ar"), ("klass", "klass"), ("own", "my/own.toml"),
    ]  # fmt: skip
    whole = with_every_preset(EvalConfig.load("mini"))
    for names, message in {
        ("klas",): "no sampler 'klas': did you mean 'klass'",
        ("mine/eb.toml",): "'eb' is the name of a preset's row: rename the file eb.toml",
        ("a/own.toml", "b/own.toml"): "two sampler files are named 'own': rename one",
        (__file__,): "the name of a sampler file ends in .toml",
    }.items():
        with pytest.raises(UncodeError, match=message):
            with_samplers(whole, names)


def test_processes_claim_the_longest_units_first(tmp_path: Path) -> None:
    samplers, tasks = list(with_every_preset(EvalConfig.load("mini")).samplers), ("mini_sudoku", "mini_docstring")
    units = work_units({task: [one for one in samplers if one.runs_on(task)] for task in tasks}, FAMILIES)
    together = {entry.label for entry in units[0].entries}
    assert len(units[0].entries) == len(units[1].entries) == 13 and len(units[2].entries) == 1
    assert {"uncode", "uncode 0.1", "uncode unseen", "uncode_eb"} <= together and "confidence" not in together
    alone = [unit.task for unit in units[2:]]
    assert alone == sorted(alone), "programs come first, so that they run while others are decoded"
    whole = sorted(entry.label for unit in units if unit.task == "mini_sudoku" for entry in unit.entries)
    assert whole == sorted(entry.label for entry in samplers if entry.runs_on("mini_sudoku"))
    mine = [unit for unit in units if claim(tmp_path, "model", unit)]
    assert mine == units and not any(claim(tmp_path, "model", unit) for unit in units)
    assert claim(tmp_path, "another model", units[0])


def test_processes_share_the_grades_of_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, graded = FAMILIES["mini_docstring"], list[str]()
    example = task.examples()[0]

    def run_program(example: Example, text: str) -> Grade:
        graded.append(text)
        return Grade(text == "right", (0, 5), "it was run")

    monkeypatch.setattr(type(task), "graders", {"correct": run_program})
    pools = [GradingPool(1, tmp_path), GradingPool(1, tmp_path), GradingPool(1)]
    for pool in pools:
        assert pool.submit(task, example, "right").result() == {"correct": Grade(True, (0, 5), "it was run")}
        assert not pool.submit(task, example, "wrong").result()["correct"].correct
        pool.close()
    assert graded == ["right", "wrong"] * 2  # the second pool has them from the first; the third shares nothing


def board(second: bool = True) -> Board:
    """`fast` and `best` are on the front; `worse` is dominated; `uncode_tau` is behind."""
    rows = {
        "eb": (30, 5.0),
        "confidence": (38, 50.0),
        "margin": (37, 60.0),
        "left_to_right": (36, 40.0),
        "uncode_tau": (20, 20.0),
        "uncode__0.1": (39, 45.0),
        "uncode__0.5": (10, 45.0),
    }
    first = results_with(0, {"klass": "it needs what this model lacks."}, **rows)
    return Board.of([first, results_with(1, **rows)] if second else [first])


def test_rows_are_ranked_and_the_front_is_found() -> None:
    found = board()
    assert found.names == [with_rate(0.1), "confidence", "margin", "left_to_right", "eb", "uncode_tau"]
    assert found.hindsight == with_rate(0.1) and found.best == "confidence"
    assert found.fronts == {seed: ["eb", "left_to_right", "confidence"] for seed in (0, 1)}
    assert found.references == ["confidence", "left_to_right"]
    table = standings(found)
    assert [row[0] for row in table.rows] == ["", "1", "2", "3", "4", "5"]
    assert table.rows[0][1] == "uncode 0.1, best fixed rate" and table.rows[1][-1] == "front"
    assert [row[-1] for row in standings(board(second=False)).rows] == ["", "front", "", "front", "front", ""]


def test_p_values_are_corrected_over_the_rows() -> None:
    found = board()
    compared = found.differences("confidence", 0)
    assert compared["eb"].difference.estimate == pytest.approx(-8 / 40) and compared["eb"].p < 1e-9
    assert compared["margin"].difference.estimate == pytest.approx(-1 / 40)
    assert compared["margin"].p == pytest.approx(2 * 2 / 2**7), "7 problems of one sign, the larger of two p-values"


def test_a_preset_without_a_row_is_named_with_the_reason() -> None:
    found = board()
    assert found.without_row["klass"] == "it needs what this model lacks."
    assert found.without_row["saber"] == NOT_RUN
    names = {name for name in catalog() if not name.startswith("legacy.")}
    assert set(found.without_row) | {"uncode"} == names - set(found.names)


def test_runs_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(UncodeError, match="both models were trained with seed 0"):
        Board.of([results_with(eb=(3, 1)), results_with(eb=(3, 1))])
    other = results_with(1, eb=(3, 1))
    with pytest.raises(UncodeError, match="other problems"):
        Board.of([results_with(eb=(3, 1)), replace(other, about=other.about | {"problems": 2})])
    with pytest.raises(UncodeError, match="finish the run first"):
        Board.of([results_with(eb=(3, 1)), results_with(1, confidence=(3, 1))])


def test_the_figure_names_every_row_and_both_fronts() -> None:
    drawn = draw_board(board()).decode()
    assert drawn == draw_board(board()).decode()
    for name in (*board().names[1:], "Pareto front, seed 0", "Pareto front, seed 1", "uncode 0.1 (best fixed)"):
        assert f"<!-- {name} -->" in drawn, "names stand in comments, before their outlines"
    assert draw_board(board(second=False), "png").startswith(b"\x89PNG")


def test_the_command_line_prints_stored_results(tmp_path: Path) -> None:
    for number, run in enumerate(board().runs.values()):
        folder = tmp_path / "second" if number else tmp_path
        folder.mkdir(exist_ok=True)
        run.save(folder / "results.json")
    words = ("mini", "--all", "--show", str(tmp_path / "results.json"))
    shown = call(*words, "--plot", str(tmp_path / "board.svg")).stdout
    assert "1  confidence" in shown and "seed 1" in shown and "minus left_to_right" in shown
    assert "no row for klass: it needs what this model lacks." in shown and "…" not in shown
    assert b"Pareto front, seed 1" in (tmp_path / "board.svg").read_bytes()
    data = json.loads(call(*words, "--json").stdout)
    assert [row["name"] for row in data["rows"]][1] == "confidence" and "klass" in data["without_row"]
    assert data["rows"][1]["seeds"]["1"]["minus"]["left_to_right"]["difference"][0] == pytest.approx(2 / 40)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--second", "x"], "--second is for the leaderboard: add --all"),
        (["--plot", "x.svg"], "--plot is for the leaderboard: add --all"),
        (["--samplers", "klass"], "--samplers is for the leaderboard: add --all"),
        (["--all", "--plot", "x.txt"], "--plot takes a .svg or .png file, not 'x.txt'"),
        (["--all", "--quick", "--second", "x"], "leave out --quick or --second"),
        (["--all", "--second", "tiny"], "has the seed of"),
        (["--all", "--second", "nosuch"], "there is no folder 'nosuch'"),
        (["--samplers", "eb", "--show", "x"], "--show goes with"),
        (["--all", "--samplers", ","], "--samplers names nothing"),
        (["--all", "--samplers", "nosuch.toml"], "the file 'nosuch.toml' does not exist"),
    ],
)
def test_options_of_the_leaderboard_are_checked_first(words: list[str], message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        call("mini", *words)


def test_every_preset_says_what_it_costs() -> None:
    silent = [name for name, entry in catalog().items() if not entry.cost and not name.startswith("legacy.")]
    assert not silent, "say so in the docstring: `Cost: at most one forward a token; no memory.`"
