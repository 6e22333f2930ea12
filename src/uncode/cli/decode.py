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

from ..backbones.guidance import Guided
from ..backbones.load import BUILT_IN, load
from ..core.decode import Steps
from ..core.denoiser import Denoiser
from ..core.errors import require
from ..core.trace import Trace
from ..generate import begin
from ..prompt import Messages, Prompt, answers, has_gaps, read_prompts
from .options import Device, Dtype, Frequency, Json, Model, Revision, SamplerName, Settings, build_sampler
from .progress import writable

USUAL_LENGTH = 24


def command(
    prompt: Annotated[str, typer.Argument(help="The prompt, or a text with gaps (<mask:3>); - reads standard input.")],
    model: Model = "toy",
    sampler: SamplerName = "uncode",
    settings: Settings = None,
    frequency: Frequency = None,
    length: Annotated[int | None, typer.Option(help="Tokens to generate after the prompt.  [default: 24]")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all randomness.")] = 0,
    chat: Annotated[bool, typer.Option("--chat", help="Send the prompt as a user's message, by the template.")] = False,
    guidance: Annotated[float, typer.Option(help="Scale of classifier-free guidance; 0 is none.")] = 0.0,
    whole: Annotated[bool, typer.Option("--whole", help="Fill every mask; do not stop at the end token.")] = False,
    order: Annotated[bool, typer.Option("--order", help="Show in which order the tokens were written.")] = False,
    device: Device = None,
    dtype: Dtype = None,
    revision: Revision = None,
    out: Annotated[Path | None, typer.Option(help="Write the trace to this file (JSON lines).")] = None,
    as_json: Json = False,
) -> None:
    """Answer a prompt or fill the gaps in a text and, if asked, show in which order it was written.

    Examples:

      uncode decode "add 3 4 5" --set special=neutral --order

      uncode decode "add 3 4 5 first 3 + 4 = <mask:1> , then <mask:3> = <mask:2>"

      uncode decode "add 3 4 5" --set rate=0.5 --out trace.jsonl

      uncode decode "What is 12 * 7?" --model GSAI-ML/LLaDA-8B-Instruct --chat --sampler confidence --length 64
    """
    if out is not None:
        writable(out)
    recipe = None if model in BUILT_IN else build_sampler(sampler, settings, frequency, own=None)  # before gigabytes
    denoiser = load(model, device=device, dtype=dtype, revision=revision)
    recipe = recipe or build_sampler(sampler, settings, frequency, own=getattr(denoiser, "frequency", None))
    if guidance:
        denoiser = Guided(denoiser, guidance)
    text = sys.stdin.read() if prompt == "-" else prompt
    require(bool(text.strip()), "the prompt is empty.")
    rows = _read(denoiser, [{"role": "user", "content": text}] if chat else text, length)
    run = begin(denoiser, rows, recipe, seed, stop_at_eos=not whole)
    trace = _with_progress(run, sum(stop - start for start, stop in rows[0].gaps))
    if out is not None:
        trace.save(out, denoiser.tokenizer)
    if as_json:
        typer.echo(json.dumps(trace.row(0, denoiser.tokenizer, text=answers(denoiser, rows, trace)[0])))
        return
    typer.echo(answers(denoiser, rows, trace)[0])
    if order:
        _show_order(denoiser, trace)


def _read(denoiser: Denoiser, prompt: str | Messages, length: int | None) -> list[Prompt]:
    """The prompt's row; a plain prompt without a length gets the usual one."""
    if length is None and (not isinstance(prompt, str) or not has_gaps(denoiser, prompt)):
        length = USUAL_LENGTH
    return read_prompts(denoiser, [prompt], length)


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
