"""Answering a file of prompts on the engine. The answers are written to a file as they are made."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import typer

from ...core.constraint import Constraint
from ...core.denoiser import Denoiser
from ...core.errors import UncodeError, require
from ...core.pieces.policy import Sampler
from ...core.support.reprs import counted
from ...engine import Engine, Request
from ...generation.gap_constraints import constraints_of
from ...generation.generate import sampler_for
from ...generation.prompt import Prompt, answer_texts, blank_gaps, canvas_of
from ...models import BUILT_IN, folder_of
from ...samplers.options import DEFAULT_LENGTH
from ...util.files import Journal
from ...util.progress import item_bar
from ...view.page import Trajectory
from ...view.row_summary import first_eos_step
from .finished_answers import report_done
from .pages import MAX_ROWS, write_view
from .prompt_notes import advise, note_blank_gaps
from .prompts import PromptFile, PromptLine

FileLine = dict[str, Any]
"""A line of the answer file, or of the file of traces."""
Key = tuple[str | int, str]
"""What tells answers apart: the id of the prompt and the name of the sampler."""


@dataclass(frozen=True)
class DecodeSettings:
    """The model, the samplers and the options of a decode."""

    denoiser: Denoiser
    model: str
    """As it was given."""
    samplers: Mapping[str, Sampler]
    """By name. Each answers every prompt."""
    seed: int
    length: int | None
    chat: bool
    stop_at_eos: bool
    constraint: Constraint | None = None


@dataclass(frozen=True)
class FileJob:
    """A file of prompts, who answers it, and the files for what is made of it."""

    settings: DecodeSettings
    prompts: PromptFile
    compares: bool
    """Whether an answer names its sampler, and says when EOS was committed."""
    batch: int
    trace: Path | None = None
    view: Path | None = None
    force: bool = False

    @property
    def needs_traces(self) -> bool:
        return self.trace is not None or self.view is not None


@dataclass(frozen=True)
class Answers:
    """The answers to a file of prompts."""

    rows: list[FileLine]
    """In the order of the file; those of one prompt in the order of the samplers."""
    resumed: int
    """How many are of an earlier run."""
    forwards: int
    """Of this run."""
    seconds: float

    def report(self, prompts: PromptFile, as_json: bool) -> None:
        """Print the last line of the run, if a file keeps the answers."""
        if prompts.out is not None:
            report_done(prompts.out, len(self.rows), self.resumed, self.forwards, self.seconds, as_json)


class _Item(NamedTuple):
    """A prompt that one sampler answers."""

    line: PromptLine
    prompt: Prompt
    name: str
    sampler: Sampler

    @property
    def key(self) -> Key:
        return self.line.id, self.name


class _Kept:
    """The rows in a file, by key, and new ones as they are made."""

    def __init__(self, journal: Journal, order: Mapping[Key, int], name_key: str, only: str) -> None:
        self.journal, self.order = journal, order
        keys: list[Any] = [(row.get("id"), row.get(name_key, only)) for row in journal.rows]
        are_known = all(isinstance(part, str | int) for key in keys for part in key) and set(keys) <= order.keys()
        changed = f"'{journal.path}' was changed: choose another file, or remove it."
        require(are_known and len(set(keys)) == len(keys), changed)
        self.rows: dict[Key, FileLine] = dict(zip(keys, journal.rows, strict=True))

    def add(self, key: Key, row: FileLine) -> None:
        if key not in self.rows:
            self.journal.add(row)
            self.rows[key] = row

    def arrange(self) -> None:
        """Write the rows in the order of the prompts."""
        self.journal.arrange([self.rows[key] for key in sorted(self.rows, key=self.order.__getitem__)])


def answer_file(job: FileJob, command: Mapping[str, object] | None = None) -> Answers:
    """Answer the prompts that have no answer yet. Finished answers are kept after a kill.

    A page needs traces. Where no file keeps them, the prompts on it that have an answer are decoded again.
    """
    began, items = time.monotonic(), _items(job)
    order = {item.key: at for at, item in enumerate(items)}
    about, only = _about(job), next(iter(job.settings.samplers))
    with ExitStack() as stack:
        out = job.prompts.out or Path(stack.enter_context(TemporaryDirectory())) / "answers.jsonl"
        answers = _Kept(stack.enter_context(Journal.of_job(out, about, command, job.force)), order, "sampler", only)
        traces = None
        if job.trace is not None:
            traces = _Kept(stack.enter_context(Journal.of_job(job.trace, about, None, job.force)), order, "title", only)
        resumed, before = len(answers.rows), sum(row["forwards"] for row in answers.rows.values())
        try:
            drawn = _answer_missing(job, items, answers, traces)
        except KeyboardInterrupt:
            made = out.read_bytes().count(b"\n") if out.exists() else 0  # Ctrl-C may come between file and memory
            resumes = "; the same command resumes there" if job.prompts.out is not None else ""
            typer.echo(f"stopped after {made:,} of {counted(len(items), 'answer')}{resumes}", err=True)
            raise
        for kept in (answers, traces):
            if kept is not None:
                kept.arrange()
    if job.view is not None:
        _write_view(job, job.view, [drawn[item.key] for item in items[:MAX_ROWS]], len(items) - MAX_ROWS)
    rows = [answers.rows[item.key] for item in items]
    return Answers(rows, resumed, sum(row["forwards"] for row in rows) - before, time.monotonic() - began)


def _answer_missing(job: FileJob, items: list[_Item], answers: _Kept, traces: _Kept | None) -> Mapping[Key, FileLine]:
    """Decode what the files do not have. Returns the traces for a page: if no file keeps them, only those it shows."""
    drawn: dict[Key, FileLine] = {} if traces is None else traces.rows
    shown = {item.key for item in items[:MAX_ROWS]} if traces is None and job.view is not None else set()
    done = answers.rows.keys() - shown if traces is None else answers.rows.keys() & drawn.keys()
    missing, blank = [item for item in items if item.key not in done], list[str]()
    with item_bar("answering") as on_progress:
        for item, row, trace, notes in _results(job, missing):
            if traces is not None:
                traces.add(item.key, trace)
            elif item.key in shown:
                drawn[item.key] = trace
            answers.add(item.key, row)
            blank += notes
            on_progress(len(answers.rows), len(items))
    note_blank_gaps(blank)
    return drawn


def _items(job: FileJob) -> list[_Item]:
    """Every prompt under every sampler, read and tokenized."""
    settings, lines = job.settings, job.prompts.lines
    with item_bar("reading") as on_progress:  # a model that chooses the size of gaps takes time
        rows = list[Prompt]()
        for one in lines:
            rows.append(one.row(settings.denoiser, settings.chat, settings.length))
            on_progress(len(rows), len(lines))
    takes_length = any(row.is_continued for row in rows)
    require(settings.length is None or takes_length, "texts with gaps have no answer length: leave --length out.")
    advise(settings.model, settings.denoiser, [(one.prompt, row) for one, row in zip(lines, rows, strict=True)])
    return [
        _Item(one, row, name, sampler)
        for one, row in zip(lines, rows, strict=True)
        for name, sampler in settings.samplers.items()
    ]


def _about(job: FileJob) -> dict[str, object]:
    """Everything that the answers depend on. Runs of the same job share a file."""
    settings, model = job.settings, job.settings.model
    folder, weights = folder_of(model), list[str]()
    if folder is not None:
        files = sorted(folder.resolve().glob("*.safetensors"))
        weights = [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files]
    packed = settings.denoiser.about.get("weights")
    chosen = {name: sampler.to_dict() for name, sampler in settings.samplers.items()}
    return {
        "model": {
            **settings.denoiser.about,
            "model": model if folder is None or model in BUILT_IN else str(folder.resolve()),
            "weights": weights,
            "dtype": str(settings.denoiser.dtype).removeprefix("torch."),
            **({"weight_format": packed} if packed else {}),
        },
        **({"samplers": chosen} if job.compares else {"sampler": next(iter(chosen.values()))}),
        "seed": settings.seed,
        "length": settings.length or DEFAULT_LENGTH,
        "input": hashlib.sha256(job.prompts.content).hexdigest(),
        "options": {"chat": settings.chat, "whole": not settings.stop_at_eos},
        **({} if settings.constraint is None else {"constraint": settings.constraint.to_dict()}),
    }


def _results(job: FileJob, items: list[_Item]) -> Iterator[tuple[_Item, FileLine, FileLine, list[str]]]:
    """Each item with its answer, its trace's row (empty if nothing needs it) and notes, in the order in which they are
    finished. Each prompt has its own seed, so its answer does not depend on the prompts beside it."""

    def size(item: _Item) -> tuple[int, int]:
        return len(item.prompt.ids), item.prompt.gaps[0][0]

    settings, denoiser = job.settings, job.settings.denoiser
    requests = (  # the longest first: rows of similar length need little padding
        Request(
            canvas_of(denoiser, [item.prompt]),
            sampler_for(denoiser, item.prompt, item.sampler, settings.stop_at_eos),
            settings.seed + item.line.number if item.line.seed is None else item.line.seed,
            constraints_of(denoiser, [item.prompt], settings.constraint)[0],
            item,
        )
        for item in sorted(items, key=size, reverse=True)
    )
    for result in Engine[_Item](denoiser, max_rows=job.batch).run(requests):
        item = result.request.key
        if result.trace is None:
            raise UncodeError(f"{item.line.where}: {result.error}")
        text = answer_texts(denoiser, [item.prompt], result.trace)[0]
        row, trace = item.line.as_row(), FileLine()
        if job.compares or job.needs_traces:
            trace = result.trace.row(0, denoiser.tokenizer, id=item.line.id, title=item.name, text=text)
        facts = {"text": text, "forwards": len(result.trace), "seed": result.request.seed}
        if job.compares:
            facts = {"sampler": item.name} | facts | {"first_eos_step": first_eos_step(trace)}
        yield item, row | facts, trace, blank_gaps(denoiser, [item.prompt], result.trace)


def _write_view(job: FileJob, path: Path, traces: list[FileLine], left_out: int) -> None:
    """Write the page. A prompt is called by its id."""
    numbered = [(f"prompt {row['id']}" if isinstance(row["id"], int) else row["id"], row) for row in traces]
    prompts, names = len(job.prompts.lines), list(job.settings.samplers)
    title = f"{counted(prompts, 'prompt')}, {names[0] if len(names) == 1 else counted(len(names), 'sampler')}"
    write_view(path, [Trajectory(row["title"], row, problem=problem) for problem, row in numbered], title)
    if left_out > 0:
        typer.echo(f"the first {len(traces):,} answers are on the page, {left_out:,} are not.", err=True)
