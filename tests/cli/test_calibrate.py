"""`uncode calibrate`: the rate with the least entropy is written as a sampler file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import uncode
from tests.cli.running import run
from tests.evals.small_models import small_model
from uncode.evals.suite.families import FAMILIES

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model") / "llada")


def words(model: Path, out: Path, *more: str) -> tuple[str, ...]:
    files = ("--out", str(out / "sampler.toml"), "--run", str(out / "run"))
    return ("calibrate", "mini_choice", "--model", str(model), "--set", "informativeness=false", *files, *more)


def test_the_rate_with_the_least_entropy_is_written(model: Path, tmp_path: Path) -> None:
    chosen = ("--rates", "0,0.5", "--n", "2", "--batch", "2")
    done = run(*words(model, tmp_path, *chosen, "--labels", "--plot", str(tmp_path / "rates.png"), "--json"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    entropies = {row["rate"]: row["entropy"] for row in found["rates"]}
    assert set(entropies) == {0.0, 0.5} and found["rate"] == min(entropies, key=lambda rate: entropies[rate])
    assert all(row["accuracy"] is not None for row in found["rates"])
    sampler = uncode.Sampler.load(tmp_path / "sampler.toml")
    assert f"rate={found['rate']}" in repr(sampler) and "AfterEos" not in repr(sampler)
    assert (tmp_path / "rates.png").read_bytes().startswith(b"\x89PNG")
    lines = (tmp_path / "run" / "samples.0.jsonl").read_text()
    again = run(*words(model, tmp_path, *chosen))
    assert again.returncode == 0 and "chosen" in again.stdout and "accuracy" not in again.stdout
    assert (tmp_path / "run" / "samples.0.jsonl").read_text() == lines  # nothing was decoded again
    use = run("decode", "one two", "--model", str(model), "--sampler", str(tmp_path / "sampler.toml"), "--length", "4")
    assert use.returncode == 0, use.stderr


def test_the_entropy_is_that_of_the_trace(model: Path, tmp_path: Path) -> None:
    done = run(*words(model, tmp_path, "--rates", "0.1,0.2", "--n", "1", "--json"))
    rows = [json.loads(line) for line in (tmp_path / "run" / "samples.0.jsonl").read_text().splitlines()]
    denoiser = uncode.load(model, device="cpu")
    family = FAMILIES["mini_choice"]
    ids = list(denoiser.tokenizer.encode(family.prompt(family.unlabelled()[0]), add_special_tokens=False))
    canvas = uncode.Canvas.after_prompt([ids], family.settings.length, denoiser.mask_id)
    sampler = uncode.presets.uncode(rate=0.1, informativeness=False)  # every mask is filled
    trace = uncode.decode(denoiser, canvas, sampler, seed=0, observe="span")
    assert rows[0]["entropy"] == pytest.approx(float(trace.sequence_entropy[0]), rel=1e-5)
    assert json.loads(done.stdout)["rates"][0]["entropy"] == pytest.approx(rows[0]["entropy"], abs=1e-6)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--rates", "0.5"), "--rates needs at least two different rates to choose from, not '0.5'."),
        (("--rates", "a,b"), "--rates takes numbers with commas between them, not 'a,b'."),
        (("--rates", "-1,0"), "--rates must be 0 or more, not '-1,0'."),
        (("--sampler", "confidence"), "the sampler 'confidence' has no rate to choose: give an Uncode preset."),
        (("--set", "rate=1"), "the rate is what is chosen: leave --set rate out."),
        (("--plot", "a.jpg"), "--plot takes a .png, .pdf or .svg file, not 'a.jpg'."),
    ],
)
def test_a_wrong_option_is_one_sentence(model: Path, tmp_path: Path, more: tuple[str, ...], message: str) -> None:
    done = run(*words(model, tmp_path, *more))
    assert done.returncode == 2 and message in done.stderr
