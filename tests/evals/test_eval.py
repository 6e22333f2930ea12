"""Evaluation runs: what a config may say, what a run folder keeps, and that nothing is lost, mixed or repeated."""

from __future__ import annotations

import importlib
import json
import linecache
import os
import random
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import uncode
from tests.cli.running import ROOT, run
from tests.evals.small_models import benchmark_files, small_model
from uncode import Policy, Sampler, UncodeError
from uncode.cli.run_time import announce_time
from uncode.evals.report.analysis import Choices
from uncode.evals.report.scores import read_runs
from uncode.evals.report.tables import document
from uncode.evals.run.config import PACKAGE_CONFIGS, PAPER_CONFIGS, EvalConfig, SamplerEntry
from uncode.evals.run.estimate import estimate, expected_forwards
from uncode.evals.run.folder import RunFolder, RunInfo
from uncode.evals.run.models.diffusion import DiffusionModel, own_code
from uncode.evals.run.models.model import EvaluatedModel, PreparedSampler, Question
from uncode.evals.run.options import RunOptions, RunProgress
from uncode.evals.run.processes import ProcessPlace
from uncode.evals.run.recorder import _span_in_generated, versions
from uncode.evals.run.runner import Runner
from uncode.evals.run.sample import Answer, RunSample, digest
from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.families.family import Family
from uncode.evals.task import Grade, TaskSettings
from uncode.evals.tasks import TASKS
from uncode.samplers import presets
from uncode.samplers.catalog import find
from uncode.util.files import read_rows

TASK = "mini_choice"


class EchoModel(EvaluatedModel):
    """Answers at once with a text that depends on the prompt, the sampler and the seed, and counts its answers."""

    def __init__(self, name: str = "echo", fingerprint: str = "one") -> None:
        self.name, self.fingerprint, self.answered = name, fingerprint, 0
        self.stop_after: int | None = None

    def encode(self, prompt: str, chat: bool) -> tuple[int, ...]:
        return tuple(prompt.encode())

    def prepare(self, entry: SamplerEntry, settings: TaskSettings, options: Mapping[str, Any]) -> PreparedSampler:
        definition = {"preset": entry.preset, **entry.options_for(settings), **options}
        return PreparedSampler(entry, definition, definition)

    def answers(
        self, sampler: PreparedSampler, questions: Sequence[Question], batch: int, observe: bool = False
    ) -> Iterator[tuple[Question, Answer]]:
        for question in questions:
            if self.stop_after is not None and self.answered >= self.stop_after:
                raise KeyboardInterrupt
            self.answered += 1
            word = digest([question.prompt_sha256, dict(sampler.definition), question.seed])
            entropy = float(sampler.definition["rate"]) if observe else None
            yield question, Answer(word, (1, 2), forwards=2, tokens=1, seconds=0.5, entropy=entropy)


def config(*samplers: dict[str, Any], **more: Any) -> EvalConfig:
    rows = list(samplers) or [{"preset": "confidence"}, {"preset": "uncode", "options": {"rate": "$rate"}}]
    data = {"name": "test", "title": "A test", "models": ["echo"], "tasks": [TASK], "samplers": rows}
    return EvalConfig.read(data | more)


def runner(out: Path, model: EvaluatedModel, config: EvalConfig, **options: Any) -> Runner:
    return Runner(config, out, lambda name: model, RunOptions(**{"batch": 2, "limit": 5, **options}))


def lines(folder: Path) -> list[dict[str, Any]]:
    """All lines of a run's journal, sorted, without what a clock measured."""
    rows = [json.loads(line) for file in RunFolder(folder).files() for line in file.read_text().splitlines()]
    return sorted(({**row, "seconds": 0} for row in rows), key=lambda row: (row["key"], row["sampler"]))


def test_a_forced_direct_answer_begins_with_the_tasks_own_words(tmp_path: Path) -> None:
    """The given words are part of the prompt and of the graded text; tasks without direct answers are left out."""
    forced = {"label": "direct", "preset": "left_to_right", "forced_direct": True}
    made = config({"preset": "left_to_right"}, forced, tasks=["mini_choice", "mini_sudoku"])
    assert runner(tmp_path / "run", EchoModel(), made).run()
    samples = RunFolder(tmp_path / "run").samples()
    assert {(one.task, one.sampler) for one in samples} == {
        ("mini_choice", "left_to_right"),
        ("mini_choice", "direct"),
        ("mini_sudoku", "left_to_right"),
    }
    plain, direct = ([one for one in samples if one.sampler == label] for label in ("left_to_right", "direct"))
    assert len(direct) == 5 and all(one.text.startswith(" The answer is (") for one in direct)
    assert not {one.prompt_sha256 for one in direct} & {one.prompt_sha256 for one in plain}
    with pytest.raises(UncodeError, match="'direct' has forced_direct, and none of its tasks has direct answers"):
        config(forced, tasks=["mini_sudoku"])


