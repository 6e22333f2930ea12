"""A thousand command lines of generated words and bytes: one sentence, a known exit code, never a traceback."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from tests.cli.running import run
from tests.covering import one_in
from uncode.cli.app import app
from uncode.models import TINY

LINES, PARTS = 1000, 10
"""Command lines in all, and tests they are spread over, so that workers share them."""
WORDS = [
    "", " ", "-", "--", "---", "x", "add 3 4 5", "add 3 4 <mask:2>",
    "<mask:-3>", "<mask:a>", "<m>", "0", "-1", "1e9", "nan",
    "99999999999999999999", "3.5", "true", "caf\udce9", "\ud800", "a\nb", "\t",
    "日本語", "🙂" * 50, "x" * 5000, "../..",
    "/", "/dev/null", "/dev/stdout", "/nowhere/file", "~nobody/x", "%s", "{}", "[]", "null", "$HOME", "`id`",
    "a=b", "=",
    "rate=0.5", "rate=nan", "rate=1e999", "steps=-1", "steps=99999999999999999999", "steps=[[[[]]]]", "threshold=0.5",
    "cache=dual", "frequency=x", "confidence.steps=3", "uncode", "uncod", "confidence", "legacy.llada_eos", "story",
    "confidence,uniform", "tiny", "toy", "llada", "no/such", "gsm8k", "mini_story", "cpu", "cuda", "meta", "cuda:99",
    "float32", "float16", "float99", "file.txt", "file.toml", "file.jsonl", "bytes.bin", "folder", "table.safetensors",
]  # fmt: skip
TOO_LONG = {"calibrate", "demo", "mini", "paper", "serve", "threshold", "train"}
"""Verbs that really work for minutes, or until a signal: only with words that cannot be right."""


def _options() -> dict[tuple[str, ...], list[tuple[str, bool]]]:
    """Every verb with its options, and whether an option takes a value."""
    found: dict[tuple[str, ...], list[tuple[str, bool]]] = {}
    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        if name == "lm-eval":  # passes all words on to another program
            continue
        for words, each in (
            [((name,), command)]
            if not hasattr(command, "commands")
            else [((name, inner), one) for inner, one in command.commands.items()]
        ):
            options = [p for p in each.params if p.param_type_name == "option"]
            found[words] = [(opt, not p.is_flag) for p in options for opt in p.opts]
    return found


def _lines(seed: int) -> Iterator[list[str]]:
    chance, verbs = random.Random(seed), _options()
    for _ in range(LINES // PARTS):
        verb = chance.choice(list(verbs))
        words = list(verb)
        if verb[0] in ("decode", "compare") and chance.random() < 0.8:
            words += ["--model", "toy", "--length", str(chance.choice([0, 1, 8, 24, 10**9]))]
        for _ in range(chance.randint(0, 4)):
            if chance.random() < 0.5:
                words.append(chance.choice(WORDS))
                continue
            option, valued = chance.choice(verbs[verb])
            words += [option, chance.choice(WORDS)] if valued else [option]
        if chance.random() < 0.1:
            words.insert(chance.randint(0, len(words)), chance.choice(WORDS))
        if verb[0] in TOO_LONG:  # last, so that no later value replaces it
            words += [chance.choice(["--nothing", "--seed=x", "--out=/dev/null/x", "--view=/nowhere/x"])]
        yield [word.replace("\0", "") for word in words if word != "--debug"]


def _no_network(*_: object, **__: object) -> None:
    raise OSError("no network in tests")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of every kind, some of them damaged, to be named by chance."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("urllib.request.urlopen", _no_network)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").write_text("some text\n")
    (tmp_path / "file.toml").write_text('name = "x"\n[policy]\nscore = { piece = "Confidense" }\n')
    (tmp_path / "file.jsonl").write_text('{"prompt": "add 3 4 5"}\n{"id": 3}\n')
    (tmp_path / "bytes.bin").write_bytes(os.urandom(100))
    (tmp_path / "table.safetensors").write_bytes((TINY / "frequency.safetensors").read_bytes())
    return tmp_path


@pytest.mark.parametrize("part", one_in(2, range(PARTS)))
def test_a_generated_command_line_ends_in_one_sentence(part: int, folder: Path) -> None:
    """Every second part, and all under `make verify`."""
    for words in _lines(part):
        stdin = random.Random(part).choice(["", "add 3 4 5\n", "caf\udce9"])
        shown = run(*words, stdin=stdin)
        assert shown.returncode in (0, 2), (words, shown)
        errors = [line for line in shown.stderr.splitlines() if line.startswith("uncode:")]
        assert "Traceback" not in shown.stderr + shown.stdout, words
        assert "a bug in uncode" not in shown.stderr, (words, shown.stderr)
        if shown.returncode == 2:
            assert len(errors) == 1 and re.search(r"[.?)\"'`]$", shown.stderr.rstrip()), (words, shown.stderr)
