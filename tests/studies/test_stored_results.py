"""The stored results of `tiny`: its pages are written from them, and they are of its weights and problems."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import pytest
from studies.card.__main__ import SHIPPED, sampler_files, shipped
from studies.card.claims import REASONING
from studies.card.details import DIRECT, details
from studies.card.page import card, draw_accuracy, main_samplers
from studies.leaderboard.page import FIGURE_FILE, PAGE_FILE, board_of, fresh_board, page
from studies.trainings import FOLDERS, ROOT, TINY_CONFIG, Training, trainings

import uncode
from studies import papers
from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.folder import results_of, weights_digest
from uncode.evals.suite.names import UNCODE
from uncode.evals.suite.run import problems_digest
from uncode.frequency import FrequencyTable
from uncode.models import TINY
from uncode.train.config import TrainConfig


@pytest.fixture(scope="module")
def runs() -> list[Training]:
    return [run.of_main_presets() for run in trainings()]


def test_the_card_and_the_files_beside_it_are_what_the_command_writes(runs: list[Training]) -> None:
    assert card(runs) == (TINY / "README.md").read_text()
    assert details(runs) == (TINY / "details.md").read_text()
    found = {file.stem: file.read_text() for file in (TINY / "samplers").glob("*.toml")}
    results = trainings()[0].results
    assert found == sampler_files(results, FrequencyTable.load(TINY / "frequency.safetensors")) and len(found) == 7
    assert results_of(TINY) == shipped(results)
    assert all(list(cells) == list(SHIPPED) for cells in results_of(TINY).cells.values())


def test_the_figure_shows_every_preset_of_the_card(runs: list[Training]) -> None:
    drawn = (TINY / "accuracy.svg").read_bytes()
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    comments = " ".join(re.findall(r"<!-- (.*) -->", drawn.decode()))
    missing = [name for name in main_samplers(runs[0].results) if name not in comments]
    assert not missing, "names stand in comments, before their outlines; a long line is broken into two"
    if f"Matplotlib v{matplotlib.__version__},".encode() in drawn:  # other versions draw other outlines
        assert drawn == draw_accuracy({run.seed: run.results for run in runs})


def test_the_leaderboard_is_what_the_command_writes() -> None:
    text, board = (ROOT / "docs" / PAGE_FILE).read_text(), board_of(trainings())
    assert text == page(board, fresh_board(trainings("fresh-"), board)) and "## New problems" in text
    drawn = (ROOT / "docs" / "pictures" / FIGURE_FILE).read_text()
    assert all(f"<!-- {name}" in drawn or f"{name}, " in drawn for name in board.names)


def test_the_page_of_papers_is_the_presets() -> None:
    assert (ROOT / "docs" / "papers.md").read_text() == papers.page(), "run `make docs`"


def test_both_seeds_were_put_to_the_same_problems() -> None:
    for seed, run in enumerate(trainings()):
        config, about = replace(TrainConfig.load(TINY_CONFIG), seed=seed), run.results.about
        assert run.seed == about["training_seed"] == seed and about["weights"] == weights_digest(run.folder)
        assert about["held_out"] == problems_digest() and about["problems"] == 1024
        assert run.record["sha256"] == config.sha256 and run.record["steps"] == config.schedule.steps
        assert run.record["seconds"] < 480
        assert run.weights_sha256 == run.record.get("weights_sha256", run.weights_sha256)


def test_the_second_seed_is_kept() -> None:
    """A test of a sampler on both seeds needs these weights, which are not in the package."""
    folder = FOLDERS[1]
    for name in ("tokenizer.json", "frequency.safetensors"):
        assert (folder / name).read_bytes() == (TINY / name).read_bytes()
    assert uncode.load(str(folder)).vocab_size == uncode.load("tiny").vocab_size


@pytest.mark.parametrize("seed", [0, 1])
def test_reasoning_is_needed(seed: int) -> None:
    """An answer without reasoning is wrong more often than not, and from left to right the model is mostly right."""
    results = trainings()[seed].results
    forced = {name: cell.accuracy.estimate for name in FAMILIES if (cell := results.cell(name, DIRECT))}
    assert list(forced) == list(REASONING) and max(forced.values()) < 0.4
    reasoned = [cell.accuracy.estimate for name in forced if (cell := results.cell(name, "left_to_right"))]
    assert min(reasoned) > 0.75


@pytest.mark.slow
def test_the_results_are_what_the_weights_do() -> None:
    """Right and wrong problems of four cells, 16 in all; bfloat16 there and float32 here may differ on a few."""
    tiny = uncode.load("tiny")
    results, differing = trainings()[0].results, 0
    for name in ("mini_countdown", "mini_sudoku"):
        family, rate = FAMILIES[name], results.rate(name)
        calibrated = uncode.presets.uncode(frequency=tiny.frequency, rate=rate, special="neutral")  # type: ignore[attr-defined]
        for cell, sampler in ((UNCODE, calibrated), ("left_to_right", uncode.presets.left_to_right())):
            found = results.cell(name, cell)
            assert found is not None
            numbers = [n for mark in "10" for n in [n for n, m in enumerate(found.right) if m == mark][:2]]
            examples = [family.examples()[n] for n in numbers]
            texts = uncode.generate(tiny, [family.prompt(e) for e in examples], sampler=sampler, length=family.length)
            right = [family.grade(example, text).correct for example, text in zip(examples, texts, strict=True)]
            differing += sum(r != (found.right[n] == "1") for r, n in zip(right, numbers, strict=True))
    assert differing <= 2
