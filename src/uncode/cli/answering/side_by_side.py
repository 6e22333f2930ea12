"""One prompt under several samplers, drawn side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from ...core.pieces.policy import Sampler
from ...generation import start_decode
from ...prompt import answer_texts
from ...viewer.page import Trajectory
from ...viewer.row_summary import first_eos_step, summary
from ..progress import item_bar
from .answer_file import DecodeSettings
from .drawing import cells_of, draw, legend
from .prompt_notes import advise
from .prompts import read_prompt
from .view_file import write_view

MIN_COLUMN_WIDTH = 34
"""If columns would be narrower, the samplers are printed below each other."""


def compare(
    settings: DecodeSettings, prompt: str, model: str, samplers: dict[str, Sampler], view: Path | None, as_json: bool
) -> None:
    """Decode the prompt with every sampler in one batch, and show the answers."""
    denoiser, count = settings.denoiser, len(samplers)
    row = read_prompt(denoiser, prompt, settings.chat, settings.length)
    run = start_decode(denoiser, [row] * count, list(samplers.values()), [settings.seed] * count, settings.stop_at_eos)
    advise(model, denoiser, [(prompt, row)])
    with item_bar("decoding") as on_progress:
        for step in run:
            on_progress(count - len(step.rows) + len(step.finished), count)
    trace = run.trace()
    texts = answer_texts(denoiser, [row] * count, trace)
    rows = [trace.row(n, denoiser.tokenizer, title=name, text=texts[n]) for n, name in enumerate(samplers)]
    if view is not None:
        write_view(view, [Trajectory(row["title"], row) for row in rows], f"One prompt, {count} samplers")
    if as_json:
        typer.echo(json.dumps([row | {"first_end": first_eos_step(row)} for row in rows]))
        return
    _show(Console(highlight=False), rows)


def _show(console: Console, rows: list[dict[str, Any]]) -> None:
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


def _cell(row: dict[str, Any], apart: bool) -> Group:
    """One sampler: its name, a summary of its decode, its text."""
    clauses = [Text(clause, style="dim") for clause in summary(row)]
    facts = clauses if apart else [Text("; ", style="dim").join(clauses)]
    return Group(Text(row["title"], style="bold"), *facts, Text(), draw(cells_of(row)), Text())
