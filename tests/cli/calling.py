"""Verbs called in this process: a process of their own costs seconds."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner

from uncode.cli import app


def call(*words: str) -> Any:
    """What a verb printed; an error of the verb is raised."""
    shown = CliRunner().invoke(app, list(words), env={"COLUMNS": "100"})
    if shown.exception is not None and not isinstance(shown.exception, SystemExit):
        raise shown.exception
    return shown
