"""The command line: most of it in this process, and what only a process shows in a new one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.backbones.test_tokenizers import llada_tokenizer
from tests.checkpoints import checkpoint
from tests.cli.running import ROOT, TOY, run, run_apart
from uncode import Trace
from uncode.cli import main
from uncode.samplers.legacy import QUIRKS
from uncode.samplers.presets import PRESETS


def test_version_and_help() -> None:
    result = run_apart("--version")
    assert result.stdout.startswith("uncode 0.") and (result.returncode, result.stderr) == (0, "")
    shown = run("decode", "--help").stdout
    assert "Examples" in shown and "--sampler" in shown
    assert run("samplers", "--help").returncode == 0


def test_samplers_are_listed_with_their_sources() -> None:
    shown = run_apart("samplers").stdout
    assert shown == run("samplers").stdout, "its own process prints the same"
    assert all(name in shown for name in PRESETS)
    assert "\x1b[" not in shown, "output is plain when piped"
    listed = json.loads(run("samplers", "--json").stdout)
    assert [entry["name"] for entry in listed] == [*PRESETS, *QUIRKS]
    assert all(entry["summary"] and entry["source"] for entry in listed)


def test_a_printed_sampler_decodes_again(tmp_path: Path) -> None:
    for name in ("uncode", "legacy.uncode_release"):
        file = tmp_path / f"{name}.toml"
        file.write_text(run("samplers", name).stdout)
        by_file = run("decode", *TOY, "add 3 4 5", "--sampler", str(file), "--json").stdout
        by_name = run("decode", *TOY, "add 3 4 5", "--sampler", name, "--json").stdout
        assert json.loads(by_file)["generated_ids"] == json.loads(by_name)["generated_ids"]


def test_decode_answers_and_writes_a_trace(tmp_path: Path) -> None:
    out = tmp_path / "trace.jsonl"
    words = ("decode", *TOY, "-", "--sampler", "left_to_right", "--trace", str(out), "--order")
    shown = run_apart(*words, stdin="add 3 4 5")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[0] == "first 3 + 4 = 7 , then 7 + 5 = 12 . so the answer is 12 ."
    assert "left_to_right: 21 forwards" in shown.stdout
    trace = Trace.from_json(out.read_text())
    assert trace.commit_step[0].tolist() == [*range(21), -2, -2, -2]
    assert not list(tmp_path.glob("*.partial"))
    row = json.loads(out.read_text())
    assert row["model"] == "toy" and row["prompt_text"] == "add 3 4 5"
    whole = run("decode", *TOY, "add 3 4 5", "--sampler", "left_to_right", "--whole", "--json")
    assert json.loads(whole.stdout)["forwards"] == 24


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["decode", *TOY, "add 3 4 5", "--sampler", "uncod"], "did you mean 'uncode'"),
        (["decode", *TOY, "add 3 4 5", "--set", "rte=1"], "did you mean 'rate'"),
        (["decode", *TOY, "add 3 4 5", "--set", "rate"], "KEY=VALUE"),
        (["decode", *TOY, "add 3 4 5", "--set", "rate=-1"], "at least 0"),
        (["decode", *TOY, "add 3 4 5", "--set", "rate=fast"], "must be a number"),
        (["decode", *TOY, "add 3 4 5", "--sampler", "fast_dllm", "--set", "threshold=2"], "at most 1"),
        (["decode", *TOY, "add 3 4 5", "--sampler", "fast_dllm", "--set", "cache=prefix"], "has no KV cache"),
        (["decode", *TOY, "add 3 4 5", "--sampler", "missing.toml"], "the file 'missing.toml' does not exist"),
        (["decode", *TOY, "add 3 4 5", "--sampler", "confidence", "--frequency", "x"], "takes no frequency table"),
        (["decode", *TOY, "add 3 4 5", "--frequency", "missing"], "neither a file nor the name"),
        (["decode", *TOY, "add 3 4 5", "--frequency", "README.md"], "not a frequency table"),
        (
            ["decode", "add 3 4 5", "--sampler", "confidence", "--model", "llada"],
            "did you mean GSAI-ML/LLaDA-8B-Base or",
        ),
        (["decode", "add 3 4 5", "--sampler", "confidence", "--model", "no/such/folder"], "there is no folder"),
        (
            ["decode", "add 3 4 5", "--sampler", "confidence", "--model", "no/such"],
            "offline mode is on (HF_HUB_OFFLINE), and the local cache is incomplete",
        ),
        (["decode", *TOY[:2], "add 3 4 5", "--length", "0"], "at least 1"),
        (
            ["decode", *TOY[:2], "add 3 4 5", "--length", "99"],
            "sees 28 at most: shorten the answer with --length 24, or take",
        ),
        (["decode", *TOY[:2], "add 3 4 5 " * 9], "sees 28 at most: shorten the prompt, or take"),
        (
            ["decode", *TOY[:2], "add <mask:40> 5"],
            "have 42 tokens, and the toy model sees 28 at most: shorten the prompt",
        ),
        (["decode", "hi", "--model", "no/such"], "cannot download 'no/such'"),  # before any table is missed
        (["decode", "hi", "--model", "./nowhere"], "there is no folder './nowhere'"),
        (["decode", "hi", "--model", "README.md", "--sampler", "confidence"], "is a file: give its folder"),
        (["decode", *TOY, "multiply 3 4 5"], "does not know the word 'multiply'"),
        (["decode", *TOY, " "], "prompt is empty"),
        (["decode", *TOY, "add 3 4 5", "--trace", "nowhere/trace.jsonl"], "does not exist"),
        (["decode", *TOY, "add 3 4 5", "--trace", "docs"], "is a folder: --trace takes a file"),
        (["decode", *TOY, "add 3 4 5", "--out", "x.jsonl"], "write the trace of one prompt with --trace"),
        (["decode", *TOY, "add 3 4 5", "--batch", "2"], "--batch is for the prompts of --input"),
        (["decode", *TOY, "add 3 4 5", "--input", "README.md"], "give a prompt or --input FILE, not both"),
        (["decode", *TOY, "--input", "README.md"], "give --out FILE"),
        (["decode", *TOY, "--input", "missing.jsonl", "--out", "x.jsonl"], "the file 'missing.jsonl' does not exist"),
        (["decode", *TOY, "--input", "README.md", "--out", "README.md"], "is the file of the prompts"),
        (["decode", *TOY, "--input", "README.md", "--out", "docs"], "is a folder"),
        (["decode", *TOY, "--input", "README.md", "--out", "x.jsonl"], "line 1 of 'README.md' is not JSON"),
        (["decode", *TOY, "--input", "README.md", "--out", "x.jsonl", "--order"], "leave it out with --input"),
        (["decode", *TOY, "add 3 4 5", "--set", "frequency=foo"], "--frequency FILE"),
        (["decode", *TOY, "add 3 4 5", "--sampler", "legacy.uncode_relase"], "did you mean 'legacy.uncode_release'"),
        (["samplers", "confidense"], "did you mean 'confidence'"),
        (["decode"], "give a prompt, or --input FILE"),
        (["decod", "x"], "there is no command"),
        (["decode", *TOY, "x", "--sampleer", "x"], "there is no option"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, because there are many of them."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["uncode", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert ended.value.code == 2
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert len(shown.err.splitlines()) == 1
    assert shown.out == ""


def test_a_mistake_in_a_process_of_its_own() -> None:
    shown = run_apart("decode", *TOY, "add 3 4 5", "--sampler", "uncod")
    assert (shown.returncode, shown.stdout) == (2, "") and "did you mean 'uncode'?" in shown.stderr


def test_debug_shows_the_traceback() -> None:
    shown = run_apart("--debug", "decode", *TOY, "add 3 4 5", "--sampler", "uncod")
    assert shown.returncode == 2 and "Traceback" in shown.stderr
    assert "Traceback" in run("decode", *TOY, "x", "--debug").stderr


def test_no_words_show_the_help() -> None:
    shown = run()
    assert "decode" in shown.stderr + shown.stdout


def test_models_lists_families_ids_and_the_cache(tmp_path: Path) -> None:
    shown = run("models").stdout
    assert "GSAI-ML/LLaDA-8B-Instruct" in shown and "mask 126336" in shown and "licence: MIT" in shown
    assert "\x1b[" not in shown and max(map(len, shown.splitlines())) <= 100
    listed = {entry["name"]: entry for entry in json.loads(run("models", "--json").stdout)}
    dream = listed["Dream-org/Dream-v0-Instruct-7B"]
    assert (dream["mask_id"], dream["eos_ids"], dream["key_heads"]) == (151666, [151643, 151645], 4)
    assert listed["GSAI-ML/LLaDA-1.5"]["parameters"] == 8_015_581_184
    fast = listed["d3LLM/d3LLM_LLaDA"]
    assert (
        fast["licence"] == "Apache-2.0" and "entropy at most 0.5" in fast["own_sampler"] and len(fast["checked"]) == 2
    )
    sizes = {name: round(size / 1e9, 1) for name, size in fast["memory"].items()}
    assert sizes == {"bfloat16": 16.0, "fp8": 9.1, "int8": 9.1, "int4": 5.8}
    assert "16.0 GB in bfloat16; 9.1 with fp8 or int8 weights, 5.8 with int4" in shown


def test_doctor_says_what_is_there_and_what_is_missing() -> None:
    shown = run("doctor").stdout
    assert all(word in shown for word in ("versions", "torch", "devices", "cpu", "float32", "hub", "offline", "extras"))
    found = json.loads(run("doctor", "--json").stdout)
    assert found["kernels"]["on a GPU"].startswith(("fused", "plain, which is slower: triton"))
    assert found["versions"]["transformers"] and found["devices"][0]["name"] == "cpu"
    extras = {extra["name"]: extra for extra in found["extras"]}
    assert set(extras) == {
        "eval",
        "serve",
        "serve-ray",
        "devices",
        "corpora",
        "cluster",
        "gguf",
        "lm-eval",
        "plots",
        "frames",
    }
    assert not extras["devices"]["missing"]
    missing = [extra for extra in extras.values() if extra["missing"]]
    assert all(f"pip install 'uncode[{extra['name']}]'" in " ".join(shown.split()) for extra in missing)


def test_a_folder_decodes(tmp_path: Path) -> None:
    """A small LLaDA without a tokenizer is told apart from one with; --guidance and --dtype reach the model."""
    folder = checkpoint(tmp_path / "llada", "llada", 0)
    shown = run("decode", "2 + 3", "--model", str(folder), "--sampler", "confidence")
    assert shown.returncode == 2 and "has no tokenizer" in shown.stderr
    llada_tokenizer().save_pretrained(folder)
    words = ["decode", "2 + 3", "--model", str(folder), "--length", "6", "--json"]
    plain = json.loads(run(*words, "--sampler", "confidence", "--dtype", "float64").stdout)
    assert plain["dtype"] == "float64" and plain["model"] == "llada"
    assert len(plain["tokenizer"]) == 16 and len(plain["generated_ids"]) == 6
    guided = json.loads(run(*words, "--sampler", "confidence", "--guidance", "2").stdout)
    assert guided["guidance"] == 2.0
    cached = run(*words, "--sampler", "semi_ar", "--set", "blocks=2", "--set", "cache=dual", "--chat")
    assert cached.returncode == 0, cached.stderr
    uncached = run(*words, "--sampler", "semi_ar", "--set", "cache=none", "--set", "steps=none")
    assert uncached.returncode == 0, "none is a choice of cache, and no number of steps"
