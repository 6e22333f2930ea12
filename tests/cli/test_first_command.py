"""The first commands of a new user: they answer, or are refused before the weights are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import uncode
from tests.backbones.test_masked_lm import ARCHITECTURES, tokenizer
from tests.backbones.test_tokenizers import llada_tokenizer
from tests.checkpoints import checkpoint
from tests.cli.running import TOY, run
from uncode import presets
from uncode.core.errors import Advice
from uncode.evals.suite.families import FAMILIES
from uncode.evals.tasks import find_task

ADVICE = (
    "note: this model has no frequency table: 'certain_first' orders by confidence and position alone; "
    "`uncode count` makes one.\n"
)


def diffusion(folder: Path, dialect: str) -> Path:
    llada_tokenizer().save_pretrained(checkpoint(folder, dialect, 0))
    return folder


def bert(folder: Path) -> Path:
    torch.manual_seed(7)
    ARCHITECTURES["bert"]().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


MODELS: dict[str, Callable[[Path], Path]] = {
    "llada": lambda folder: diffusion(folder, "llada"),
    "dream": lambda folder: diffusion(folder, "dream"),
    "bert": bert,
}


@pytest.fixture(scope="module", params=MODELS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return MODELS[request.param](tmp_path_factory.mktemp(request.param))


def test_a_model_without_a_table_answers_without_an_option(folder: Path, tmp_path: Path) -> None:
    shown = run("decode", "What is 2 + 3", "--model", str(folder))
    assert shown.returncode == 0 and shown.stdout.endswith("\n") and shown.stderr == ADVICE
    trace = tmp_path / "trace.jsonl"
    again = run("decode", "What is 2 + 3", "--model", str(folder), "--trace", str(trace))
    row = json.loads(trace.read_text())
    assert again.stdout == shown.stdout and "Informativeness" not in json.dumps(row["sampler"])
    quiet = run("decode", "What is 2 + 3", "--model", str(folder), "--set", "informativeness=false")
    assert quiet.stdout == shown.stdout and quiet.stderr == ""
    guided = run("decode", "What is 2 + 3", "--model", str(folder), "--guidance", "1")
    assert guided.returncode == 0 and guided.stderr == ADVICE, "a model with a bound on its tokens has it guided too"


def test_a_sampler_file_of_the_default_goes_with_every_model(folder: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(run("samplers", "certain_first").stdout)
    shown = run("decode", "What is 2", "--model", str(folder), "--sampler", str(mine), "--length", "6")
    assert shown.returncode == 0 and shown.stderr == ADVICE


def test_a_default_cache_is_left_out_with_a_note(folder: Path) -> None:
    words = ["decode", "What is 2", "--model", str(folder), "--length", "6", "--set", "informativeness=false"]
    shown = run(*words, "--sampler", "uncode_fast_dllm")
    note = "note: this model has no KV cache: 'uncode_fast_dllm' decodes without one.\n"
    is_bert = (folder / "vocab.txt").exists() or "bert" in folder.name
    assert shown.returncode == 0 and shown.stderr == (note if is_bert else "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "threshold=2"), "threshold of the sampler 'certain_first' must be above 0 and at most 1, not 2."),
        (("--set", "rate=-1"), "rate of the sampler 'certain_first' must be at least 0, not -1."),
        (
            ("--sampler", "confidence", "--set", "steps=0"),
            "steps of the sampler 'confidence' must be at least 1, not 0.",
        ),
        (("--sampler", "semi_ar", "--set", "blocks=0"), "blocks of the sampler 'semi_ar' must be at least 1, not 0."),
        (("--sampler", "uncode"), "the sampler 'uncode' needs a frequency table, and this model has none: pass --freq"),
        (("--frequency", "llda"), "'llda' is neither a file nor the name of a frequency table"),
        (("--frequency", "none.safetensors"), "the file 'none.safetensors' does not exist"),
        (("--sampler", "bad.toml"), "bad.toml', line 2"),
        (("--length", "99999"), "a length of 99,999 tokens is more than 16 times the 128 tokens "),
        (("--set", "threshold=.8", "--set", "threshold=0.9"), "--set gives threshold twice, as 0.8 and as 0.9"),
    ],
)
@pytest.mark.parametrize("verb", ["decode", "compare", "serve"])
def test_what_is_wrong_is_said_before_the_weights_are_read(
    verb: str, words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if verb == "compare":
        name = words[words.index("--sampler") + 1] if "--sampler" in words else "certain_first"
        words = tuple(f"{name}.{word}" if "=" in word else word for word in words if word not in ("--sampler", name))
        words = ("--samplers", name, *words)
    if verb == "serve" and "--length" in words:
        words = (*words, "--max-tokens", "99999")
    model = checkpoint(tmp_path / "m", "llada", 0)
    (model / "model.safetensors").unlink()
    monkeypatch.chdir(tmp_path)
    Path("bad.toml").write_text('name = "bad"\nnaem = "bad"\n')
    prompt = () if verb == "serve" else ("x",)
    shown = run(verb, *prompt, "--model", str(model), *words)
    assert shown.returncode == 2 and message in shown.stderr and "weights" not in shown.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("calibrate", "mini_story", "--set", "clip=0"),
            "the option clip of the sampler 'uncode' must be above 0, not 0.",
        ),
        (("calibrate", "mini_story"), "the sampler 'uncode' needs a frequency table, and this model has none"),
        (("calibrate", "mini_story", "--sampler", "certain_first"), "set informativeness to false"),
        (("threshold", "mini_story"), "needs a frequency table, and this model has none"),
        (("eval", "default.toml"), "set informativeness to false"),
        (("threshold", "mini_story", "--set", "rate=-1"), "'certain_first' must be at least 0, not -1."),
        (("threshold", "mini_story", "--frequency", "llda"), "'llda' is neither a file nor the name of a frequency"),
        (("eval", "mini", "--tasks", "mini_story"), "needs a frequency table, and this model has none"),
        (("eval", "bad.toml"), "the option tau of the sampler 'tau_leaping' must be at least 1, not 0."),
        (("eval", "worse.toml"), "'certain_first' takes no"),
    ],
)
def test_evaluations_too_check_before_the_weights_are_read(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = checkpoint(tmp_path / "m", "llada", 0)
    (model / "model.safetensors").unlink()
    monkeypatch.chdir(tmp_path)
    head = 'title = "t"\nmodels = ["tiny"]\ntasks = ["mini_story"]\n[[samplers]]\n'
    Path("bad.toml").write_text(f'{head}preset = "tau_leaping"\noptions = {{ tau = 0 }}\n')
    Path("default.toml").write_text(f'{head}preset = "certain_first"\n')
    Path("worse.toml").write_text(f'{head}preset = "entropy_gate"\noptions = {{ threshold = 0.5, steps = 4 }}\n')
    shown = run(*words, "--model", str(model))
    assert shown.returncode == 2 and "weights" not in shown.stderr
    assert message in shown.stderr or (words[1] == "worse.toml" and "leave out steps or threshold" in shown.stderr)


def test_one_answer_is_one_answer(tmp_path: Path) -> None:
    source, out = tmp_path / "prompts.jsonl", tmp_path / "out.jsonl"
    source.write_text('"add 3 4 5"\n')
    words = ["decode", *TOY, "--sampler", "confidence", "--set", "steps=1", "--input", str(source), "--out", str(out)]
    assert f"{out}: 1 answer; 1 forward; " in run(*words).stdout


def test_toml_has_lists(tmp_path: Path) -> None:
    config = tmp_path / "mine.toml"
    config.write_text('title = "t"\nmodels = "tiny"\ntasks = ["mini_story"]\n[[samplers]]\npreset = "confidence"\n')
    shown = run("eval", str(config))
    assert "models of the top level must be a list, not 'tiny'." in shown.stderr


@pytest.mark.parametrize(("written", "read"), [(".8", 0.8), ("1.", 1.0), ("+0.5", 0.5)])
def test_numbers_are_written_as_people_do(written: str, read: float) -> None:
    shown = run("samplers", "certain_first", "--set", f"threshold={written}")
    assert shown.returncode == 0 and f"threshold = {read}" in shown.stdout
    assert "must be a number, not '0,8'" in run("decode", "x", *TOY, "--set", "threshold=0,8").stderr


def test_an_unknown_sampler_has_three_near_names() -> None:
    shown = run("samplers", "nope").stderr
    assert "is named 'nope': the nearest of " in shown and len(shown) < 160


def test_the_tasks_of_the_documentation_are_found() -> None:
    for name in FAMILIES:
        assert find_task(name).name == name
    with pytest.raises(uncode.UncodeError, match="did you mean 'mini_story'"):
        find_task("stroy")


def test_both_ways_to_evaluate_and_to_decode_have_one_default_sampler() -> None:
    adapter = pytest.importorskip("uncode.adapters.lm_eval.model", reason="lm-eval is not installed")
    assert adapter.UncodeLM("tiny").sampler.sampler.name == presets.certain_first().name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": 2}, "threshold of the sampler 'certain_first' must be above 0 and at most 1, not 2."),
        ({"sampler": "uncode"}, "the sampler 'uncode' needs a frequency table, and this model has none"),
        ({"frequency": "llda"}, "'llda' is neither a file nor the name of a frequency table"),
        ({"length": 99999}, "a length of 99,999 tokens is more than 16 times the 128 tokens"),
    ],
)
def test_lm_eval_too_checks_before_the_weights_are_read(
    arguments: dict[str, object], message: str, tmp_path: Path
) -> None:
    adapter = pytest.importorskip("uncode.adapters.lm_eval.model", reason="lm-eval is not installed")
    model = checkpoint(tmp_path / "m", "llada", 0)
    (model / "model.safetensors").unlink()
    with pytest.raises(uncode.UncodeError, match=message):
        adapter.UncodeLM(str(model), **arguments)


def test_lm_eval_names_what_ran_without_a_table(tmp_path: Path) -> None:
    adapter = pytest.importorskip("uncode.adapters.lm_eval.model", reason="lm-eval is not installed")
    with pytest.warns(Advice, match="orders by confidence and position alone"):
        model = adapter.UncodeLM(str(diffusion(tmp_path / "m", "llada")), length=8)
    found = json.dumps(model.get_model_info()["sampler"])
    assert "Informativeness" not in found and "ExponentialPosition" in found
