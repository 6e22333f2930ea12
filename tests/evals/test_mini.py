"""The mini-suite: what a cell holds, what is chosen without labels, what the tables say."""

from __future__ import annotations

import json
import multiprocessing
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import uncode
from tests.cli.running import call
from tests.evals.runs import make_run, sample
from uncode import UncodeError
from uncode.analysis.measures.order import order_of
from uncode.backbones.loading import device
from uncode.cli import devices
from uncode.cli.answering.three_orders import _typical_problems
from uncode.evals.run.config import EvalConfig
from uncode.evals.run.folder import RunFolder
from uncode.evals.run.models import diffusion
from uncode.evals.run.models.load_model import load_model
from uncode.evals.run.options import RunOptions, RunProgress
from uncode.evals.run.runner import Runner
from uncode.evals.suite import names, outcomes, report
from uncode.evals.suite.board import Board
from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.from_run import biases_of
from uncode.evals.suite.names import RATES, UNCODE, with_rate
from uncode.evals.suite.results import CellResults, Results
from uncode.evals.suite.run import SuiteRun, problems_digest
from uncode.samplers.options import DEFAULT_SAMPLER
from uncode.samplers.presets import PRESETS
from uncode.train.config import TrainConfig
from uncode.train.examples.prepare import TEXTS_FILE, prepare
from uncode.train.export import export
from uncode.train.run import Run
from uncode.util.stats import wilson

