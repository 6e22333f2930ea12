"""Usage errors in plain words, with the near name and where to read on."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import uncode.cli
from tests.cli.running import run
from uncode.cli.usage import with_options


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("decode x --length abc", "--length must be a whole number, not 'abc': see `uncode decode --help`."),
        ("decode x --guidance much", "--guidance must be a number, not 'much': see `uncode decode --help`."),
        ("decode x --batch 0", "--batch must be at least 1, not 0: see `uncode decode --help`."),
        ("mini --workers 99", "--workers must be at least 1 and at most 16, not 99: see `uncode mini --help`."),
        ("decode x --modle y", "there is no option --modle: did you mean --model? See `uncode decode --help`."),
        ("decode x --zzz", "there is no option --zzz: see `uncode decode --help`."),
        ("decode What is 2", "'is 2' was not expected: put the whole prompt in quotes: see `uncode decode --help`."),
        ("tasks a b", "'b' was not expected: see `uncode tasks --help`."),
        ("decode x --length", "--length needs a value."),
        ("decod x", "there is no command 'decod': did you mean 'decode'? See `uncode --help`."),
        ("table shw", "there is no command 'shw': did you mean 'show'? See `uncode table --help`."),
        ("regrade", "FILE... is missing: see `uncode regrade --help`."),
        ("samplers CONFIDENCE", "did you mean 'confidence'?"),
    ],
)
def test_a_usage_error_is_one_plain_sentence(words: str, sentence: str) -> None:
    shown = run(*words.split())
    assert shown.returncode == 2 and shown.stdout == ""
    assert shown.stderr.startswith("uncode: ") and shown.stderr.rstrip().endswith(sentence)


def test_errors_of_the_library_name_options_on_the_command_line() -> None:
    sentence = (
        "choose another `out=`, check `fields=`, or give `restart=True` or `format=jsonl`, as `uncode count` does."
    )
    shown = "choose another --out, check --field, or give --restart or --format jsonl, as `uncode count` does."
    assert with_options(sentence) == shown


@pytest.mark.parametrize("words", [["help"], ["-h"], ["help", "decode"], ["decode", "-h"]])
def test_help_by_every_name(words: list[str]) -> None:
    shown = run(*words)
    assert shown.returncode == 0 and shown.stdout.startswith("Usage: uncode") and "Options" in shown.stdout


@pytest.mark.parametrize("words", [[], ["table"]])
def test_a_group_alone_prints_its_help(words: list[str]) -> None:
    assert run(*words).stderr.startswith("Usage: uncode")


def test_every_option_with_a_metavar_says_its_name() -> None:
    """typer 0.27 makes the name of an option from its metavar where it says none: --DEVICE instead of --device."""
    for file in Path(uncode.cli.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "typer.Option":
                has_metavar = any(keyword.arg == "metavar" for keyword in call.keywords)
                names = [ast.unparse(value) for value in call.args]
                assert not has_metavar or any(name.startswith("'-") for name in names), f"{file.name}:{call.lineno}"
