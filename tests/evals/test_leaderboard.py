"""The leaderboard: which presets run, how processes share them, what the tests show, and what the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.running import call
from uncode import UncodeError
from uncode.evals.run.config import EvalConfig
from uncode.evals.run.grading import GradingPool
from uncode.evals.run.runner import claim, work_units
from uncode.evals.suite.every_preset import entries_by_label, with_every_preset, with_samplers
from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.folder import FRESH_FOLDER, SECOND_FOLDER
from uncode.evals.suite.job import Job
from uncode.evals.suite.leaderboard import tables
from uncode.evals.suite.leaderboard.board import NOT_RUN, Board
from uncode.evals.suite.leaderboard.figure import draw_board
from uncode.evals.suite.leaderboard.findings import findings
from uncode.evals.suite.leaderboard.page import FIGURE_FILE, PAGE_FILE, board_of, fresh_board, page
from uncode.evals.suite.names import RATES, with_rate
from uncode.evals.suite.results import RESULTS, Cell, Results
from uncode.evals.suite.stored_rows import beside_stored, stored_results
from uncode.evals.task import Example, Grade
from uncode.models import TINY
from uncode.samplers.catalog import catalog
from uncode.samplers.presets import PRESETS

ROOT = Path(__file__).parents[2]
PROBLEMS = 40


def results_with(seed: int = 0, left_out: dict[str, str] | None = None, **rows: tuple[int, float]) -> Results:
    """Results in which each sampler solves the first problems of every family: so many, in so many forwards."""
    about = {"model": "small", "dtype": "float32", "problems": PROBLEMS, "training_seed": seed}
    cells = {
        family: {
            name.replace("__", " "): Cell("1" * right + "0" * (PROBLEMS - right), "0" * PROBLEMS, forwards, 9.0)
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
    assert found.dominating("margin") == ["confidence"] and found.dominating("eb") == []
    assert found.references == ["confidence", "left_to_right"] and found.own == ["uncode_tau"]
    table = tables.standings(found)
    assert [row[0] for row in table.rows] == ["", "1", "2", "3", "4", "5"]
    assert table.rows[0][1] == "uncode 0.1, best fixed rate" and table.rows[1][-1] == "front"
    assert [row[-1] for row in tables.standings(board(second=False)).rows] == ["", "front", "", "front", "front", ""]


def test_a_difference_is_shown_after_holms_correction_with_every_seed() -> None:
    found = board()
    compared = found.compared("confidence", 0)
    assert compared["eb"].difference.estimate == pytest.approx(-8 / 40) and compared["eb"].p < 1e-9
    assert compared["margin"].difference.estimate == pytest.approx(-1 / 40)
    assert compared["margin"].p == pytest.approx(2 * 2 / 2**7), "7 problems of one sign, the larger of two p-values"
    assert found.signs("confidence") == {
        with_rate(0.1): 1 if 2 * 2 / 2**7 < 0.05 else 0, "margin": -1, "left_to_right": -1, "eb": -1, "uncode_tau": -1
    }  # fmt: skip
    one_sided = Board.of([results_with(0, a=(38, 9), b=(20, 9)), results_with(1, a=(20, 9), b=(20, 9))])
    assert one_sided.signs("a") == {"b": 0}


def test_sentences_name_those_that_are_better_than_our_own() -> None:
    best, front, own, two = findings(board())
    assert two.startswith("**Two seeds.** The averages of two trainings should lie within 2 points. 0 of 7 do not (")
    assert best.startswith(
        "**`confidence` has the best average** of the ranked rows: 95.0 and 95.0 % in 50.0 and 50.0 forwards."
    )
    assert "significantly better than 4 of 4 other rows with both seeds" in best
    unlike = Board.of([results_with(0, a=(38, 9), b=(20, 9)), results_with(1, a=(20, 9), b=(22, 9))])
    assert findings(unlike)[0].startswith(
        "**`a` has the best mean of the two averages** of the ranked rows: 95.0 and 50.0 %"
    )
    assert "`eb` (5.0 forwards), `left_to_right` (40.0 forwards), `confidence` (50.0 forwards)" in front
    assert own.startswith("**`uncode_tau`** (50.0 and 50.0 % in 20.0 and 20.0 forwards): `confidence`, `margin`, ")
    assert "are significantly better; rows at least as accurate in no more forwards: `eb`; 0 of 4 rows" in own
    assert "rows significantly better on one family: docstring (`confidence` and 3 more), sentence" in own
    level = findings(Board.of([results_with(certain_first=(30, 5.0), eb=(30, 9.0))]))
    assert (
        "no row is significantly better; no significant difference from `eb`; 0 of 1 rows are significantly worse"
        in level[2]
    )
    assert level[2].endswith("no row is significantly better on one family.")
    once = [
        results_with(0, certain_first=(20, 5.0), eb=(38, 9.0)),
        results_with(1, certain_first=(20, 5.0), eb=(20, 9.0)),
    ]
    assert findings(Board.of(once))[2].endswith(
        "; with one seed only: docstring (`eb`, seed 0), sentence (`eb`, seed 0), "
        "story (`eb`, seed 0), algebra (`eb`, seed 0), choice (`eb`, seed 0), countdown (`eb`, seed 0), "
        "sudoku (`eb`, seed 0)."
    )


def test_a_preset_without_a_row_is_named_with_the_reason() -> None:
    found = board()
    assert found.without_row["klass"] == "it needs what this model lacks."
    assert found.without_row["saber"] == NOT_RUN
    names = {name for name in catalog() if not name.startswith("legacy.")}
    assert set(found.without_row) | {"uncode"} == names - set(found.names)
    text = page(found)
    assert "| `klass` | it needs what this model lacks. |" in text
    for title in ("What it shows", "Standings", "Differences", "By family", "Settings and costs", "Make it again"):
        assert f"\n## {title}\n" in text
    assert "Rows to read with care" not in text
    careful = page(Board.of([results_with(edit=(10, 5.0), eb=(30, 9.0))]))
    assert "* `edit` is made for models that were trained to correct" in careful and "prophet` needs" not in careful


def test_new_problems_have_a_section_where_they_were_measured(tmp_path: Path) -> None:
    assert fresh_board(tmp_path, board()) is None and "## New problems" not in page(board())
    for seed, right in ((0, 38), (1, 36)):
        found = results_with(seed, certain_first=(right, 7.0), eb=(20, 6.0), **{"uncode 0.1": (37, 50.0)})
        fresh = tmp_path / FRESH_FOLDER / ("" if seed == 0 else SECOND_FOLDER)
        fresh.mkdir()
        replace(found, about=found.about | {"draw": 90125}).save(fresh / RESULTS)
    measured = fresh_board(tmp_path, board())
    assert measured is not None
    section = page(board(), measured).split("\n## New problems\n")[1].split("\n## ")[0]
    assert "also decoded on 40 new problems of each family, which `uncode mini --draw 90125` draws" in section
    assert (
        "* **`certain_first`** (95.0 and 90.0 % in 7.0 and 7.0 forwards): no row is significantly better; 1 of 1"
        in section
    )
    assert "\n### From `certain_first`\n" in section and "|  | uncode 0.1, best fixed rate |" in section
    assert "`uncode 0.1, best fixed rate` was chosen with the labels of these problems" in section
    other = results_with(certain_first=(3, 7.0))
    for about, fault in (({"draw": None}, "of no draw"), ({"draw": 3, "weights": "others"}, "of other weights")):
        replace(other, about=other.about | about).save(tmp_path / FRESH_FOLDER / RESULTS)
        with pytest.raises(UncodeError, match=fault):
            fresh_board(tmp_path, board())


def test_the_script_of_the_release_names_rows_of_the_suite(tmp_path: Path) -> None:
    def measure(*parts: str) -> subprocess.CompletedProcess[str]:
        words = [str(ROOT / "release" / "measure.sh"), str(tmp_path), *parts]
        return subprocess.run(
            words, env=os.environ | {"UNCODE": "echo", "MPS": "no"}, capture_output=True, text=True, check=False
        )

    shown = measure("suite", "board", "fresh").stdout
    rows = re.findall(r"--samplers (.*) --draw 90125", shown)[0].split(",")
    assert set(rows) <= set(entries_by_label()) and {with_rate(rate) for rate in RATES} <= set(rows)
    assert shown.count("--device cuda --workers 12 --batch 256") == 3 and shown.count("--all --second") == 2
    assert (ROOT / "release" / "tiny-seed-1" / "model.safetensors").is_file()
    wrong = measure("bord")
    assert wrong.returncode == 2 and "there is no part 'bord'" in wrong.stderr
    early = measure("pages")
    assert early.returncode == 2 and f"'{tmp_path}/board' has no results" in early.stderr, "and nothing was replaced"


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
        (["--all", "--card"], "--card goes with --model only"),
        (["--all", "--second", "nosuch"], "there is no folder 'nosuch'"),
        (["--stored"], "give --all and --samplers too"),
        (["--all", "--stored"], "give --all and --samplers too"),
        (["--stored", "--show", "x"], "--show goes with"),
        (["--all", "--samplers", ","], "--samplers names nothing"),
        (["--all", "--samplers", "nosuch.toml"], "there is no sampler file 'nosuch.toml'"),
        (["--all", "--samplers", "eb", "--stored", "--draw", "7"], "leave out --stored or --draw"),
        (["--all", "--samplers", "eb", "--stored", "--seed", "5"], "decoded with --seed 0"),
    ],
)
def test_options_of_the_leaderboard_are_checked_first(words: list[str], message: str) -> None:
    with pytest.raises(UncodeError, match=message):
        call("mini", *words)


def test_a_sampler_file_gets_its_place_among_stored_rows(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(PRESETS["fast_dllm"](threshold=0.5).to_toml())
    words = ("--all", "--samplers", str(mine), "--stored", "--family", "sudoku", "--problems", "2")
    shown = call("mini", *words, "--out", str(tmp_path / "out")).stdout
    assert "new: mine; the other rows are stored results (bfloat16 on cuda)" in shown and " mine (new) " in shown
    assert shown.index("minus mine (new)") < shown.index("minus left_to_right")
    again = call("mini", *words, "--out", str(tmp_path / "out"), "--plot", str(tmp_path / "board.svg"), "--json").stdout
    assert json.loads(again)["new"] == ["mine"] and b"<!-- mine -->" in (tmp_path / "board.svg").read_bytes()
    assert call("mini", *words, "--plot", str(tmp_path / "board.svg")).exit_code == 0, "it replaces its own figure"
    stored, joined = Results.load(TINY / "results.json"), Results.load(tmp_path / "out" / "results.json")
    assert list(joined.cells) == ["mini_sudoku"]
    rows, known = joined.cells["mini_sudoku"], stored.cells["mini_sudoku"]
    assert {*rows} == {*known, "mine"} and rows["mine"].forwards < rows["eb"].forwards
    assert (rows["eb"].right, rows["eb"].forwards) == (known["eb"].right[:2], known["eb"].forwards)


def test_a_new_row_replaces_the_stored_one_of_its_name() -> None:
    new, stored = results_with(eb=(3, 1)), results_with(eb=(30, 9), confidence=(20, 9))
    both = {"table": "t", "device": "cpu"}
    new, stored = (replace(run, about=run.about | both) for run in (new, stored))
    cells = beside_stored(new, stored).cells["mini_story"]
    assert (cells["eb"].forwards, cells["confidence"].forwards) == (1, 9)
    with pytest.raises(UncodeError, match="frequency table is not that of its stored rows"):
        beside_stored(new, replace(stored, about=stored.about | {"table": "other"}))


def test_stored_rows_are_of_the_same_weights(tmp_path: Path) -> None:
    job = Job("tiny", "cpu", None, problems=2, batch=2, seed=0, rates=None, folder=None)
    second = ROOT / "release" / "tiny-seed-1"
    found = stored_results([job, replace(job, model=str(second))])
    assert [run.about["training_seed"] for run in found] == [0, 1]
    with pytest.raises(UncodeError, match="have 1024 problems a family: give --problems 1024 or fewer"):
        stored_results([replace(job, problems=1025)])
    with pytest.raises(UncodeError, match="there are no stored results of the weights of"):
        stored_results([replace(job, model=str(tmp_path))])


def test_the_page_is_what_the_command_writes() -> None:
    text = (ROOT / "docs" / PAGE_FILE).read_text()
    board = board_of(TINY)
    assert text == page(board, fresh_board(TINY, board)) and "## New problems" in text
    drawn = (ROOT / "docs" / "pictures" / FIGURE_FILE).read_text()
    assert all(f"<!-- {name}" in drawn or f"{name}, " in drawn for name in board.names)


def test_every_preset_says_what_it_costs() -> None:
    silent = [name for name, entry in catalog().items() if not entry.cost and not name.startswith("legacy.")]
    assert not silent, "say so in the docstring: `Cost: at most one forward a token; no memory.`"