ABOUT = {"model": "small", "dtype": "float32", "problems": 2, "seed": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learnt nothing, with a table counted from its examples."""
    made = tmp_path_factory.mktemp("model")
    config = TrainConfig.load("smoke")
    config = replace(config, examples=replace(config.examples, rows=(20, 20, 0, 40, 40, 40, 20)))
    config = replace(config, network=replace(config.network, width=32, hidden=48, vocab=320))
    run = Run(config, prepare(config, made / "examples", lambda name, count: None, workers=1), torch.device("cpu"))
    run.progress.curve = [(1, 2.5), (2, 1.25)]
    export(run, made / "examples", made)
    table = made / "frequency.safetensors"
    result = call("count", str(made / "examples" / TEXTS_FILE), "--tokenizer", str(made), "--out", str(table))
    assert result.exit_code == 0
    return made


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer rates, problems without labels and tokens: a model that has learnt nothing takes every step."""
    load = EvalConfig.load
    monkeypatch.setattr(EvalConfig, "load", lambda name: replace(load(name), rates=RATES[:2]))
    family = type(FAMILIES["mini_choice"])
    monkeypatch.setattr(family, "settings", replace(family.settings, length=24, block_length=3))
    monkeypatch.setattr(family, "unlabelled", lambda self, data=None: self._held_out(data)[1024:1026])


def job(folder: Path, out: Path, rates: dict[str, float] | None = None, batch: int = 2) -> SuiteRun:
    return SuiteRun(str(folder), "cpu", None, 2, batch, 0, rates, out, ("mini_choice",))


def ignore(progress: RunProgress) -> None:
    pass


def test_every_preset_takes_part() -> None:
    config = EvalConfig.load("mini")
    known = {name for name, preset in PRESETS.items() if preset.__module__.endswith(("classic", "own"))}
    assert {entry.preset for entry in config.samplers} == known, "a new preset does not enter the suite by itself"
    labels = [entry.label for entry in config.samplers]
    assert set(names.QUICK) <= set(labels) and len(names.QUICK) == 6
    assert {with_rate(rate) for rate in RATES} <= set(labels) and config.rates == RATES
    assert {0.0, 0.25, 0.5, 1.0} <= set(RATES)


@pytest.mark.usefixtures("short")
@pytest.mark.slow
def test_a_family_is_run_once_and_the_same_in_any_batch(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = job(folder, tmp_path / "run").run(1, ignore)
    cells = results.cells["mini_choice"]
    assert list(cells)[:4] == ["uniform", "confidence", "entropy", "margin"] and len(cells) == 31
    assert {with_rate(0.0), with_rate(0.02), "uncode_tau"} <= set(cells) and UNCODE not in cells
    entropies = results.entropies["mini_choice"]
    assert set(entropies) == {"0", "0.02"} and all(value > 0 for value in entropies.values())
    assert set(results.biases) == {"mini_choice", "all"}
    assert Results.load(tmp_path / "run" / "results.json") == results
    samples = RunFolder(tmp_path / "run").samples()
    assert len({(sample.sampler, sample.id) for sample in samples}) == len(samples) == 2 * 34
    alone = replace(job(folder, tmp_path / "alone", {"mini_choice": 0.02}, batch=1)).run(1, ignore)
    for name in ("confidence", "semi_ar", "left_to_right"):
        assert alone.cells["mini_choice"][name] == cells[name]
    assert alone.cells["mini_choice"][UNCODE] == cells[with_rate(0.02)]
    monkeypatch.setattr(diffusion, "Engine", None)  # nothing is decoded again
    assert job(folder, tmp_path / "run").run(1, ignore) == results


def test_a_draw_of_ones_own_has_other_problems_than_the_published_ones(folder: Path, tmp_path: Path) -> None:
    name = "mini_countdown"
    drawn = SuiteRun(str(folder), "cpu", None, 1, 4, 0, {name: 0.5}, tmp_path, (name,), draw=3)
    results = drawn.run(1, ignore)
    assert drawn.data is not None and results.about["held_out"] == problems_digest([name], drawn.data)
    family = FAMILIES[name]
    fresh, published = (
        {family.key(example) for example in family.examples(data) + family.unlabelled(data)}
        for data in (drawn.data, None)
    )
    assert len(fresh) == len(published) == 1024 + 64 and not fresh & published
    assert all(family.held_out(example) for example in family.examples(drawn.data))
    assert drawn.run(1, ignore) == results
    for other in (replace(drawn, draw=4), replace(drawn, draw=None)):
        with pytest.raises(UncodeError, match="has answers to other problems: choose another `out=`"):
            other.run(1, ignore)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # with threads, which here only wait
@pytest.mark.parametrize("start", [pytest.param(kind, marks=pytest.mark.slow) for kind in ("fork", "spawn")])
def test_a_quick_run_in_two_processes(
    start: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forks do not import torch again. Under `make verify` by new processes too, as users run it."""
    real = multiprocessing.get_context
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: real(start))
    families = ("mini_choice", "mini_sudoku")
    quick = SuiteRun(str(folder), "cpu", None, 1, 4, 0, dict.fromkeys(families, 0.5), tmp_path, families)
    messages: list[RunProgress] = []
    results = quick.run(workers=2, on_progress=messages.append)
    assert (messages[-1].done, messages[-1].total) == (12, 12) and messages[-1].cell.startswith("mini_")
    assert tuple(results.cells) == families
    assert all(sorted(cells) == sorted(names.QUICK) for cells in results.cells.values())
    assert Results.load(tmp_path / "results.json") == results
    with pytest.raises(UncodeError, match="with another seed"):
        replace(quick, seed=1).run(1, ignore)
    with pytest.raises(UncodeError, match=r"'uncode' on mini_choice .* with another definition of the sampler"):
        replace(quick, rates=dict.fromkeys(families, 0.1)).run(1, ignore)
    one = replace(quick, families=("mini_choice",)).run(workers=1, on_progress=ignore)
    assert tuple(one.cells) == families  # what is there stays in the table


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.usefixtures("short")
def test_every_preset_runs_and_one_that_cannot_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two processes; a killed run is the same as one of fewer samplers, which this one resumes."""
    real = multiprocessing.get_context
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: real("fork"))
    bare = tmp_path / "bare"
    shutil.copytree(folder, bare, ignore=shutil.ignore_patterns("frequency.safetensors", "examples"))
    mine = tmp_path / "mine, whole.toml"  # a name that ends like the rows that measure the order
    mine.write_text(uncode.presets.confidence(steps=3).to_toml())
    rows = ("left_to_right", "certain_first", "fast_dllm", "uncode_eb", str(mine))
    families, rates = ("mini_choice",), {"mini_choice": 0.1}
    whole = SuiteRun(str(bare), "cpu", None, 2, 2, 0, rates, tmp_path / "run", families, every_preset=True)
    labels = [entry.label for entry in whole.config.samplers]
    assert {entry.preset for entry in whole.config.samplers} == set(PRESETS) and len(labels) == len(set(labels))
    part = replace(whole, samplers=rows[:1]).run(1, ignore)
    assert list(part.cells["mini_choice"]) == ["left_to_right"] and part.about["left_out"] == {}
    results = replace(whole, samplers=rows).run(2, ignore)
    assert list(results.cells["mini_choice"]) == ["left_to_right", "fast_dllm", "mine, whole"]
    assert results.cells["mini_choice"]["left_to_right"] == part.cells["mini_choice"]["left_to_right"]
    assert results.cells["mini_choice"]["mine, whole"].forwards == 3
    assert sorted(results.about["left_out"]) == ["certain_first", "uncode_eb"]
    assert "needs a frequency table" in results.about["left_out"]["uncode_eb"]
    assert results.about["training_seed"] == 0 and results.about["table"] is None
    with pytest.raises(UncodeError, match="has no frequency table"):
        replace(whole, every_preset=False).run(1, ignore)
    bad = tmp_path / "bad.toml"
    bad.write_text(mine.read_text().replace("Confidence", "Konfidence"))
    with pytest.raises(UncodeError, match=r"no sampler can decode .*: bad: .*did you mean 'Confidence'"):
        replace(whole, samplers=(str(bad),), folder=tmp_path / "none").run(1, ignore)
    results = replace(whole, samplers=(*rows, str(bad))).run(1, ignore)
    found = Board.of([results])
    assert "did you mean 'Confidence'" in found.without_row["bad"]
    assert found.without_row["certain_first"] == results.about["left_out"]["certain_first"]


def test_the_table_in_a_models_folder_is_its_own(folder: Path) -> None:
    words = ("Problem: Compute 2 + 3\nSolution:", "--model", str(folder), "--length", "6")
    one = json.loads(call("decode", *words, "--json").stdout)
    assert one["sampler"]["name"] == DEFAULT_SAMPLER and "frequency" in json.dumps(one["sampler"])
    both = call("compare", *words, "--samplers", "confidence,uncode")
    assert both.exit_code == 0 and "uncode: " in both.stdout


def cell(right: str, hasty: str = "") -> CellResults:
    return CellResults(right, hasty or "0" * len(right), 10.0, 5.0)


@pytest.fixture
def results() -> Results:
    cells = {
        family: {
            "confidence": cell("1100", "0011"),
            "semi_ar": cell("1110"),
            "certain_first": cell("1111"),
            with_rate(0.0): cell("0000"),
            with_rate(0.1): cell("1111" if family == "mini_story" else "1110"),
        }
        for family in ("mini_story", "mini_sudoku")
    }
    entropies = {"mini_story": {"0": 0.5, "0.1": 0.2}, "mini_sudoku": {"0": 0.1, "0.1": 0.1}}
    ordered = {"when": np.linspace(0.05, 0.95, 10)[None].repeat(4, 0), "early": [0.25] * 4, "overall": [0.5] * 4}
    ends = ordered | {"when": np.array([0.1, 0.3, 0.5, 0.7, 0.9, 0.9, 0.7, 0.5, 0.3, 0.1])[None].repeat(4, 0)}
    orders = {"confidence": ends | {"early": [0.5] * 4}, "left_to_right": ordered}
    return Results(dict(ABOUT, problems=4), cells, entropies, biases_of({"mini_story": orders}))


def test_the_rate_is_chosen_by_entropy_and_ties_go_to_the_smallest(results: Results) -> None:
    assert results.rate("mini_story") == 0.1 and results.rate("mini_sudoku") == 0.0
    assert results.cell("mini_story", UNCODE) == results.cells["mini_story"][with_rate(0.1)]
    assert results.solved(UNCODE).tolist() == [1, 1, 1, 1, 0, 0, 0, 0]  # type: ignore[union-attr]
    assert results.solved("nothing") is None
    assert report.best_fixed(results) == 0.1


def test_the_tables_say_what_the_results_hold(results: Results) -> None:
    titles, rows, *_ = report.accuracy(results)
    table = {row[0]: dict(zip(titles, row, strict=True)) for row in rows}
    assert table["confidence"]["story"] == "50.0" and table["semi_ar"]["sudoku"] == "75.0"
    assert table["uncode, label-free rates"]["average"].startswith("50.0 [")
    assert table["uncode 0.1, best fixed rate"]["average"].startswith("87.5 [")
    assert table["semi_ar"]["uncode minus it"].startswith("-25.0 [")
    low, high = (100 * value for value in wilson(2, 4)[1:])
    assert report.accuracy(results, intervals=True).rows[0][1] == f"50.0 [{low:.1f}, {high:.1f}]"
    assert [row[-1] for row in report.rates(results).rows] == ["0.1", "", "0", ""]
    (story, everything) = report.biases(results).rows
    assert story[1:] == everything[1:]
    assert story[1:4] == ["0.80 (no spread)"] * 3
    assert story[4:] == ["0.50 (no spread)", "0.25 (no spread)", "0.25 (no spread)"]
    assert report.times(results).rows[0][5] == "0.90 (no spread)"


def test_results_are_read_back_and_other_files_refused(results: Results, tmp_path: Path) -> None:
    results.cells["mini_story"]["confidence"].sound = "0100"
    results.save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == results
    packed = json.loads((tmp_path / "results.json").read_text())
    assert packed["cells"]["mini_story"]["confidence"]["right"] == "0x1c", "1100 after a leading 1, four marks a digit"
    packed["cells"]["mini_story"]["confidence"]["right"] = "1100"
    for text in (json.dumps(packed), "[]", "{}", '{"about": {}, "cells": {"a": {"b": {"right": 1}}}}', "no"):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(UncodeError, match="not a file of results"):
            Results.load(tmp_path / "other.json")


def test_what_is_measured_of_a_trace() -> None:
    """Sixteen tokens and four ends, written from both ends inwards."""
    commits = np.array([*range(0, 20, 2), *range(19, 0, -2)])
    tokens = np.array([5, 9, 5, 9] + [9] * 12 + [1] * 4)
    seen = order_of(tokens, commits, trivial=(5,), eos_ids=(1,))
    assert seen["early"] == 0.5 and seen["overall"] == 0.125  # 5, 9, 5, 9 first; two of sixteen
    assert seen["when"][0] == 0.0526 and seen["when"][4] == 0.8947 and seen["when"][9] == 0.1053


def test_results_in_a_models_folder_are_shown_and_give_the_rates(folder: Path, results: Results) -> None:
    results.save(folder / "results.json")
    try:
        table = call("mini", "--show", str(folder / "results.json"))
        with pytest.raises(UncodeError, match="no rate was chosen for mini_docstring"):
            call("mini", "--model", str(folder), "--quick")
    finally:
        (folder / "results.json").unlink()
    for words in (("--show", "x", "--quick"), ("--quick", "--model", "x")):
        with pytest.raises(UncodeError, match=r"leave the other|no folder 'x'"):
            call("mini", *words)
    assert "label-free rates" in table.stdout and "87.5" in table.stdout and "…" not in table.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "toy"], r"'toy' has no trained weights: give --model tiny, .* `uncode train` made"),
        (["--model", "nosuch"], "there is no folder 'nosuch': give --model tiny, or"),
        (["--family", "stroy"], "there is no family 'stroy': did you mean 'story'"),
        (["--quick", "--device", "cdua"], "'cdua' is no device: did you mean 'cuda'"),
        (["--quick", "--device", "cpu:x"], "'cpu:x' is no device: use cpu"),
        (["--quick", "--dtype", "float99"], "'float99' is no dtype: did you mean 'float64'"),
        (["--model", str(Path(__file__).parent)], "has no frequency.safetensors"),
    ],
)
def test_bad_values_are_told_before_anything_is_loaded(words: list[str], message: str) -> None:
    """What is quick imports no torch: tests/cli/test_start.py has the list."""
    with pytest.raises(UncodeError, match=message):
        call("mini", *words)


