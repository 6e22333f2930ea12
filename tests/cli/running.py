"""The command line, in this process, or in a new one for what only a process shows."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.forked import Forked
from uncode.cli import main
from uncode.cli.app import app

ROOT = Path(__file__).parents[2]
COLUMNS = {"COLUMNS": "100"}
TOY = ("--model", "toy", "--length", "24")
"""The quickest model there is."""
Done = subprocess.CompletedProcess[str]


def run(*words: str, stdin: str | None = None) -> Done:
    """In this process, its streams no terminal; an error that `main` lets through is the caller's."""
    given, out, err = (
        io.TextIOWrapper(io.BytesIO(text), "utf-8")
        for text in ((stdin or "").encode(errors="surrogateescape"), b"", b"")
    )
    code: object = None
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setenv("COLUMNS", COLUMNS["COLUMNS"])
        patch.setattr(sys, "stdin", given)
        patch.setattr(sys, "argv", ["uncode", *words])
        try:
            main()
        except SystemExit as left:
            code = left.code
    texts = []
    for stream in (out, err):
        stream.seek(0)
        texts.append(stream.read())
    assert code is None or isinstance(code, int), code
    return subprocess.CompletedProcess(words, code or 0, *texts)


def run_apart(*words: str, stdin: str = "") -> Done:
    """In its own process, as a user meets it."""
    with start_apart(*words, stdin=stdin) as process:
        out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(words, process.wait(), out, err)


def start_apart(*words: str, stdin: str = "") -> Forked:
    def act() -> None:
        os.environ.update(COLUMNS)
        sys.argv = ["uncode", *words]
        main()

    return Forked(act, stdin)


def call(*words: str) -> Result:
    """In this process too, by typer's own means; an error of the verb is raised."""
    shown = CliRunner().invoke(app, list(words), env=COLUMNS)
    if shown.exception is not None and not isinstance(shown.exception, SystemExit):
        raise shown.exception
    return shown
