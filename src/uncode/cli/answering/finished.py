"""Whether a file of answers is finished already: found out without torch, before a model is loaded."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from ...files import read_finished, read_job
from ...models import folder_of
from ...version import __version__
from .prompts import PromptFile


def command_of(
    prompts: PromptFile, model: str, sampler: str, frequency: str | None, **options: Any
) -> dict[str, Any] | None:
    """What was typed and the files it names; None for a hub id, which may mean other weights another day."""
    folder = folder_of(model)
    if folder is None and model != "toy":
        return None
    names = {"model": model if folder is None else str(folder.resolve()), "sampler": sampler, "frequency": frequency}
    files = sorted(folder.resolve().glob("*")) if folder is not None else []
    stamps = [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files if file.is_file()]
    contents = (prompts.content, *(_content(name) for name in (sampler, frequency or "")))
    digests = [hashlib.sha256(content).hexdigest() for content in contents]
    command = names | options | {"files": stamps, "digests": digests, "version": __version__}
    return dict(json.loads(json.dumps(command)))  # as it is read again


def say_if_finished(prompts: PromptFile, command: Mapping[str, Any] | None, force: bool, as_json: bool) -> bool:
    """Say so if every prompt has its answer, made by the same command. A file that is not ours is an error."""
    began, out = time.monotonic(), prompts.out.resolve()
    if not out.exists():
        return False
    if not force:
        read_job(out, force)
    ids = [row.get("id") for row in read_finished(out, command or {})]
    finished = command is not None and ids == [one.id for one in prompts.lines]
    if finished:
        say_done(prompts.out, len(ids), len(ids), 0, time.monotonic() - began, as_json)
    return finished


def say_done(out: Path, answers: int, resumed: int, forwards: int, seconds: float, as_json: bool) -> None:
    """The last line of a run; `forwards` are those of this run."""
    if as_json:
        done = {"out": str(out), "answers": answers, "resumed": resumed, "forwards": forwards, "seconds": seconds}
        typer.echo(json.dumps(done))
        return
    earlier = f", {resumed:,} of them of an earlier run" if resumed else ""
    typer.echo(f"{out}: {answers:,} answers{earlier}; {forwards:,} forwards; {seconds:.1f} s.")


def _content(name: str) -> bytes:
    """Of the file that a name leads to; of a preset's name, or a table's, nothing."""
    return Path(name).read_bytes() if os.path.isfile(name) else b""
