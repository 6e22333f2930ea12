"""Answering a file of prompts on the engine. The answers are written to a file as they are made."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import typer

from ...core.denoiser import Denoiser
from ...core.errors import UncodeError, require
from ...core.pieces.policy import Sampler
from ...core.support.reprs import counted
from ...engine import Engine, Request
from ...files import Journal
from ...generation import sampler_for
from ...models import BUILT_IN, folder_of
from ...prompt import Prompt, answer_texts, canvas_of
from ..options import DEFAULT_LENGTH
from ..progress import item_bar
from .finished_answers import report_done
from .prompt_notes import advise
from .prompts import PromptFile, PromptLine

Item = tuple[PromptLine, Prompt]


@dataclass(frozen=True)
class DecodeSettings:
    """The model, the sampler and the options of a decode."""

    denoiser: Denoiser
    sampler: Sampler
    seed: int
    length: int | None
    chat: bool
    stop_at_eos: bool


def answer_file(
    settings: DecodeSettings,
    prompts: PromptFile,
    model: str,
    batch: int,
    as_json: bool,
    command: Mapping[str, Any] | None = None,
    force: bool = False,
) -> None:
    """Answer the prompts that have no answer yet, and print a summary. Finished answers are kept after a kill."""
    began, lines, out = time.monotonic(), prompts.lines, prompts.out
    rows = [one.row(settings.denoiser, settings.chat, settings.length) for one in lines]
    takes_length = any(row.is_continued for row in rows)
    require(settings.length is None or takes_length, "texts with gaps have no answer length: leave --length out.")
    advise(model, settings.denoiser, [(one.prompt, row) for one, row in zip(lines, rows, strict=True)])
    line_number = {one.id: one.number for one in lines}
    with Journal.open(out, _job(settings, prompts, model), command, force) as journal:
        ids = [row.get("id") for row in journal.rows]
        are_known = all(isinstance(one, str | int) and one in line_number for one in ids)
        require(are_known and len(set(ids)) == len(ids), f"'{out}' was changed: choose another --out, or remove it.")
        done = set(ids)
        resumed = len(journal.rows)
        missing = [item for item in zip(lines, rows, strict=True) if item[0].id not in done]
        try:
            with item_bar("answering") as on_progress:
                for row in _results(settings, missing, batch):
                    journal.add([row])
                    on_progress(len(journal.rows), len(lines))
        except KeyboardInterrupt:
            made = out.read_bytes().count(b"\n") if out.exists() else 0  # Ctrl-C may come between file and memory
            kept = f"stopped after {made:,} of {counted(len(lines), 'answer')}; the same command resumes there"
            typer.echo(kept, err=True)
            raise
        forwards = sum(row["forwards"] for row in journal.rows[resumed:])
        journal.arrange(sorted(journal.rows, key=lambda row: line_number[row["id"]]))
    report_done(out, len(lines), resumed, forwards, time.monotonic() - began, as_json)


def _job(settings: DecodeSettings, prompts: PromptFile, model: str) -> dict[str, Any]:
    """Everything that the answers depend on. Runs of the same job share a file."""
    about = dict(settings.denoiser.about)
    folder, weights = folder_of(model), list[str]()
    if folder is not None:
        files = sorted(folder.resolve().glob("*.safetensors"))
        weights = [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files]
    return {
        "model": about
        | {
            "model": model if folder is None or model in BUILT_IN else str(folder.resolve()),
            "weights": weights,
            "dtype": str(settings.denoiser.dtype).removeprefix("torch."),
        },
        "sampler": settings.sampler.to_dict(),
        "seed": settings.seed,
        "length": settings.length or DEFAULT_LENGTH,
        "input": hashlib.sha256(prompts.content).hexdigest(),
        "options": {"chat": settings.chat, "whole": not settings.stop_at_eos},
    }


def _results(settings: DecodeSettings, items: list[Item], batch: int) -> Iterator[dict[str, Any]]:
    """The answers, in the order in which they are finished. Each prompt has its own seed, so its answer does not depend
    on the prompts beside it."""

    def size(item: Item) -> tuple[int, int]:
        return len(item[1].ids), item[1].gaps[0][0]

    denoiser = settings.denoiser
    requests = (  # the longest first: rows of similar length need little padding
        Request(
            canvas_of(denoiser, [prompt]),
            sampler_for(denoiser, prompt, settings.sampler, settings.stop_at_eos),
            settings.seed + one.number if one.seed is None else one.seed,
            key=(one, prompt),
        )
        for one, prompt in sorted(items, key=size, reverse=True)
    )
    for result in Engine(denoiser, max_rows=batch).run(requests):
        one, prompt = result.request.key
        if result.trace is None:
            raise UncodeError(f"{one.where}: {result.error}")
        text = answer_texts(denoiser, [prompt], result.trace)[0]
        yield one.as_row() | {"text": text, "forwards": len(result.trace), "seed": result.request.seed}
