"""Finished files of answers are recognised without torch, before a model is loaded."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

import typer

from ...core.support.reprs import counted
from ...models import folder_of
from ...util.files import read_finished, read_job
from ...version import __version__
from .prompts import PromptFile


def command_of(
    prompts: PromptFile, model: str, sampler: str, frequency: str | None, **options: object
) -> dict[str, object] | None:
    """The options of a command and stamps of its files; None for a hub id, whose weights may change."""
    folder = folder_of(model)
    if folder is None and model != "toy":
        return None
    names = {"model": model if folder is None else str(folder.resolve()), "sampler": sampler, "frequency": frequency}
    files = sorted(folder.resolve().glob("*")) if folder is not None else []
    stamps = [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files if file.is_file()]
    contents = (prompts.content, *(_content(name) for name in (sampler, frequency or "")))
    digests = [hashlib.sha256(content).hexdigest() for content in contents]
    command = names | options | {"files": stamps, "digests": digests, "version": __version__}
    return dict(json.loads(json.dumps(command)))  # equal to what is read from the file later


def report_if_finished(
    prompts: PromptFile, command: Mapping[str, object] | None, force: bool, as_json: bool, answers_alone: bool = True
) -> bool:
    """Print a summary and return True if the same command has answered every prompt, and `answers_alone` are wanted.
    Raise for a foreign file."""
    assert prompts.out is not None
    began, out = time.monotonic(), prompts.out.resolve()
    if not out.exists():
        return False
    if not force:
        read_job(out, force)
    ids = [row.get("id") for row in read_finished(out, command or {})]
    finished = command is not None and answers_alone and ids == [one.id for one in prompts.lines]
    if finished:
        report_done(prompts.out, len(ids), len(ids), 0, time.monotonic() - began, as_json)
    return finished


def report_done(out: Path | str, answers: int, resumed: int, forwards: int, seconds: float, as_json: bool) -> None:
    """Print the last line of a run. `forwards` counts this run only."""
    if as_json:
        done = {"out": str(out), "answers": answers, "resumed": resumed, "forwards": forwards, "seconds": seconds}
        typer.echo(json.dumps(done))
        return
    earlier = f", {resumed:,} of them of an earlier run" if resumed else ""
    typer.echo(f"{out}: {counted(answers, 'answer')}{earlier}; {counted(forwards, 'forward')}; {seconds:.1f} s.")


def _content(name: str) -> bytes:
    """The content of a file; empty for the name of a preset or a table."""
    return Path(name).read_bytes() if os.path.isfile(name) else b""
