"""Files that a verb is asked to write: where, over what, and before any work is done."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import torch

from tests.cli.running import TOY, run, run_apart
from uncode import FrequencyTable, Trace


def test_the_trace_goes_to_standard_output_and_the_answer_too() -> None:
    shown = run_apart("decode", *TOY, "add 3 4 5", "--sampler", "confidence", "--trace", "/dev/stdout")
    trace, answer = shown.stdout.splitlines()
    assert Trace.from_json(trace).generated.shape == (1, 24) and answer.endswith("12 .")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_file_of_another_kind_asks_for_force(tmp_path: Path) -> None:
    """Before anything is decoded; a file of the same kind is replaced."""
    table, notes = tmp_path / "table.safetensors", tmp_path / "notes.md"
    FrequencyTable(torch.arange(4)).save(table)
    notes.write_text("# mine\n")
    trace, page = tmp_path / "trace.jsonl", tmp_path / "page.html"
    decode, compare = (
        ("decode", *TOY, "add 3 4 5", "--sampler", "uniform"),
        ("compare", *TOY, "add 3 4 5", "--samplers", "uniform"),
    )
    for words, option, kind in ((decode, "--trace", "trace"), (compare, "--view", "page")):
        for file in (table, notes):
            before = file.read_bytes()
            refused = run(*words, option, str(file))
            assert refused.returncode == 2 and refused.stdout == "", refused
            assert (
                f"'{file}' exists and is not a {kind}: choose another name, or replace it with --force."
                in refused.stderr
            )
            assert file.read_bytes() == before
    for _ in range(2):
        assert run(*decode, "--trace", str(trace)).returncode == 0
        assert run(*compare, "--view", str(page)).returncode == 0
    assert run(*decode, "--trace", str(page)).returncode == 2
    assert run(*decode, "--trace", str(notes), "--force").returncode == 0 and Trace.load(notes)
    merge = ("table", "merge", str(table), str(table), "--out")
    assert run(*merge, str(trace)).returncode == 2 and run(*merge, str(tmp_path / "sum.safetensors")).returncode == 0
    into_itself = run(*merge, str(table), "--force")
    assert into_itself.returncode == 2 and "is one of the tables to add" in into_itself.stderr
    corpus = run("count", str(notes), "--tokenizer", "tiny", "--out", str(notes), "--force")
    assert corpus.returncode == 2 and "is the corpus itself" in corpus.stderr


@pytest.mark.parametrize("words", [("decode", *TOY, "--input", "{in}"), ("regrade", "{in}", "--task", "gsm8k")])
def test_work_that_is_resumed_needs_a_regular_file(words: tuple[str, ...], tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"prompt": "add 3 4 5"}\n')
    shown = run(*(word.replace("{in}", str(lines)) for word in words), "--out", "/dev/stdout")
    assert shown.returncode == 2 and "'/dev/stdout' is not a regular file: give --out a file" in shown.stderr
    assert not list(Path("/dev").glob("stdout.*"))
