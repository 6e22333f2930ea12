"""The page of the leaderboard, new rows among the stored ones, and the script that measures everything."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from studies.leaderboard.findings import (
    dominating,
    family_losses,
    headline,
    opponents,
    own_rows,
    signs,
    unbeaten,
    wins,
)
from studies.leaderboard.page import fresh_board, page
from studies.rows import beside_stored
from studies.trainings import FOLDERS, ROOT, Training, trainings

from studies import rows
from tests.cli.running import call
from tests.evals.test_leaderboard import board, results_with
from uncode import UncodeError
from uncode.evals.suite.board import Board
from uncode.evals.suite.every_preset import entries_by_label
from uncode.evals.suite.names import RATES, with_rate
from uncode.evals.suite.results import Results
from uncode.samplers.presets import PRESETS


def test_a_sign_is_of_both_seeds() -> None:
    found = board()
    assert signs(found, "confidence") == {"margin": -1, "left_to_right": -1, "eb": -1, "uncode_tau": -1}
    one_sided = Board.of([results_with(0, a=(38, 9), b=(20, 9)), results_with(1, a=(20, 9), b=(20, 9))])
    assert signs(one_sided, "a") == {"b": 0}
    assert dominating(found, "margin") == ["confidence"] and dominating(found, "eb") == []
    assert own_rows(found) == ["uncode_tau"]


def test_claims_name_the_best_rows() -> None:
    found = board()
    assert headline(found) == (
        "**`confidence` has the best average.** It is significantly better than 4 of 4 other rows with both seeds. "
        "`confidence`, `left_to_right` and `eb` are on the Pareto front with both seeds."
    )
    unlike = Board.of([results_with(0, a=(38, 9), b=(20, 9)), results_with(1, a=(20, 9), b=(22, 9))])
    assert headline(unlike).startswith("**`a` has the best mean of the two averages.** ")
    assert unbeaten(found, ["confidence", "uncode_tau"]) == "No row is significantly better than `confidence`."
    assert unbeaten(found, ["uncode_tau"]) == "Each of these rows has losses."


def test_wins_ties_and_losses_are_counted() -> None:
    found = board()
    assert wins(found, ["margin", "uncode_tau"]).rows == [
        ["margin", "3", "0", "1", "1"],
        ["uncode_tau", "0", "0", "4", "1"],
    ]
    assert [list(row) for row in opponents(found, ["uncode_tau"]).rows] == [
        ["confidence", "loss"], ["margin", "loss"], ["left_to_right", "loss"], ["eb", "loss"], ["uncode_tau", "-"],
    ]  # fmt: skip
    assert set(family_losses(found, ["uncode_tau"]).rows[0][1:]) == {"4"}
    level = Board.of([results_with(seed, certain_first=(30, 5.0), eb=(30, 9.0)) for seed in (0, 1)])
    assert wins(level, ["certain_first"]).rows == [["certain_first", "0", "1", "0", "0"]]
    assert set(family_losses(level, ["certain_first"]).rows[0][1:]) == {"0"}
    once = [results_with(seed, certain_first=(20, 5.0), eb=(right, 9.0)) for seed, right in ((0, 38), (1, 20))]
    assert set(family_losses(Board.of(once), ["certain_first"]).rows[0][1:]) == {"1 with seed 0"}


def fresh(*seeds: Results) -> list[Training]:
    drawn = [replace(run, about=run.about | {"draw": 90125}) for run in seeds]
    return [Training(folder, run) for folder, run in zip(FOLDERS, drawn, strict=True)]


def test_the_page_names_presets_without_a_row_and_rows_to_read_with_care() -> None:
    found = board()
    new = Board.of([run.results for run in fresh(*found.runs.values())])
    text = page(found, new)
    assert "| `klass` | it needs what this model lacks. |" in text
    titles = ("Standings", "Wins, ties and losses", "Two seeds", "Differences", "New problems", "By family")
    assert all(f"\n## {title}\n" in text for title in titles)
    assert text.count("<details markdown>\n<summary>") == text.count("\n\n</details>") > 6
    assert "Rows to read with care" not in text
    careful = page(Board.of([results_with(seed, edit=(10, 5.0), eb=(30, 9.0)) for seed in (0, 1)]), new)
    assert "* `edit` is made for models that were trained to correct" in careful and "prophet` needs" not in careful


def test_right_and_sound_answers_have_a_section_once_they_are_measured() -> None:
    found = board()
    new = Board.of([run.results for run in fresh(*found.runs.values())])
    assert "Right for the right reason" not in page(found, new)
    found.runs[1].cells["mini_story"]["eb"].sound = "1" * 10 + "0" * 30
    section = page(found, new).split("\n## Right for the right reason\n")[1].split("\n## ")[0]
    assert section.startswith("\nAn answer is sound if every equation is true and follows from ")
    assert "| seed 1 | story right | story sound | right, not sound |" in section and "| seed 0 |" not in section
    assert "Right answers without" not in page(found, new), "it is said of both seeds"
    for run in found.runs.values():
        for name in ("left_to_right", "confidence", "eb"):
            run.cells["mini_story"][name].sound = "1" * 30 + "0" * 10
    section_of_both = page(found, new).split("\n## Right for the right reason\n")[1].split("\n## ")[0]
    assert section_of_both.startswith(
        "\nRight answers without sound reasoning are most frequent with `confidence`, `left_to_right` and `eb`.\n\n"
        "| right, not sound, % of story | seed 0 | seed 1 |\n| --- | ---: | ---: |\n| confidence | 20.0 | 20.0 |\n"
    )
    assert "| eb | 75.0 | 25.0 | 50.0 | - |" in section and "| confidence | 95.0 | - | - | - |" in section


def test_new_problems_have_a_section() -> None:
    rows = {"eb": (20, 6.0), "uncode 0.1": (37, 50.0)}
    runs = fresh(*(results_with(seed, certain_first=(right, 7.0), **rows) for seed, right in ((0, 38), (1, 36))))
    section = page(board(), fresh_board(runs, board())).split("\n## New problems\n")[1].split("\n## ")[0]
    assert section.startswith("\nNo row is significantly better than `certain_first`.")
    assert "`uncode mini --draw 90125` draws these 40 problems of each family." in section
    assert "| certain_first | 1 | 0 | 0 | 0 |" in section and "|  | uncode 0.1, best fixed rate |" in section
    assert "<summary>From <code>certain_first</code></summary>" in section
    assert "`uncode 0.1, best fixed rate` was chosen with the labels of these problems" in section
    for about, fault in (({"draw": None}, "of no draw"), ({"draw": 3, "weights": "others"}, "of other weights")):
        other = [replace(run, results=replace(run.results, about=run.results.about | about)) for run in runs]
        with pytest.raises(UncodeError, match=fault):
            fresh_board(other, board())


def test_the_script_that_measures_names_rows_of_the_suite(tmp_path: Path) -> None:
    def measure(*parts: str) -> subprocess.CompletedProcess[str]:
        words = [str(ROOT / "studies" / "measure.sh"), str(tmp_path), *parts]
        return subprocess.run(
            words, env=os.environ | {"UNCODE": "echo", "MPS": "no"}, capture_output=True, text=True, check=False
        )

    shown = measure("suite", "board", "fresh").stdout
    named = re.findall(r"--samplers (.*) --draw 90125", shown)[0].split(",")
    assert set(named) <= set(entries_by_label()) and {with_rate(rate) for rate in RATES} <= set(named)
    assert shown.count("--device cuda --workers 12 --batch 256") == 3
    assert shown.count("--all --second studies/tiny-seed-1") == 2
    wrong = measure("bord")
    assert wrong.returncode == 2 and "there is no part 'bord'" in wrong.stderr
    early = measure("pages")
    assert early.returncode == 2 and f"'{tmp_path}/board' has no results" in early.stderr, "and nothing was replaced"


def test_a_sampler_file_gets_its_place_among_stored_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, out = tmp_path / "mine.toml", tmp_path / "out"
    mine.write_text(PRESETS["fast_dllm"](threshold=0.5).to_toml())
    words = ("--all", "--samplers", str(mine), "--family", "sudoku", "--problems", "2")
    assert call("mini", *words, "--out", str(out)).exit_code == 0
    rows.main([out / "results.json"])
    shown = capsys.readouterr().out
    assert "| minus mine | seed 0 | p |" in shown and "| certain_first | " in shown
    stored, new = trainings()[0].results, Results.load(out / "results.json")
    joined, known = beside_stored(new).cells["mini_sudoku"], stored.cells["mini_sudoku"]
    assert {*joined} == {*known, "mine"} and joined["mine"].forwards < joined["eb"].forwards
    assert (joined["eb"].right, joined["eb"].forwards) == (known["eb"].right[:2], known["eb"].forwards)
    again = replace(new, cells={"mini_sudoku": {"eb": joined["mine"]}})
    assert beside_stored(again).cells["mini_sudoku"]["eb"] == joined["mine"], "a new row replaces that of its name"
    for about, message in (
        ({"weights": "0"}, "there are no stored results of the weights of 'tiny'"),
        ({"draw": 7}, "leave out --draw"),
        ({"seed": 5}, "were decoded with --seed 0"),
        ({"table": "other"}, "frequency table is not that of its stored rows"),
    ):
        with pytest.raises(UncodeError, match=message):
            beside_stored(replace(new, about=new.about | about))
