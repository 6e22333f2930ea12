"""Every error of docs/troubleshooting.md is what its command says. `python tests/test_docs.py` writes the messages."""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from pathlib import Path

import pytest
import torch

from tests.cli.running import run

PAGE = Path(__file__).parents[1] / "docs" / "troubleshooting.md"
ERROR = re.compile(r"(?<=```sh\n)(uncode [^\n]*)\n```\n\n```console\n([^`]*)```")
SUMS = '{"prompt": "add 3 4 5"}\n'


def make_files(folder: Path) -> None:
    """What the commands of the page find in their folder."""
    for name, config in {"llama": {"model_type": "llama"}, "unnamed": {"hidden_size": 8}}.items():
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(config))
    (folder / "prompts.jsonl").write_text(SUMS + '{"promt": "add 1 2 3"}\n')
    (folder / "sums.jsonl").write_text(SUMS)
    (folder / "notes.txt").write_text("mine\n")
    words = "decode --input sums.jsonl --out sums-out.jsonl --model toy --length 24"
    assert run(*shlex.split(words)).returncode == 0


def message(command: str, folder: Path) -> str:
    """What a command of the page prints in `folder`, which is the working directory."""
    shown = run(*shlex.split(command)[1:])
    assert shown.returncode != 0 and not shown.stdout, command
    text = shown.stderr.replace(f"{folder.resolve()}{os.sep}", "")
    return text.replace("LocalEntryNotFoundError", "OfflineModeIsEnabled")  # either, by what ran before


def rewritten(page: str) -> str:
    """The page with the messages of today."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            make_files(Path(name))
            return ERROR.sub(lambda m: f"{m[1]}\n```\n\n```console\n{message(m[1], Path(name))}```", page)
        finally:
            os.chdir(before)


@pytest.mark.skipif(torch.cuda.is_available(), reason="one of the errors is that there is no GPU")
def test_every_error_is_what_its_command_says() -> None:
    assert len(ERROR.findall(PAGE.read_text())) >= 20
    assert rewritten(PAGE.read_text()) == PAGE.read_text()