def test_the_next_cell_is_decoded_while_programs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs of the first cell end only once the second cell is decoded."""
    decoding_second = Event()

    class Model(EchoModel):
        def answers(self, *given: Any, **options: Any) -> Iterator[tuple[Question, Answer]]:
            if self.answered:
                decoding_second.set()
            return super().answers(*given, **options)

    def run_program(example: Any, text: str) -> Grade:
        return Grade(decoding_second.wait(timeout=20), None, "it was run")

    family = type(FAMILIES["mini_docstring"])
    monkeypatch.setattr(family, "graders", {"correct": run_program})
    assert runner(tmp_path / "run", Model(), config(tasks=["mini_docstring"]), graders=1).run()
    samples = RunFolder(tmp_path / "run").samples()
    assert len(samples) == 10 and all(sample.grades["correct"].correct for sample in samples)


def test_two_rows_with_the_same_sampler_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the programs of the first row still run when the second begins."""

    def run_program(example: Any, text: str) -> Grade:
        time.sleep(0.05)
        return Grade(True, None, "it was run")

    monkeypatch.setattr(type(FAMILIES["mini_docstring"]), "graders", {"correct": run_program})
    twice = config({"preset": "confidence"}, {"preset": "confidence", "label": "again"}, tasks=["mini_docstring"])
    model = EchoModel()
    assert runner(tmp_path / "run", model, twice, graders=1).run()
    assert model.answered == 5
    assert Counter(sample.sampler for sample in RunFolder(tmp_path / "run").samples()) == {"confidence": 5, "again": 5}


def test_a_failed_grade_of_the_last_cell_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_jail(example: Any, text: str) -> Grade:
        raise UncodeError("the jail did not start.")

    monkeypatch.setattr(type(FAMILIES["mini_docstring"]), "graders", {"correct": no_jail})
    with pytest.raises(UncodeError, match="the jail did not start"):
        runner(tmp_path / "run", EchoModel(), config({"preset": "confidence"}, tasks=["mini_docstring"])).run()


def test_the_answer_span_of_a_trace_is_in_the_generated_text() -> None:
    def span(found: tuple[int, int] | None, given: int) -> tuple[int, int] | None:
        return _span_in_generated({"correct": Grade(True, found, "")}, given)

    assert span((15, 16), given=15) == (0, 1) and span((3, 9), given=0) == (3, 9)
    assert span((10, 17), given=15) == (0, 2) and span((3, 9), given=15) is None and span(None, given=0) is None
    assert _span_in_generated({}, 0) is None


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.direct])
def test_a_direct_answer_begins_as_the_family_says(name: str) -> None:
    family = FAMILIES[name]
    for example in family.examples()[:20]:
        assert family.response(example, "direct").startswith(family.direct)


# -- configs ---------------------------------------------------------------------------------------


def test_the_package_has_the_papers_tables() -> None:
    configs = {name: EvalConfig.load(name) for name in PAPER_CONFIGS}
    assert set(configs) == {"main", "dream", "efficient", "priors", "corpora", "autoregressive", "mini"}
    for name, one in configs.items():
        assert one.tasks == (tuple(FAMILIES) if name == "mini" else tuple(TASKS)), name
    labels = [entry.label for entry in configs["main"].samplers]
    assert labels == ["uniform", "confidence", "entropy", "margin", "eb", "semi_ar", "fast_dllm", "uncode"]
    assert len(configs["autoregressive"].models) == 3
    countdown = configs["main"].samplers[-1].options_for(TASKS["countdown"].settings)
    assert countdown == {"rate": 0.5, "frequency": "llada"}
    blocks = {task: configs["efficient"].samplers[-1].options_for(TASKS[task].settings) for task in TASKS}
    assert {task: options["block_length"] for task, options in blocks.items()} == {
        "humaneval": 32, "mbpp": 16, "gsm8k": 32, "math500": 128, "gpqa": 32, "countdown": 32, "sudoku": 32,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": ["gsm8"]}, "there is no task named 'gsm8': did you mean 'gsm8k'?"),
        ({"samplers": [{"preset": "confidnce"}]}, "no sampler is named 'confidnce': did you mean 'confidence'?"),
        ({"samplers": [{"preset": "uncode", "options": {"rat": 1}}]}, "no option 'rat': did you mean 'rate'?"),
        (
            {"samplers": [{"preset": "uncode", "options": {"rate": "x"}}]},
            "the sampler 'uncode' must be a number, not 'x'.",
        ),
        ({"samplers": [{"preset": "uncode", "options": {"rate": "$rte"}}]}, "'$rte' stands for no setting of a task"),
        ({"samplers": [{"preset": "eb"}, {"preset": "eb"}]}, "two samplers have the label 'eb'"),
        ({"samplers": []}, "samplers is empty: name at least one."),
        ({"samplers": "eb"}, "samplers must be a list of tables."),
        ({"baseline": "confidenc"}, "the baseline 'confidenc' is no label of a sampler: did you mean 'confidence'?"),
        ({"sed": 1}, "the top level has no setting 'sed': did you mean 'seed'?"),
        ({"seed": "one"}, "seed of the top level must be a whole number, not 'one'."),
        ({"samplers": [{"preset": "autoregressive", "options": {"rate": 1}}]}, "has no option 'rate'"),
        ({"samplers": [{"preset": "eb", "length": 0}]}, "length of sampler 1 must be at least 1, not 0."),
        (
            {"samplers": [{"preset": "eb", "constraint": {"regexp": "a"}}]},
            "the constraint of sampler 1 is wrong: a constraint is one of regex, choices and json_schema",
        ),
        ({"samplers": [{"preset": "eb", "constraint": "xml"}]}, "or \"json\", not 'xml'"),
        (
            {"samplers": [{"preset": "eb", "constraint": {"regex": "(?=a)"}}]},
            "sampler 1 is wrong: the regular expression",
        ),
        (
            {"samplers": [{"preset": "eb", "constraint": "task"}], "tasks": [TASK, "mini_docstring"]},
            "'eb' has the constraint of its tasks, and mini_docstring has none",
        ),
        (
            {"samplers": [{"preset": "eb", "constraint": "task", "forced_direct": True}]},
            "sampler 1 cannot have a constraint beside 'forced_direct'",
        ),
        (
            {"samplers": [{"preset": "autoregressive", "constraint": "json"}]},
            "sampler 1 cannot have a constraint beside 'autoregressive'",
        ),
        ({"samplers": [{"preset": "eb"}], "published": "eb"}, "published must be a list of tables."),
        ({"samplers": [{"preset": "eb"}], "published": [{"sampler": "be"}]}, "the published row 'be' is no sampler"),
        (
            {"samplers": [{"preset": "eb"}], "published": [{"sampler": "eb", "figures": {"gsm8k": 70}}]},
            "the published task 'gsm8k' is not run",
        ),
        (
            {"samplers": [{"preset": "eb"}], "published": [{"sampler": "eb", "figures": {TASK: 170}}]},
            "figures of published row 1 must be per cent by task",
        ),
    ],
)
def test_a_wrong_config_is_one_sentence(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UncodeError) as found:
        config(**change) if "samplers" not in change else EvalConfig.read(
            {"name": "x", "title": "x", "models": ["tiny"], "tasks": [TASK], **change}
        )
    assert message in str(found.value)