def test_names_known_without_torch_are_those_of_the_loader() -> None:
    assert tuple(device.DTYPES) == devices.DTYPES
    for name in devices.DEVICES:
        assert torch.device(name).type == name
        devices.check_device(f"{name}:0")


@pytest.mark.usefixtures("short")
def test_choosing_a_rate_says_how_far_it_is_and_keeps_each_answer(folder: Path, tmp_path: Path) -> None:
    messages: list[RunProgress] = []

    def stop_at_the_second_rate(progress: RunProgress) -> None:
        messages.append(progress)
        if "rate 0.02" in progress.cell:
            raise KeyboardInterrupt

    config = replace(job(folder, tmp_path).config, samplers=job(folder, tmp_path).config.samplers[-6:-5])
    runner = Runner(config, tmp_path, lambda name: load_model(name, config, device="cpu"), RunOptions(batch=2, limit=1))
    runner.on_progress = stop_at_the_second_rate
    with pytest.raises(KeyboardInterrupt):
        runner.run()
    assert [one.cell for one in messages[:2]] == [f"mini_choice, rate 0 without labels, {n} of 4" for n in (1, 2)]
    assert (messages[1].done, messages[1].total) == (0, 1)
    assert len(RunFolder(tmp_path / "calibration").samples()) == 3  # the first rate's, and one of the second


