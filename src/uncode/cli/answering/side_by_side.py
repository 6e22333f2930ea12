"""One prompt, or a file of prompts, under several samplers, drawn side by side."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich.box import SIMPLE
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from ...core.support.reprs import counted
from ...generation.generate import start_decode
from ...generation.prompt import answer_texts, blank_gaps
from ...util.progress import item_bar
from ...view.page import Trajectory
from ...view.row_summary import TraceLine, first_eos_step, summary
from .answer_file import DecodeSettings, FileJob, answer_file
from .drawing import cells_of, draw, legend
from .pages import write_view
from .prompt_notes import advise, note_blank_gaps
from .prompts import PromptLine, read_prompt

MIN_COLUMN_WIDTH = 34
"""If columns would be narrower, the samplers are printed below each other."""
MAX_SHOWN = 20
"""Prompts of a file in the table on a terminal."""


def compare(settings: DecodeSettings, prompt: str, view: Path | None, as_json: bool) -> None:
    """Decode the prompt with every sampler in one batch, and show the answers."""
    denoiser, samplers, count = settings.denoiser, settings.samplers, len(settings.samplers)
    row = read_prompt(denoiser, prompt, settings.chat, settings.length)
    each, seeds = list(samplers.values()), [settings.seed] * count
    run = start_decode(denoiser, [row] * count, each, seeds, settings.stop_at_eos, settings.constraint)
    advise(settings.model, denoiser, [(prompt, row)])
    with item_bar("decoding") as on_progress:
        for step in run:
            on_progress(count - len(step.rows) + len(step.finished), count)
    trace = run.trace()
    texts = answer_texts(denoiser, [row] * count, trace)
    note_blank_gaps(blank_gaps(denoiser, [row] * count, trace))
    rows = [trace.row(n, denoiser.tokenizer, title=name, text=texts[n]) for n, name in enumerate(samplers)]
    if view is not None:
        write_view(view, [Trajectory(row["title"], row) for row in rows], f"One prompt, {count} samplers")
    if as_json:
        typer.echo(json.dumps([row | {"first_end": first_eos_step(row)} for row in rows]))
        return
    _show(Console(highlight=False), rows)


def _show(console: Console, rows: list[TraceLine]) -> None:
    """Print the answers side by side if they fit, coloured by commit time. Without a terminal, print plain text."""
    if not console.is_terminal:
        for number, row in enumerate(rows):
            typer.echo("\n" * (number > 0) + f"{row['title']}: {'; '.join(summary(row))}\n{row['text']}")
        return
    columns = console.width // len(rows) - 3 >= MIN_COLUMN_WIDTH
    cells = [_cell(row, apart=columns) for row in rows]
    any_eos = any(cell.is_eos for row in rows for cell in cells_of(row))
    if columns:
        grid = Table(box=None, show_header=False, padding=(0, 3, 0, 0), pad_edge=False, expand=True)
        for _ in rows:
            grid.add_column(ratio=1, overflow="fold")
        grid.add_row(*cells)
        console.print(grid)
    else:
        console.print(*cells, sep="\n")
    console.print(legend(*["eos"] * any_eos))


def _cell(row: TraceLine, apart: bool) -> Group:
    """One sampler: its name, a summary of its decode, its text."""
    clauses = [Text(clause, style="dim") for clause in summary(row)]
    facts = clauses if apart else [Text("; ", style="dim").join(clauses)]
    return Group(Text(row["title"], style="bold"), *facts, Text(), draw(cells_of(row)), Text())


def compare_file(job: FileJob, as_json: bool) -> None:
    """Decode every prompt with every sampler, and show the answers."""
    found = answer_file(job)
    if as_json:
        typer.echo(json.dumps(found.rows))
        return
    lines, names = job.prompts.lines, list(job.settings.samplers)
    count = len(names)
    each = [(line, found.rows[count * at : count * (at + 1)]) for at, line in enumerate(lines)]
    console = Console(highlight=False)
    if console.is_terminal and console.width // (count + 1) >= MIN_COLUMN_WIDTH // 2:
        console.print(_table(each[:MAX_SHOWN], names))
    else:
        for line, rows in each[: MAX_SHOWN if console.is_terminal else None]:
            typer.echo(_name(line))
            for row in rows:
                typer.echo(f"  {row['sampler']}, {counted(row['forwards'], 'forward')}: {_one_line(row['text'])}")
    if console.is_terminal and len(each) > MAX_SHOWN:
        where = job.prompts.out or "them with --out FILE or --view FILE"
        typer.echo(f"... and {len(each) - MAX_SHOWN} more prompts: see {where}.")
    counts = {name: [row["forwards"] for row in found.rows if row["sampler"] == name] for name in names}
    means = ", ".join(f"{name} {sum(of) / len(of):.1f}" for name, of in counts.items())
    same = sum(len({row["text"] for row in rows}) == 1 for _, rows in each)
    typer.echo(f"\nforwards per answer: {means}; the answers are the same on {same} of {len(each)} prompts.")
    found.report(job.prompts, as_json=False)


def _table(each: list[tuple[PromptLine, list[TraceLine]]], names: list[str]) -> Table:
    """A row for each prompt, a column for each sampler."""
    table = Table(box=SIMPLE, show_lines=True, expand=True, pad_edge=False)
    for name in ("prompt", *names):
        table.add_column(name, ratio=1, overflow="fold")
    for line, rows in each:
        cells = [
            Text(f"{counted(row['forwards'], 'forward')}\n", style="dim").append(_one_line(row["text"]), "not dim")
            for row in rows
        ]
        table.add_row(Text(_name(line)), *cells)
    return table


def _name(line: PromptLine) -> str:
    """The id of a prompt and how it begins."""
    text = line.prompt if isinstance(line.prompt, str) else line.prompt[-1]["content"]
    return f"{line.id}: {_one_line(text, 60)}"


def _one_line(text: str, longest: int = 200) -> str:
    words = " ".join(text.split())
    return words if len(words) <= longest else f"{words[: longest - 3]}..."