def test_a_config_is_narrowed_and_misspelt_names_are_suggested() -> None:
    main = EvalConfig.load("main")
    one = main.narrowed(["tiny"], ["gsm8k"], ["uncode", "confidence"])
    assert one.models == ("tiny",) and one.tasks == ("gsm8k",)
    assert [entry.label for entry in one.samplers] == ["confidence", "uncode"]
    with pytest.raises(UncodeError, match=r"the config 'main' has no sampler 'uncod': did you mean 'uncode'"):
        main.narrowed(samplers=["uncod"])
    with pytest.raises(UncodeError, match="the config 'main' has no task 'mini_story'"):
        main.narrowed(tasks=["mini_story"])


def test_a_label_free_rate_is_chosen_by_the_same_sampler_whichever_others_run() -> None:
    mini = EvalConfig.load("mini")
    assert mini.calibrated is not None and mini.calibrated.label == "uncode"
    assert mini.narrowed(samplers=["uncode_tau"]).calibrated == mini.calibrated
    with pytest.raises(UncodeError, match="has no setting 'calibrated'"):
        EvalConfig.read({"name": "mine", "title": "mine", "models": ["tiny"], "tasks": ["gsm8k"], "calibrated": "eb"})


def test_none_is_a_choice_of_an_option_with_choices_and_else_no_value() -> None:
    mini = EvalConfig.load("mini")
    cache = find("uncode_fast_dllm").option("cache")
    entry = next(entry for entry in mini.samplers if entry.label == "uncode_fast_dllm")
    assert entry.options["cache"] == cache.read("none") == "none"
    assert find("saber").option("block_length").read("none") is None


def test_the_config_of_the_docs_can_be_read() -> None:
    page = (ROOT / "docs" / "evaluation.md").read_text()
    blocks = re.findall(r"```toml\n(title.*?)```", page, re.S)
    assert len(blocks) == 1
    read = EvalConfig.read({"name": "docs", **tomllib.loads(blocks[0])})
    assert [entry.label for entry in read.samplers] == ["confidence", "fast_dllm prefix"]
    assert all(f"| `{name}` |" in page for name in PACKAGE_CONFIGS)


# -- the run folder --------------------------------------------------------------------------------


def test_a_run_keeps_every_answer_with_its_grades(tmp_path: Path) -> None:
    model, seen = EchoModel(), list[RunProgress]()
    made = runner(tmp_path / "run", model, config())
    made.on_progress = seen.append
    assert made.run() and model.answered == 10
    assert (seen[-1].done, seen[-1].total, seen[-1].answered) == (10, 10, 5)
    folder = RunFolder.existing(tmp_path / "run")
    info = folder.info()
    assert info.title == "A test" and info.versions["uncode"] == uncode.__version__
    assert [cell.sampler for cell in info.cells] == ["confidence", "uncode"]
    samples = folder.samples()
    assert len(samples) == 10 and [file.name for file in folder.files()] == ["samples.jsonl"]
    assert all(set(sample.grades) == {"correct"} for sample in samples)
    assert {s.seed for s in samples[:5]} == {0, 1, 2, 3, 4}  # in the order in which they were graded
    assert samples[0].prompt_sha256 != samples[1].prompt_sha256
    row = json.loads(json.dumps(samples[0].as_row()))
    assert RunSample.from_row(row) == samples[0]
    assert not list((tmp_path / "run").glob("*.lock"))