def test_the_demo_draws_what_is_commonest(results: Results) -> None:
    def marked(**rights: str) -> Results:
        cells = {name: CellResults(right, "0" * len(right), 1.0, 1.0) for name, right in rights.items()}
        return replace(results, cells={"mini_story": cells})

    # confidence alone is wrong three times
    split = marked(confidence="1000010", semi_ar="1111000", certain_first="1111100")
    assert _typical_problems(split, "mini_story") == [1, 2, 3]
    assert _typical_problems(marked(confidence="111", semi_ar="111", certain_first="111"), "mini_story") == [0, 1, 2]


def test_the_demo_solves_three_problems(folder: Path, tmp_path: Path, results: Results) -> None:
    results.cells = dict.fromkeys(FAMILIES, results.cells["mini_story"])
    results.save(folder / "results.json")
    try:
        shown = call("demo", "--model", str(folder), "--view", str(tmp_path / "demo.html"))
    finally:
        (folder / "results.json").unlink()
    text = " ".join(shown.stdout.split())
    assert text.count("certain_first corrects 2 errors of confidence and adds 0.") == 3
    assert text.count("forwards; ") == 9
    page = (tmp_path / "demo.html").read_text()
    assert page.count("<section") == 9 and page.count('"label":"story"') == 1


def test_held_out_problems_are_held_out() -> None:
    for family in FAMILIES.values():
        tested, others = family.examples(), family.unlabelled()
        assert (len(tested), len(others)) == (1024, 64)
        assert all(family.held_out(example) for example in tested + others)
        assert len({family.key(example) for example in tested + others}) == 1024 + 64


