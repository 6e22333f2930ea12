"""`uncode threshold`: a threshold from the model's own answers is written as a sampler file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import uncode
from tests.cli.running import run
from tests.evals.small_models import small_model
from uncode.evals.suite.families import FAMILIES


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model") / "llada")


def words(model: Path, out: Path, *more: str) -> tuple[str, ...]:
    files = ("--out", str(out / "sampler.toml"), "--run", str(out / "run"))
    return ("threshold", "mini_choice", "--model", str(model), "--set", "informativeness=false", *files, *more)


def test_the_threshold_is_that_of_the_models_own_answers(model: Path, tmp_path: Path) -> None:
    asked = ("mini_sudoku", "--n", "2", "--masks", "3", "--max-error", "0.9")
    done = run(*words(model, tmp_path, *asked, "--json"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    denoiser = uncode.load(model, device="cpu")
    examples = []
    for name in ("mini_choice", "mini_sudoku"):
        family = FAMILIES[name]
        for problem in family.unlabelled()[:2]:
            ids = list(denoiser.tokenizer.encode(family.prompt(problem), add_special_tokens=False))
            canvas = uncode.Canvas.after_prompt([ids], family.settings.length, denoiser.mask_id)
            row = uncode.decode(denoiser, canvas, uncode.presets.left_to_right()).generated[0].tolist()
            end = next((at for at, token in enumerate(row) if token in denoiser.eos_ids), len(row))
            examples.append((ids, [*row[:end], *[denoiser.eos_ids[0]] * (len(row) - end)]))
    wanted = uncode.choose_threshold(denoiser, examples, max_error=0.9, masks=3)
    assert found["threshold"] == pytest.approx(wanted.threshold, rel=1e-5)
    assert (found["answers"], found["proposals"]) == (12, wanted.proposals)
    sampler = uncode.Sampler.load(tmp_path / "sampler.toml")
    assert sampler.name == "certain_first" and f"{found['threshold']}" in sampler.to_toml()
    assert "AfterEos" not in repr(sampler)


def test_a_second_run_decodes_nothing_again(model: Path, tmp_path: Path) -> None:
    asked = ("--n", "2", "--masks", "2", "--max-error", "0.9", "--sampler", "certain_first_fast")
    assert run(*words(model, tmp_path, *asked)).returncode == 0
    lines = (tmp_path / "run" / "samples.0.jsonl").read_text()
    again = run(*words(model, tmp_path, *asked))
    assert again.returncode == 0 and again.stdout.startswith("threshold 0.") and "4 masked answers" in again.stdout
    assert (tmp_path / "run" / "samples.0.jsonl").read_text() == lines
    use = run("decode", "one two", "--model", str(model), "--sampler", str(tmp_path / "sampler.toml"), "--length", "4")
    assert use.returncode == 0, use.stderr


def test_a_folder_that_is_no_run_is_refused_before_the_work(model: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("x")
    for verb in ("threshold", "calibrate"):
        done = run(verb, *words(model, tmp_path)[1:])
        assert done.returncode == 2 and "is not empty and no run folder (it holds ['mine.txt'])" in done.stderr
    assert not (tmp_path / "sampler.toml").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--max-error", "2"), "--max-error must be between 0 and 1, not 2."),
        (("--sampler", "confidence"), "the sampler 'confidence' has no threshold that is a probability: give certain_"),
        (("--sampler", "uncode_fast_dllm"), "'uncode_fast_dllm' has no threshold that is a probability: give certain_"),
        (("--set", "threshold=1"), "the threshold is what is chosen: leave --set threshold out."),
        (("mini_stroy",), "there is no task named 'mini_stroy': did you mean 'mini_story'?"),
    ],
)
def test_a_wrong_option_is_one_sentence(model: Path, tmp_path: Path, more: tuple[str, ...], message: str) -> None:
    done = run(*words(model, tmp_path, *more))
    assert done.returncode == 2 and message in done.stderr and not (tmp_path / "run").exists()