def test_a_stopped_run_is_resumed_and_repeats_nothing(tmp_path: Path) -> None:
    whole = EchoModel()
    runner(tmp_path / "whole", whole, config()).run()
    for stop in (1, 2, 4, 2):
        model = EchoModel()
        model.stop_after = stop
        with pytest.raises(KeyboardInterrupt):
            runner(tmp_path / "run", model, config()).run()
    last = EchoModel()
    assert runner(tmp_path / "run", last, config()).run()
    assert last.answered == 1
    assert lines(tmp_path / "run") == lines(tmp_path / "whole")


def test_samplers_models_seeds_and_prompts_never_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, model = tmp_path / "run", EchoModel()
    runner(out, model, config({"preset": "uncode", "options": {"rate": 0.5}})).run()
    with pytest.raises(UncodeError, match="answers of 'uncode' on mini_choice by echo with another definition"):
        runner(out, model, config({"preset": "uncode", "options": {"rate": 0.25}})).run()
    with pytest.raises(UncodeError, match="with another checkpoint, dtype or format of its weights"):
        runner(out, EchoModel(fingerprint="two"), config({"preset": "uncode", "options": {"rate": 0.5}})).run()
    with pytest.raises(UncodeError, match="with another seed"):
        runner(out, model, config({"preset": "uncode", "options": {"rate": 0.5}}, seed=7)).run()
    assert len(lines(out)) == 5
    twin = config({"preset": "uncode", "label": "twin", "options": {"rate": 0.5}})
    before = model.answered
    assert runner(out, model, twin).run() and model.answered == before  # the same sampler under another label
    other = config({"preset": "uncode", "label": "other", "options": {"rate": 0.25}})
    assert runner(out, model, other).run() and model.answered == before + 5
    by_label = {label: [s.text for s in RunFolder(out).samples() if s.sampler == label] for label in ("twin", "other")}
    assert not set(by_label["twin"]) & set(by_label["other"])
    family = type(FAMILIES[TASK])
    monkeypatch.setattr(family, "prompt_template", "Changed: " + family.prompt_template)
    assert runner(out, model, other).run() and model.answered == before + 10  # a changed prompt is a new request
    assert len([s for s in RunFolder(out).samples() if s.sampler == "other"]) == 5


@pytest.mark.parametrize("processes", [2, 3])
def test_processes_share_a_run_and_make_the_same_journal(tmp_path: Path, processes: int) -> None:
    runner(tmp_path / "alone", EchoModel(), config()).run()
    out, counts = tmp_path / "run", list[int]()
    killed = EchoModel()
    killed.stop_after = 1
    with pytest.raises(KeyboardInterrupt):  # a process of an earlier try, which had other processes beside it
        runner(out, killed, config(), process=1, processes=2).run()
    for process in range(processes):
        model = EchoModel()
        is_last = runner(out, model, config(), process=process, processes=processes).run()
        counts.append(model.answered)
        assert is_last is (process == processes - 1)
    assert sum(counts) == 9 and all(count <= 6 for count in counts)
    assert lines(out) == lines(tmp_path / "alone")
    assert [file.name for file in RunFolder(out).files()] == ["samples.jsonl"]


def test_two_processes_of_one_number_are_refused(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, RunInfo("test", "A test"))
    with folder.writing(0), pytest.raises(UncodeError, match="another process is writing samples into"):
        runner(tmp_path, EchoModel(), config()).run()


