"""Many prompts from a file, their answers to a file: in batches, and kept as they are made."""

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
from ..options import USUAL_LENGTH
from ..progress import counted
from .familiar import advise
from .finished import say_done
from .prompts import PromptFile, PromptLine

Item = tuple[PromptLine, Prompt]


@dataclass(frozen=True)
class DecodeSettings:
    """How prompts are to be answered."""

    denoiser: Denoiser
    sampler: Sampler
    seed: int
    length: int | None
    chat: bool
    stop_at_eos: bool


def answer_file(
    how: DecodeSettings,
    prompts: PromptFile,
    model: str,
    batch: int,
    as_json: bool,
    command: Mapping[str, Any] | None = None,
    force: bool = False,
) -> None:
    """Answer what has no answer yet, and say so. What is done stays, however this ends."""
    began, asked, out = time.monotonic(), prompts.lines, prompts.out
    rows = [one.row(how.denoiser, how.chat, how.length) for one in asked]
    follows = any(row.is_continued for row in rows)
    require(how.length is None or follows, "texts with gaps say how long they are: leave --length out.")
    advise(model, how.denoiser, [(one.prompt, row) for one, row in zip(asked, rows, strict=True)])
    place = {one.id: one.number for one in asked}
    with Journal.open(out, _job(how, prompts, model), command, force) as journal:
        ids = [row.get("id") for row in journal.rows]
        known = all(isinstance(one, str | int) and one in place for one in ids)
        require(known and len(set(ids)) == len(ids), f"'{out}' was changed: choose another --out, or remove it.")
        done = set(ids)
        resumed = len(journal.rows)
        missing = [item for item in zip(asked, rows, strict=True) if item[0].id not in done]
        try:
            with counted("answering") as on_progress:
                for part in _batches(missing, batch, how.denoiser.sees_padding):
                    journal.add(_decode(how, part, lambda more: on_progress(len(journal.rows) + more, len(asked))))
        except KeyboardInterrupt:
            kept = f"stopped after {len(journal.rows)} of {len(asked)} answers; the same command goes on from there"
            typer.echo(kept, err=True)
            raise
        forwards = sum(row["forwards"] for row in journal.rows[resumed:])
        journal.arrange(sorted(journal.rows, key=lambda row: place[row["id"]]))
    say_done(out, len(asked), resumed, forwards, time.monotonic() - began, as_json)


def _job(how: DecodeSettings, prompts: PromptFile, model: str) -> dict[str, Any]:
    """What the answers depend on: runs of the same job share a file."""
    about = dict(how.denoiser.about)
    folder, weights = folder_of(model), list[str]()
    if folder is not None:
        files = sorted(folder.resolve().glob("*.safetensors"))
        weights = [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files]
    return {
        "model": about
        | {
            "model": model if folder is None or model in BUILT_IN else str(folder.resolve()),
            "weights": weights,
            "dtype": str(how.denoiser.dtype).removeprefix("torch."),
        },
        "sampler": how.sampler.to_dict(),
        "seed": how.seed,
        "length": how.length or USUAL_LENGTH,
        "input": hashlib.sha256(prompts.content).hexdigest(),
        "options": {"chat": how.chat, "whole": not how.stop_at_eos},
    }


def _batches(items: list[Item], size: int, padded: bool) -> list[list[Item]]:
    """The longest first: memory that does not suffice shows at once, and the rows of a batch need little padding."""

    def shape(item: Item) -> tuple[int, int]:
        return len(item[1].ids), item[1].gaps[0][0]

    batches: list[list[Item]] = []
    for item in sorted(items, key=shape, reverse=True):
        full = not batches or len(batches[-1]) == size
        if full or not (padded or shape(item) == shape(batches[-1][0])):
            batches.append([])
        batches[-1].append(item)
    return batches


def _decode(how: DecodeSettings, items: list[Item], on_progress: Callable[[int], None]) -> list[dict[str, Any]]:
    """The answers to a batch. A prompt's seed is its own, so that it is answered in any batch as it is alone."""
    asked, prompts = [item[0] for item in items], [item[1] for item in items]
    seeds = [how.seed + one.number if one.seed is None else one.seed for one in asked]
    run = start_decode(how.denoiser, prompts, how.sampler, seeds, how.stop_at_eos)
    finished = 0
    for step in run:
        finished += len(step.finished)
        on_progress(finished)
    trace = run.trace()
    results = zip(asked, seeds, answer_texts(how.denoiser, prompts, trace), trace.forwards.tolist(), strict=True)
    return [one.as_row() | {"text": text, "forwards": forwards, "seed": seed} for one, seed, text, forwards in results]
