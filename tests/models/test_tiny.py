"""The model that is part of the package: its files are what our commands make, and it does what its card says."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import pytest

import uncode
from tests.cli.running import run
from uncode.evals.suite.card.accuracy_figure import draw_accuracy
from uncode.evals.suite.card.details import details
from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.families.family import Family
from uncode.evals.suite.folder import load_runs, results_of
from uncode.evals.suite.job import problems_digest
from uncode.evals.suite.names import DIRECT, REASONING, UNCODE
from uncode.evals.suite.report import main_samplers
from uncode.evals.suite.sampler import at_rate
from uncode.evals.suite.write import sampler_files
from uncode.frequency import FrequencyTable
from uncode.models import TINY
from uncode.train.config import TrainConfig

ROOT = Path(__file__).parents[2]
SHELLS = (
    "Question: Mia has 3 shells. Cleo has 6 more shells than Mia. Mia is 32 years old. "
    "Ian has 16 more shells than Cleo. Gus has twice as many shells as Ian. "
    "Ben has 14 fewer shells than Gus. How many shells does Ben have?\nAnswer:"
)


@pytest.fixture(scope="module")
def tiny() -> uncode.Denoiser:
    return uncode.load("tiny")


def test_its_card_and_its_sampler_files_are_printed_by_commands() -> None:
    found = {file.stem: file.read_text() for file in (TINY / "recipes").glob("*.toml")}
    assert found == sampler_files(TINY) and len(found) == 7
    assert run("mini", "--card").stdout == (TINY / "README.md").read_text()
    assert details(TINY) == (TINY / "details.md").read_text()


def test_its_figure_shows_every_preset_of_its_results() -> None:
    drawn = (TINY / "accuracy.svg").read_bytes()
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    comments = " ".join(re.findall(r"<!-- (.*) -->", drawn.decode()))
    missing = [name for name in main_samplers(load_runs(TINY)[0].results) if name not in comments]
    assert not missing, "names stand in comments, before their outlines; a long line is broken into two"
    if f"Matplotlib v{matplotlib.__version__},".encode() in drawn:  # other versions draw other outlines
        assert drawn == draw_accuracy({run.seed: run.results for run in load_runs(TINY)})


def test_it_was_made_by_its_config_in_time() -> None:
    record = json.loads((TINY / "training.json").read_text())
    config = TrainConfig.load("tiny")
    assert record["sha256"] == config.sha256 and record["steps"] == config.schedule.steps
    assert record["seconds"] < 480
    assert (TINY / "model.safetensors").stat().st_size < 17e6


def test_its_tables_were_counted_with_its_tokenizer(tiny: uncode.Denoiser) -> None:
    files = [TINY / "frequency.safetensors", *sorted((TINY / "tables").glob("*.safetensors"))]
    names = [FrequencyTable.load(file, tiny.tokenizer).name for file in files]
    assert names == ["tiny", "code", "prose"]
    for file in files:
        text = run("table", "show", str(file)).stdout
        assert "/" not in text.partition("sha256")[0].replace("curriculum.jsonl", ""), "no path of any machine"


def test_its_results_are_of_these_weights_and_problems(tiny: uncode.Denoiser) -> None:
    results = results_of(TINY)
    assert results.about["problems"] == 1024 and list(results.cells) == list(FAMILIES)
    assert all(len(cell.right) == 1024 for cells in results.cells.values() for cell in cells.values())
    weights = hashlib.sha256((TINY / "model.safetensors").read_bytes()).hexdigest()
    assert results.about["weights"] == weights[:16]
    assert results.about["table"] == tiny.frequency.sha256[:16]  # type: ignore[attr-defined]


def test_a_second_seed_was_put_to_the_same_problems() -> None:
    first, second = (results_of(folder) for folder in (TINY, TINY / "second"))
    assert first.about["weights"] != second.about["weights"]
    assert first.about["held_out"] == second.about["held_out"] == problems_digest()
    config = replace(TrainConfig.load("tiny"), seed=1)
    two = json.loads((TINY / "second" / "training.json").read_text())
    assert two["sha256"] == config.sha256 and two["steps"] == config.schedule.steps
    assert two["seconds"] < 480


@pytest.mark.parametrize("folder", [TINY, TINY / "second"])
def test_reasoning_is_needed(folder: Path) -> None:
    """An answer without reasoning is wrong more often than not, and from left to right the model is mostly right."""
    results = results_of(folder)
    forced = {name: cell.accuracy.estimate for name in FAMILIES if (cell := results.cell(name, DIRECT))}
    assert list(forced) == list(REASONING) and max(forced.values()) < 0.4
    reasoned = [cell.accuracy.estimate for name in forced if (cell := results.cell(name, "left_to_right"))]
    assert min(reasoned) > 0.75


@pytest.mark.parametrize("name", FAMILIES)
def test_every_held_out_problem_fits_into_its_context(name: str, tiny: uncode.Denoiser) -> None:
    family: Family[object] = FAMILIES[name]
    context = json.loads((TINY / "config.json").read_text())["max_sequence_length"]
    prompts = [family.prompt(example) for example in family.examples() + family.unlabelled()]
    assert max(map(len, tiny.tokenizer(prompts)["input_ids"])) + family.length <= context


def test_the_order_decides() -> None:
    shown = json.loads(run("compare", SHELLS, "--length", "96", "--json").stdout)
    hasty, blocks, calibrated = (row["text"] for row in shown)
    assert "36" not in hasty and shown[0]["first_end"] == 0, "confidence ends the answer before it begins"
    assert blocks.endswith("#### 36") and calibrated.endswith("#### 36")


@pytest.mark.slow
def test_the_results_are_what_the_weights_do(tiny: uncode.Denoiser) -> None:
    """Right and wrong problems of four cells, 16 in all; bfloat16 there and float32 here may differ on a few."""
    results, differing = results_of(TINY), 0
    for name in ("mini_countdown", "mini_sudoku"):
        family, rate = FAMILIES[name], results.rate(name)
        calibrated = at_rate(tiny.frequency, rate)  # type: ignore[attr-defined]
        for cell, sampler in ((UNCODE, calibrated), ("left_to_right", uncode.presets.left_to_right())):
            found = results.cell(name, cell)
            assert found is not None
            numbers = [n for mark in "10" for n in [n for n, m in enumerate(found.right) if m == mark][:2]]
            examples = [family.examples()[n] for n in numbers]
            texts = uncode.generate(tiny, [family.prompt(e) for e in examples], sampler=sampler, length=family.length)
            right = [family.grade(example, text).correct for example, text in zip(examples, texts, strict=True)]
            differing += sum(r != (found.right[n] == "1") for r, n in zip(right, numbers, strict=True))
    assert differing <= 2


def test_a_problem_goes_from_the_tasks_to_the_model_by_its_own_sampler() -> None:
    problem = run("tasks", "mini_choice", "--example", "4").stdout
    answered = run("decode", "-", "--sampler", "choice", "--json", stdin=problem)
    row = json.loads(answered.stdout)
    family = FAMILIES["mini_choice"]
    assert row["model"] == "tiny" and row["prompt_text"] == problem.removesuffix("\n")
    assert family.grade(family.examples()[4], row["text"]).correct
    rate = results_of(TINY).rate("mini_choice")
    assert f'"rate": {rate}' in json.dumps(row["sampler"])


@pytest.mark.parametrize("length", [88, pytest.param(128, marks=pytest.mark.slow)])
def test_the_first_example_holds_at_every_length(tiny: Any, length: int) -> None:
    """It does not hinge on one length: confidence is wrong and Uncode right at both, and at the docs' own.

    The longer one under `make verify`.
    """
    page = (ROOT / "docs" / "first-decode.md").read_text()
    found = re.search(r"problem = (\(\n.*?\n\))", page, re.S)
    assert found
    prompt = eval(found[1])
    assert prompt == SHELLS
    for sampler, right in (("confidence", False), ("uncode", True)):
        text = uncode.generate(tiny, prompt, sampler=sampler, length=length)
        assert text.endswith("#### 36") == right, text


def test_the_second_seed_is_kept() -> None:
    """A test of a sampler on both seeds needs these weights, which are not in the package."""
    folder = ROOT / "release" / "tiny-seed-1"
    if not folder.is_dir():
        pytest.skip("there is no repository")
    found = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert found == load_runs(TINY)[1].weights_sha256 and found in (TINY / "README.md").read_text()
    for name in ("tokenizer.json", "frequency.safetensors"):
        assert (folder / name).read_bytes() == (TINY / name).read_bytes()
    assert uncode.load(str(folder)).vocab_size == uncode.load("tiny").vocab_size