def test_a_folder_that_is_no_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UncodeError, match="is not empty and no run folder"):
        runner(tmp_path, EchoModel(), config()).run()
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(UncodeError, match=r"it has no run.json"):
        RunFolder.existing(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.json").write_text('{"a": 1}')
    with pytest.raises(UncodeError, match="was not written by `uncode eval`: choose another folder"):
        runner(tmp_path / "other", EchoModel(), config()).run()
    assert (tmp_path / "other" / "run.json").read_text() == '{"a": 1}'
    runner(tmp_path / "run", EchoModel(), config()).run()
    with pytest.raises(UncodeError, match="is a run of the config 'test', not 'other'"):
        runner(tmp_path / "run", EchoModel(), replace(config(), name="other")).run()


def test_a_model_that_cannot_be_loaded_leaves_no_folder(tmp_path: Path) -> None:
    def fail(name: str) -> EvaluatedModel:
        raise UncodeError("no such model")

    with pytest.raises(UncodeError, match="no such model"):
        Runner(config(), tmp_path / "run", fail, RunOptions(limit=1)).run()
    assert not (tmp_path / "run").exists()


def test_half_a_line_is_dropped_and_a_damaged_file_is_named(tmp_path: Path) -> None:
    runner(tmp_path, EchoModel(), config()).run()
    whole = lines(tmp_path)
    file = tmp_path / "samples.jsonl"
    content = file.read_bytes()
    (tmp_path / "samples.3.jsonl").write_bytes(content[: content.index(b"\n") + 40])  # a copy and half a line
    file.write_bytes(content[:-9])
    model = EchoModel()
    assert runner(tmp_path, model, config()).run() and model.answered == 1
    assert lines(tmp_path) == whole
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(UncodeError, match=r"run.json' is damaged"):
        RunFolder(tmp_path).info()


def test_the_label_free_rate_is_chosen_once(tmp_path: Path) -> None:
    free = {"preset": "uncode", "options": {"rate": "label-free"}}
    eb = {"preset": "uncode_eb", "options": {"rate": "label-free"}}
    model = EchoModel()
    chosen = config(free, eb, rates=[0.5, 0.0, 1.0], calibration_examples=3)
    assert runner(tmp_path, model, chosen).run()
    assert model.answered == 3 * 3 + 2 * 5
    assert {cell.definition["rate"] for cell in RunFolder(tmp_path).info().cells} == {0.0}  # the least entropy
    calibration = RunFolder(tmp_path / "calibration").samples()
    assert len(calibration) == 9 and all(not sample.grades for sample in calibration)
    assert {sample.id for sample in calibration}.isdisjoint(e.id for e in FAMILIES[TASK].examples())


def test_the_code_of_a_piece_of_ones_own_belongs_to_the_definition(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else answers of the former code are taken for those of the new one."""
    monkeypatch.syspath_prepend(tmp_path)
    source = "from uncode.core.pieces.score import Confidence\nclass Mine(Confidence):\n    pass\n"
    (tmp_path / "own_pieces.py").write_text(source)
    mine = Sampler(Policy(importlib.import_module("own_pieces").Mine()))
    before = own_code(mine)
    (tmp_path / "own_pieces.py").write_text(source + "# changed\n")
    linecache.checkcache()
    assert [*before] == ["Mine"] and own_code(mine) != before
    assert own_code(uncode.presets.certain_first(informativeness=False)) == {}
    mine.save(tmp_path / "mine.toml")
    model = DiffusionModel("small", uncode.load(models["llada"], device="cpu"))
    prepared = model.prepare(SamplerEntry(str(tmp_path / "mine.toml"), "mine"), FAMILIES[TASK].settings, {})
    assert prepared.definition["code"] == own_code(mine)


def test_a_missing_package_is_found_before_anything_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    model = EchoModel()
    with pytest.raises(UncodeError, match=r"grading formulas needs math_verify: pip install 'uncode\[eval\]'"):
        runner(tmp_path / "run", model, config(tasks=["math500"]), data=data).run()
    assert model.answered == 0


# -- real models -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: small_model(tmp_path_factory.mktemp(name) / name, name) for name in ("llada", "dream")}


@pytest.fixture(scope="module")
def table(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for name, folder in models.items():
        text = tmp_path_factory.mktemp("text") / "text.txt"
        text.write_text("the quick brown fox, and 12 more of them.\n")
        found[name] = text.with_suffix(".safetensors")
        assert run("count", str(text), "--tokenizer", str(folder), "--out", str(found[name])).returncode == 0
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return benchmark_files(tmp_path_factory.mktemp("data") / "data")


def evaluate(
    name: str, models: dict[str, Path], table: dict[str, Path], data: Path, out: Path, *more: str
) -> subprocess.CompletedProcess[str]:
    dialect = "dream" if name == "dream" else "llada"
    options = ["--model", str(models[dialect]), "--frequency", str(table[dialect]), "--data", str(data)]
    return run("eval", name, *options, "--limit", "1", "--out", str(out), *more)


REAL = [name for name in PAPER_CONFIGS if name not in ("mini", "autoregressive")]


@pytest.mark.parametrize("name", REAL)
def test_every_config_runs_with_short_answers(
    name: str, models: dict[str, Path], table: dict[str, Path], data: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    for task in TASKS.values():
        monkeypatch.setattr(task, "settings", replace(task.settings, length=4, block_length=2))
    tasks = ("mbpp", "sudoku")  # all tasks of all configs: `make verify`
    done = evaluate(name, models, table, data, tmp_path / "run", "--tasks", ",".join(tasks))
    assert done.returncode == 0, done.stderr
    samples, expected = RunFolder(tmp_path / "run").samples(), EvalConfig.load(name).narrowed(tasks=tasks)
    assert len(samples) == len(expected.tasks) * len(expected.samplers)
    assert all(len(sample.token_ids) <= 4 for sample in samples)
    assert sum(sample.grades["correct"].correct for sample in samples) == 0  # a random model is right by luck alone


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_every_config_runs_on_every_task(
    name: str, models: dict[str, Path], table: dict[str, Path], data: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    """An eighth of the paper's lengths: at one token a byte the prompts are long, and this is a CPU."""
    for task in TASKS.values():
        length = task.settings.length // 8
        monkeypatch.setattr(task, "settings", replace(task.settings, length=length, block_length=length // 8))
    done = evaluate(name, models, table, data, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    expected = EvalConfig.load(name)
    assert len(RunFolder(tmp_path / "run").samples()) == len(TASKS) * len(expected.samplers)


def test_an_answer_is_that_of_generate_alone_and_in_any_batch(
    models: dict[str, Path], table: dict[str, Path], tmp_path: Path
) -> None:
    denoiser = uncode.load(models["llada"], device="cpu")
    model = DiffusionModel("small", denoiser, uncode.FrequencyTable.load(table["llada"]))
    entry = SamplerEntry("uncode", "uncode", {"rate": 0.1})
    settings = TaskSettings(shots=0, length=12, rate=0.0, chat=True, block_length=4)
    sampler = model.prepare(entry, settings, {})
    texts = ["One <mask:3> two", "A longer question than that?", "x"]
    examples = FAMILIES[TASK].examples()[:3]
    questions = [
        Question(example, model.encode(text, chat=True), 12, seed)
        for seed, (text, example) in enumerate(zip(texts, examples, strict=True))
    ]
    found = {question.seed: answer for question, answer in model.answers(sampler, questions, batch=3)}
    for seed, text in enumerate(texts):
        messages = [{"role": "user", "content": text}]
        alone = uncode.generate(denoiser, messages, sampler=sampler.sampler, length=12, seed=seed)
        assert found[seed].text == alone
        assert found[seed].forwards <= 12 and found[seed].seconds > 0


def test_a_fingerprint_knows_weights_and_dtype(models: dict[str, Path], tmp_path: Path) -> None:
    one, again = (DiffusionModel(name, uncode.load(models["llada"], device="cpu")) for name in ("a", "b"))
    assert one.fingerprint == again.fingerprint
    other = small_model(tmp_path / "other", "llada", seed=1)
    half = DiffusionModel("a", uncode.load(models["llada"], device="cpu", dtype="bfloat16"))
    packed = DiffusionModel("a", uncode.load(models["llada"], device="cpu", weights="int8"))
    models_beside = (half, packed, DiffusionModel("a", uncode.load(other, device="cpu")))
    assert len({one.fingerprint, *(model.fingerprint for model in models_beside)}) == 4


def test_an_estimate_counts_forwards(models: dict[str, Path], tmp_path: Path) -> None:
    assert expected_forwards(presets.confidence(), 64) == (64, True)
    assert expected_forwards(presets.tau_leaping(), 64) == (32, True)
    assert expected_forwards(presets.eb(), 64) == (64, False)
    model = DiffusionModel("small", uncode.load(models["llada"], device="cpu"))
    made = runner(tmp_path, model, config({"preset": "confidence"}, {"preset": "eb"}))
    found = estimate(made, model)
    assert found is not None and found.samples == 10 and 0 < found.least_seconds < found.most_seconds


@pytest.mark.parametrize("task", [family for family in FAMILIES.values() if family.format], ids=lambda one: one.name)
def test_right_answers_have_the_format_of_their_task(task: Family[Any]) -> None:
    for example in task.examples()[:20]:
        assert all(re.fullmatch(task.format, task.response(example, style)) for style, _ in task.styles)
    shots = [
        re.split(r"\n(?:Answer|Solution|Reasoning):", part) for part in TASKS[task.benchmark]().template.split("\n\n")
    ]
    answers = [shot[1] for shot in shots[:-1] if len(shot) == 2]
    assert answers and all(re.fullmatch(task.format, answer) for answer in answers)


def test_a_constraint_holds_for_every_answer_and_is_part_of_the_sampler(
    models: dict[str, Path], tmp_path: Path
) -> None:
    """Even for a random network; the report has each row beside the one without."""
    model, out = DiffusionModel("echo", uncode.load(models["llada"], device="cpu")), tmp_path / "run"
    rows = [{"preset": "confidence"}, {"preset": "confidence", "label": "held", "constraint": "task"}]
    assert runner(out, model, config(*rows, tasks=["mini_sudoku"]), limit=3).run()
    found = {
        label: [one for one in RunFolder(out).samples() if one.sampler == label] for label in ("confidence", "held")
    }
    is_valid = re.compile(FAMILIES["mini_sudoku"].format).fullmatch
    assert [len(of) for of in found.values()] == [3, 3] and all(is_valid(one.text) for one in found["held"])
    assert not any(is_valid(one.text) for one in found["confidence"])
    cells = {cell.sampler: cell.definition for cell in RunFolder(out).info().cells}
    assert cells["held"] == dict(cells["confidence"]) | {"constraint": {"regex": FAMILIES["mini_sudoku"].format}}
    other = [{"preset": "confidence", "label": "held", "constraint": {"choices": ["1"]}}]
    with pytest.raises(UncodeError, match=r"holds answers of 'held' on mini_sudoku .* another definition"):
        runner(out, model, config(*other, tasks=["mini_sudoku"]), limit=3).run()
    shown = document(read_runs([out]), Choices()).sections[0].tables
    (table,) = [one for one in shown if one.caption == "Without and with a constraint (correct)"]
    (row,) = table.rows
    assert row[:3] == ["mini_sudoku", "held", "3"] and row[6:8] == ["0.0", "100.0"]


@pytest.mark.parametrize("verb", ["mini", "paper"])
def test_a_quick_run_says_before_it_begins_how_long_it_takes(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def announce_and_stop(made: Runner, model: EvaluatedModel) -> None:
        announce_time(made, model)
        raise KeyboardInterrupt

    monkeypatch.setattr("uncode.cli.run_time.announce_time", announce_and_stop)
    done = run(verb, "--quick", "--out", str(tmp_path / "out"))
    assert re.search(r"tiny: \d+ answers, about \d+ (s|min|h)( to \d+ (s|min|h))? on this machine", done.stderr), (
        done.stderr
    )
    assert done.returncode != 0 and "stopped" in done.stderr, "it was said before the first answer"


def test_traces_are_kept_on_request(models: dict[str, Path], tmp_path: Path) -> None:
    words = ("eval", "mini", "--model", str(models["llada"]), "--tasks", TASK, "--samplers", "eb", "--limit", "2")
    assert run(*words, "--traces", "--out", str(tmp_path / "run")).returncode == 0
    (file,) = (tmp_path / "run" / "traces").iterdir()
    trace = uncode.Trace.load(file)
    assert len(trace.forwards) == 2 and trace.samplers[0].name == "eb"
    assert trace.header["task"] == TASK and trace.header["label"] == "eb"
    samples = {row["id"]: row for row in read_rows(tmp_path / "run" / "samples.jsonl")}
    for row in read_rows(file):
        sample = samples.pop(row["id"])
        assert row["generated_text"].startswith(sample["text"])
        assert row["answer_span"] == sample["grades"]["correct"]["span"]
        assert row["correct"] == sample["grades"]["correct"]["correct"]
    assert not samples


def test_a_page_of_the_run_on_request(models: dict[str, Path], tmp_path: Path) -> None:
    words = ("eval", "mini", "--model", str(models["llada"]), "--tasks", TASK, "--samplers", "eb")
    words += ("--out", str(tmp_path / "run"))
    view = tmp_path / "run.html"
    shown = run(*words, "--limit", "1", "--view", str(view))
    assert shown.returncode == 0 and f"{view}: 1 trace, to be replayed in a browser." in shown.stderr
    assert len(list((tmp_path / "run" / "traces").iterdir())) == 1, "a page needs traces, so they are kept"
    assert run(*words, "--limit", "2").returncode == 0
    shown = run(*words, "--limit", "2", "--view", str(view))
    assert "answers without a trace: 1 of 2, decoded without --traces." in shown.stderr
    view.write_text("mine")
    shown = run(*words, "--limit", "2", "--view", str(view))
    assert shown.returncode == 2 and "exists and is not a page" in shown.stderr


def test_a_run_is_graded_again_without_decoding(models: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("eval", "mini", "--model", str(models["llada"]), "--tasks", TASK, "--samplers", "eb", "--limit", "2")
    assert run(*words, "--out", str(out)).returncode == 0
    before = (out / "samples.jsonl").read_text()
    (out / "samples.jsonl").write_text(before.replace('"correct": false', '"correct": true', 1))
    shown = run("regrade", str(out))
    assert shown.returncode == 0 and shown.stdout.split()[-1] == "1"
    assert (out / "samples.jsonl").read_text() == before
    assert "graded alone" in run("regrade", str(out), "--task", "gsm8k").stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("eval",), "there is nothing to run: give a config"),
        (("eval", "maim"), "no evaluation config is named 'maim', and there is no such file: did you mean 'main'?"),
        (("eval", "main", "--samplers", "uncod"), "has no sampler 'uncod': did you mean 'uncode'?"),
        (("eval", "main", "--tasks", "gsm9k"), "did you mean 'gsm8k'?"),
        (("eval", "main", "--model", "nosuchmodel/"), "nosuchmodel"),
        (("eval", "main", "--limit", "0"), "--limit"),
        (
            ("eval", "main", "--tasks", ""),
            "--tasks names nothing: give names with commas between them, or leave it out.",
        ),
        (("eval", "main", "--samplers", " , "), "--samplers names nothing"),
        (
            ("eval", "corpora", "--model", "tiny"),
            "needs the frequency table 'book-and-code.safetensors', which is not here",
        ),
        (("report", "no/such/run"), "there is no run folder 'no/such/run': check the path"),
    ],
)
def test_a_wrong_command_is_one_sentence(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = run(*words)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_versions_of_optional_packages_are_noted_where_they_are_installed(tmp_path: Path, monkeypatch: Any) -> None:
    before = versions()
    assert before["torch"] and "not installed" not in before.values()
    for name in ("vllm", "gguf"):
        (tmp_path / f"{name}-1.2.3.dist-info").mkdir()
        (tmp_path / f"{name}-1.2.3.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: 1.2.3\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert versions() == {**before, "vllm": "1.2.3", "gguf": "1.2.3"}


# -- kill -9 ---------------------------------------------------------------------------------------


def _start(model: Path, out: Path, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    words = ["eval", "mini", "--model", str(model), "--tasks", "mini_choice,mini_algebra", "--samplers", "eb,margin"]
    command = [sys.executable, "-m", "uncode", *words, "--limit", "6", "--batch", "2", "--out", str(out)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **(environment or {})}
    return subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _count(out: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in out.glob("samples*.jsonl"))


HOLDS_LOCKS = """
import sys, time
from pathlib import Path
from uncode.evals.run.folder import RunFolder
folder = RunFolder(Path(sys.argv[1]))
locks = [folder.locked()] if sys.argv[2] == "info" else [folder.writing(0), folder.writing(3)]
for lock in locks:
    lock.__enter__()
print("ready", flush=True)
time.sleep(60)
"""


def _terminate_with_locks(out: Path, which: str) -> set[str]:
    """Send SIGTERM to a process that holds locks of a run folder. Returns the lock files that it leaves."""
    command = [sys.executable, "-c", HOLDS_LOCKS, str(out), which]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        if which == "samples":
            with pytest.raises(UncodeError, match="another process is writing samples"), RunFolder(out).writing(3):
                pass
        process.terminate()
    assert process.returncode == -signal.SIGTERM
    return {file.name for file in out.glob("*.lock")}


def test_lock_files_of_a_terminated_process_do_not_confuse_the_next_one(tmp_path: Path) -> None:
    """SIGTERM leaves the files; the system releases the locks themselves."""
    out, model = tmp_path / "run", EchoModel()
    out.mkdir()
    assert _terminate_with_locks(out, "info") == {"run.json.lock"}
    (out / ".uncode-killed.partial").touch()  # a kill while run.json was written
    model.stop_after = 4
    with pytest.raises(KeyboardInterrupt):
        runner(out, model, config()).run()
    assert _terminate_with_locks(out, "samples") == {"samples.0.lock", "samples.3.lock"}
    assert runner(out, EchoModel(), config()).run()
    assert len(lines(out)) == 10 and not list(out.glob("*.lock"))
    (out / "samples.5.lock").touch()
    assert run("regrade", str(out)).returncode == 0
    assert len(lines(out)) == 10 and not list(out.glob("*.lock"))


def test_a_lock_that_is_held_is_not_removed(tmp_path: Path) -> None:
    assert runner(tmp_path, EchoModel(), config()).run()
    folder = RunFolder(tmp_path)
    with folder.writing(1):
        folder.join_files()
        assert (tmp_path / "samples.1.lock").exists()
    assert not list(tmp_path.glob("*.lock"))


@pytest.mark.slow
def test_a_run_killed_five_times_makes_the_same_journal(models: dict[str, Path], tmp_path: Path) -> None:
    assert _start(models["llada"], tmp_path / "whole").wait(300) == 0
    out, drawn = tmp_path / "run", random.Random(0)
    for kill in range(5):
        process = _start(models["llada"], out)
        wanted = _count(out) + drawn.randint(1, 3)
        while _count(out) < wanted and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert _count(out) < 24, kill
    assert _start(models["llada"], out).wait(300) == 0
    assert lines(out) == lines(tmp_path / "whole") and len(lines(out)) == 24


@pytest.mark.slow
def test_one_of_two_processes_is_killed_and_three_resume(models: dict[str, Path], tmp_path: Path) -> None:
    assert _start(models["llada"], tmp_path / "whole").wait(300) == 0
    out = tmp_path / "run"
    two = [_start(models["llada"], out, {"RANK": str(rank), "WORLD_SIZE": "2"}) for rank in range(2)]
    while _count(out) < 3 and two[0].poll() is None:
        time.sleep(0.005)
    two[0].kill()
    for process in two:
        process.wait(300)
    assert two[1].returncode == 0 and _count(out) < 24
    three = [_start(models["llada"], out, {"RANK": str(rank), "WORLD_SIZE": "3"}) for rank in range(3)]
    assert [process.wait(300) for process in three] == [0, 0, 0]
    assert lines(out) == lines(tmp_path / "whole")


LAUNCHERS = {
    "accelerate": ("accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"),
    "torchrun": ("torch.distributed.run", "--nproc_per_node", "2"),
}


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_launcher_of_the_docs_starts_two_processes_without_a_gpu(
    launcher: str, models: dict[str, Path], tmp_path: Path
) -> None:
    module, *options = LAUNCHERS[launcher]
    assert (
        f"{launcher.replace('accelerate', 'accelerate launch')} {' '.join(options)} -m uncode eval mini"
        in (ROOT / "docs" / "clusters.md").read_text()
    )
    words = ["eval", "mini", "--model", str(models["llada"]), "--tasks", TASK, "--samplers", "eb", "--limit", "4"]
    words += ["--batch", "1", "--device", "cpu", "--out", str(tmp_path / "run")]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "HF_HOME": str(tmp_path)}
    command = [sys.executable, "-m", module, *options, "-m", "uncode", *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr  # each process says that it is done, or that the run is complete
    assert said.count("others are still at work") + said.count("the run is complete") == 2, said
    assert len(lines(tmp_path / "run")) == 4


def test_the_place_of_a_process_comes_from_the_environment() -> None:
    assert ProcessPlace.from_environment({}) == ProcessPlace(0, 1, 0)
    found = ProcessPlace.from_environment({"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"})
    assert found == ProcessPlace(5, 8, 1)
    with pytest.raises(UncodeError, match="RANK is set and the other"):
        ProcessPlace.from_environment({"RANK": "1"})
    with pytest.raises(UncodeError, match="RANK is 3, but WORLD_SIZE is 2"):
        ProcessPlace.from_environment({"RANK": "3", "WORLD_SIZE": "2"})
    with pytest.raises(UncodeError, match="must be whole numbers"):
        ProcessPlace.from_environment({"RANK": "x", "WORLD_SIZE": "2"})