@pytest.mark.parametrize("min_bytes", [0, 2**30])
def test_outcomes_are_read_from_all_files_in_one_process_or_several(
    min_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, pool = list[int](), outcomes.ProcessPoolExecutor
    monkeypatch.setattr(outcomes, "MIN_BYTES", min_bytes)
    monkeypatch.setattr(outcomes.os, "cpu_count", lambda: 4)
    monkeypatch.setattr(outcomes, "ProcessPoolExecutor", lambda count, of: started.append(count) or pool(count, of))
    cell = ("tiny", "mini_story", "eb")
    folder = RunFolder(make_run(tmp_path / "run", {cell: "1101", (*cell[:2], "confidence"): "0"}))
    again, late = sample(cell, 0, [False, False]), sample(cell, 1, [False, False])
    with folder.writing(1) as lines:  # the first is there already, by its key; the second answers another prompt
        lines.add(again.as_row())
        lines.add(replace(late, key="new").as_row())
    found = outcomes.read_outcomes(folder)
    assert started == ([2] if min_bytes == 0 else [])
    assert list(found) == [("mini_story", "eb"), ("mini_story", "confidence")]
    assert [one.is_right for one in found["mini_story", "eb"]] == [True, False, False, True]
    first = found["mini_story", "eb"][0]
    assert (first.id, first.forwards, first.tokens, first.first_eos_step) == ("mini_story/0", 8, 4, None)
