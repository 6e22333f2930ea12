"""`uncode decode`: one prompt, one answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from ..backbones.load import load
from ..core.canvas import Canvas
from ..core.decode import Steps, steps
from ..core.denoiser import Denoiser
from ..core.errors import require
from ..core.stop import AfterEos
from ..core.trace import Trace
from ..generate import encode, texts
from .options import Frequency, Json, Model, SamplerName, Settings, build_sampler


def command(
    prompt: Annotated[str, typer.Argument(help="The prompt; - reads it from standard input.")],
    model: Model = "toy",
    sampler: SamplerName = "uncode",
    settings: Settings = None,
    frequency: Frequency = None,
    length: Annotated[int, typer.Option(help="Tokens to generate.")] = 24,
    seed: Annotated[int, typer.Option(help="Seed of all randomness.")] = 0,
    whole: Annotated[bool, typer.Option("--whole", help="Fill every mask; do not stop at the end token.")] = False,
    order: Annotated[bool, typer.Option("--order", help="Show in which order the tokens were written.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the trace to this file (JSON lines).")] = None,
    as_json: Json = False,
) -> None:
    """Answer a prompt and, if asked, show in which order the answer was written.

    Examples:

      uncode decode "add 3 4 5" --order

      uncode decode "add 3 4 5" --sampler confidence --order

      uncode decode "add 3 4 5" --set rate=0.5 --out trace.jsonl
    """
    if out is not None:
        require(out.parent.is_dir(), f"the folder '{out.parent}' does not exist.")
        require(not out.is_dir(), f"'{out}' is a folder; --out takes a file.")
    denoiser = load(model)
    recipe = build_sampler(sampler, settings, frequency, own=getattr(denoiser, "frequency", None))
    if not whole and denoiser.eos_ids:
        recipe = recipe.stopping(AfterEos())
    text = sys.stdin.read() if prompt == "-" else prompt
    require(bool(text.strip()), "the prompt is empty.")
    canvas = Canvas.after_prompt([encode(denoiser, text)], length=length, mask_id=denoiser.mask_id)
    trace = _with_progress(steps(denoiser, canvas, recipe, seed), length)
    if out is not None:
        trace.save(out, denoiser.tokenizer)
    if as_json:
        typer.echo(json.dumps(trace.row(0, denoiser.tokenizer)))
        return
    typer.echo(texts(denoiser, trace)[0])
    if order:
        _show_order(denoiser, trace)


def _with_progress(run: Steps, length: int) -> Trace:
    """Drain the decode; a bar on standard error once it is worth one."""
    console = Console(stderr=True)
    columns = (TextColumn("decoding"), BarColumn(), TextColumn("{task.completed}/{task.total}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("decoding", total=length)
        for step in run:
            bar.advance(task, int(step.committed.sum()))
    return run.trace()


def _show_order(denoiser: Denoiser, trace: Trace) -> None:
    """Each token over the step it was written at; early tokens are bright."""
    console = Console()
    name, forwards = trace.samplers[0].name, int(trace.forwards[0])
    console.print(f"\n[bold]{name}[/bold]: {forwards} forwards; the step at which each token was written")
    line, under = Text(), Text()
    for token, step in zip(trace.generated[0].tolist(), trace.commit_step[0].tolist(), strict=True):
        word = denoiser.tokenizer.decode([token]).replace("\n", "\\n")
        mark = "·" if step < 0 else str(step)
        width = max(len(word), len(mark)) + 1
        if line.cell_len + width > console.width:
            console.print(line, under, sep="\n")
            line, under = Text(), Text()
        line.append(word.ljust(width), style=_shade(step, forwards))
        under.append(mark.ljust(width), style="dim")
    console.print(line, under, sep="\n")


def _shade(step: int, forwards: int) -> str:
    if step < 0:
        return "dim"
    part = step / max(forwards - 1, 1)
    return f"rgb({int(255 - 120 * part)},{int(190 - 60 * part)},{int(60 + 180 * part)})"
