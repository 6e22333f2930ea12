"""Answering a file of prompts in batches. The answers are written to a file as they are made."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import typer

from ...core.denoiser import Denoiser
from ...core.errors import require
from ...core.pieces.policy import Sampler
from ...files import Journal
from ...generation import start_decode
from ...models import BUILT_IN, folder_of
from ...prompt import Prompt, answer_texts
from ..options import DEFAULT_LENGTH
from ..progress import item_bar
from .familiar import advise
from .finished import report_done
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
    place = {one.id: one.number for one in lines}
    with Journal.open(out, _job(settings, prompts, model), command, force) as journal:
        ids = [row.get("id") for row in journal.rows]
        are_known = all(isinstance(one, str | int) and one in place for one in ids)
        require(are_known and len(set(ids)) == len(ids), f"'{out}' was changed: choose another --out, or remove it.")
        done = set(ids)
        resumed = len(journal.rows)
        missing = [item for item in zip(lines, rows, strict=True) if item[0].id not in done]
        try:
            with item_bar("answering") as on_progress:
                for part in _batches(missing, batch, settings.denoiser.sees_padding):
                    journal.add(_decode(settings, part, lambda more: on_progress(len(journal.rows) + more, len(lines))))
        except KeyboardInterrupt:
            kept = f"stopped after {len(journal.rows)} of {len(lines)} answers; the same command resumes there"
            typer.echo(kept, err=True)
            raise
        forwards = sum(row["forwards"] for row in journal.rows[resumed:])
        journal.arrange(sorted(journal.rows, key=lambda row: place[row["id"]]))
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


def _batches(items: list[Item], size: int, padded: bool) -> list[list[Item]]:
    """Batches of similar lengths, the longest first: they need little padding, and a lack of memory shows at once."""

    def shape(item: Item) -> tuple[int, int]:
        return len(item[1].ids), item[1].gaps[0][0]

    batches: list[list[Item]] = []
    for item in sorted(items, key=shape, reverse=True):
        full = not batches or len(batches[-1]) == size
        if full or not (padded or shape(item) == shape(batches[-1][0])):
            batches.append([])
        batches[-1].append(item)
    return batches


def _decode(settings: DecodeSettings, items: list[Item], on_progress: Callable[[int], None]) -> list[dict[str, Any]]:
    """The answers to a batch. Each prompt has its own seed, so its answer does not depend on the batch."""
    lines, prompts = [item[0] for item in items], [item[1] for item in items]
    seeds = [settings.seed + one.number if one.seed is None else one.seed for one in lines]
    run = start_decode(settings.denoiser, prompts, settings.sampler, seeds, settings.stop_at_eos)
    finished = 0
    for step in run:
        finished += len(step.finished)
        on_progress(finished)
    trace = run.trace()
    results = zip(lines, seeds, answer_texts(settings.denoiser, prompts, trace), trace.forwards.tolist(), strict=True)
    return [one.as_row() | {"text": text, "forwards": forwards, "seed": seed} for one, seed, text, forwards in results]
