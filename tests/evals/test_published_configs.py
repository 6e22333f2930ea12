"""Configs with the settings and figures of other projects, and our figures beside theirs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import uncode
from tests.cli.running import run
from tests.evals.runs import sample
from tests.evals.small_models import benchmark_files, small_model
from uncode.evals.report.analysis import Choices, ModelAnalysis
from uncode.evals.report.published import published_tables
from uncode.evals.report.records import records
from uncode.evals.report.scores import read_runs
from uncode.evals.run.config import PUBLISHED_CONFIGS, EvalConfig, SamplerEntry
from uncode.evals.run.folder import RunCell, RunFolder, RunInfo
from uncode.evals.run.models.diffusion import DiffusionModel
from uncode.evals.run.options import RunOptions
from uncode.evals.run.runner import Runner
from uncode.evals.task import Grade
from uncode.evals.tasks import find_task

SHORT = 4
"""Tokens of an answer in these tests."""


@pytest.mark.parametrize("name", PUBLISHED_CONFIGS)
def test_every_row_has_a_figure_a_length_and_a_source(name: str) -> None:
    config = EvalConfig.load(name)
    assert "commit" in config.source and config.differs
    given = {(row.sampler, task) for row in config.published for task in row.figures}
    run = {(entry.label, task) for entry in config.samplers for task in entry.tasks or config.tasks}
    assert given == run
    assert all(entry.length and entry.chat is not None for entry in config.samplers)


def figures(name: str, label: str) -> list[dict[str, float]]:
    return [dict(row.figures) for row in EvalConfig.load(name).published if row.sampler == label]


def test_figures_as_the_sources_print_them() -> None:
    assert figures("llada-eval-md", "blocks of 8") == [{"gsm8k": 78.6}, {"gsm8k": 78.9}]
    assert figures("llada-1.5-eval-md", "blocks of 16") == [{"gsm8k": 83.8}, {"gsm8k": 83.6}]
    base = {"gsm8k": 70.0, "math500": 30.3, "humaneval": 32.9, "mbpp": 40.2}
    assert figures("llada-base-eval-md", "length 256")[0] == base
    assert figures("fast-dllm", "cache and parallel 256") == [{"gsm8k": 78.5, "humaneval": 43.3}]
    dsb = {"gsm8k": 80.29, "math500": 33.46, "humaneval": 39.63, "mbpp": 42.8}
    assert figures("dsb", "dsb greedy, window cache") == [dsb]


def shortened(entry: SamplerEntry) -> SamplerEntry:
    """The same row with answers of a few tokens."""
    sizes = {name: 2 for name in ("block_length", "blocks", "window", "window_columns") if name in entry.options}
    return replace(entry, length=SHORT, chat=False, options={**entry.options, **sizes})


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DiffusionModel]:
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for dialect in ("llada", "dream"):
        denoiser = uncode.load(small_model(folder / dialect, dialect), device="cpu")
        found[dialect] = DiffusionModel(dialect, denoiser)
    return found


@pytest.mark.parametrize("name", PUBLISHED_CONFIGS)
def test_every_config_decodes(name: str, models: dict[str, DiffusionModel], tmp_path: Path) -> None:
    model = models["dream" if "dream" in name else "llada"]
    loaded = EvalConfig.load(name).narrowed([model.name], ["humaneval"])
    config = replace(loaded, samplers=tuple(map(shortened, loaded.samplers)))
    data = benchmark_files(tmp_path / "data")
    assert Runner(config, tmp_path / "run", lambda _: model, RunOptions(2, data, 1)).run()
    cells = [entry for entry in config.samplers if entry.runs_on("humaneval")]
    assert len(RunFolder(tmp_path / "run").samples()) == len(cells) > 0


def test_a_row_has_a_length_and_a_chat_template_of_its_own() -> None:
    task = find_task("gsm8k").settings
    assert SamplerEntry("eb").settings_for(task) == task
    asked = SamplerEntry("eb", length=512, chat=True).settings_for(task)
    assert (asked.length, asked.chat) == (512, True) and asked.rate == task.rate


def test_ours_beside_theirs(tmp_path: Path) -> None:
    """A row has a star where its interval holds none of its figures; unfinished cells say so; strict is of GSM8K."""
    rows = [
        {"sampler": "a", "by": "lab", "figures": {"gsm8k": 60.0, "mbpp": 1.0}},
        {"sampler": "a", "by": "kit", "figures": {"gsm8k": 20.0}},
        {"sampler": "never run", "by": "", "figures": {"gsm8k": 1.0}},
    ]
    published = {"source": "a table", "differs": "their prompts.", "rows": rows}
    cells = tuple(RunCell("m", task, "a", "w", {}, 8, 0) for task in ("gsm8k", "mbpp"))
    info = RunInfo("x", "X", cells, examples={"gsm8k": 10, "mbpp": 20}, published=published)
    folder = RunFolder.create(tmp_path / "run", info)
    with folder.writing(0) as lines:
        for task, count, ours in (("gsm8k", 10, 6), ("mbpp", 10, 9)):
            for n in range(count):
                made = sample(("m", task, "a"), n, [n < ours, n < ours])
                strict = {"paper_strict": Grade(False, None, "")} if task == "gsm8k" else {}
                lines.add(replace(made, grades={**made.grades, **strict}).as_row())
    results = read_runs([tmp_path / "run"])
    by_task = {record["task"]: record["published"] for record in records(results, Choices())}
    assert by_task == {"gsm8k": "60.0 (lab), 20.0 (kit)", "mbpp": "1.0 (lab)", "average": None}
    (table,) = published_tables(ModelAnalysis(results, "m", Choices()))
    assert list(table.titles[3:]) == ["ours, our grader", "ours, released rule", "ours, strict"]
    gsm8k, mbpp = table.rows
    assert gsm8k[:3] == ["a", "gsm8k", "60.0 (lab), 20.0 (kit)"]
    assert gsm8k[3:] == ["60.0 [31.3, 83.2]", "60.0 [31.3, 83.2]", "0.0 [0.0, 27.8]"]
    assert mbpp[2:] == ["1.0 (lab)", "90.0 [59.6, 98.2]* (10 of 20)", "90.0 [59.6, 98.2]* (10 of 20)", "-"]
    assert "Source: a table." in table.notes and "What differs there: their prompts." in table.notes


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text(
        'title = "Mine"\nmodels = ["tiny"]\ntasks = ["mini_sudoku"]\nsource = "a paper"\n'
        '[[samplers]]\npreset = "own.toml"\n'
        '[[published]]\nsampler = "own"\nfigures = { mini_sudoku = 99.5 }\n'
    )
    (tmp_path / "own.toml").write_text(uncode.presets.confidence(steps=2).to_toml())
    return file


def test_one_command_shows_ours_beside_theirs(config_file: Path, tmp_path: Path) -> None:
    """The sampler file lies beside the config."""
    out = tmp_path / "run"
    done = run("eval", str(config_file), "--limit", "2", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "Beside the published figures" in done.stdout and "99.5" in done.stdout and "a paper" in done.stdout
    assert "Beside the published figures" in run("report", str(out)).stdout
    again = run("eval", str(config_file), "--limit", "2", "--out", str(out), "--json")
    assert json.loads(again.stdout)["samples"] == 2


def test_the_near_name_is_suggested() -> None:
    assert "did you mean 'llada-eval-md'?" in run("eval", "llada-evalmd").stderr
