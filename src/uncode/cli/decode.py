"""`uncode decode`: one prompt, one answer; or many, from a file to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ..core.decode import Steps
from ..core.denoiser import Denoiser
from ..core.errors import require
from ..core.trace import Trace
from ..generate import begin
from ..prompt import answers
from ..viewer.moments import moments
from .drawing import STYLES
from .live import watch
from .many import Way, answer_file
from .options import (
    Chat,
    Device,
    Dtype,
    Frequency,
    Guidance,
    Json,
    Length,
    Model,
    ModelChoice,
    Revision,
    SamplerName,
    Seed,
    Settings,
    Whole,
    build_sampler,
)
from .progress import counted, writable
from .prompts import read_file, read_prompt, typed

USUAL_BATCH = 8
Option = typer.Option
PromptText = Annotated[
    str | None,
    typer.Argument(metavar="PROMPT", help="The prompt, or a text with gaps (<mask:3>); - reads standard input."),
]
Order = Annotated[bool, Option("--order", help="Show in which order the tokens were written.")]
TraceFile = Annotated[Path | None, Option("--trace", metavar="FILE", help="Write the trace there (JSON lines).")]
Input = Annotated[Path | None, Option("--input", metavar="FILE", help="Many prompts instead of one (JSON lines).")]
Out = Annotated[Path | None, Option(metavar="FILE", help="Where the answers to --input go (JSON lines).")]
Batch = Annotated[int | None, Option(min=1, help=f"Prompts of --input decoded at a time.  [default: {USUAL_BATCH}]")]


def command(
    prompt: PromptText = None,
    model: Model = "tiny",
    sampler: SamplerName = "uncode",
    settings: Settings = None,
    frequency: Frequency = None,
    length: Length = None,
    seed: Seed = 0,
    chat: Chat = False,
    guidance: Guidance = 0.0,
    whole: Whole = False,
    order: Order = False,
    device: Device = None,
    dtype: Dtype = None,
    revision: Revision = None,
    trace: TraceFile = None,
    source: Input = None,
    out: Out = None,
    batch: Batch = None,
    as_json: Json = False,
) -> None:
    """Answer a prompt, fill the gaps in a text, or answer a file of prompts.

    A line of --input is {"prompt": "..."}, {"messages": [...]} or a JSON string; it may have an id, a length and a
    seed. Prompt number n, counted from 0, takes the seed plus n. A run that was stopped goes on with the same command.

    Examples:

      uncode tasks mini_story --example 3 | uncode decode - --order

      uncode tasks mini_sudoku | uncode decode - --set rate=0 --set special=neutral --trace trace.jsonl

      uncode decode "add 3 4 5 first 3 + 4 = <mask:1> , then <mask:3> = <mask:2>" --model toy

      uncode decode --input prompts.jsonl --out answers.jsonl --batch 16

      uncode decode "What is 12 * 7?" --model GSAI-ML/LLaDA-8B-Instruct --chat --sampler confidence --length 64
    """
    asked = None
    if source is None:
        require(out is None, "--out takes the answers to --input FILE; the trace of one prompt goes to --trace FILE.")
        require(batch is None, "--batch is for the prompts of --input FILE.")
        require(prompt is not None, "there is nothing to decode: give a prompt, or --input FILE and --out FILE.")
    else:
        require(prompt is None, "give a prompt or --input FILE, not both.")
        require(trace is None and not order, "--trace and --order are for one prompt: leave them out with --input.")
        asked = read_file(source, out)
    if trace is not None:
        writable(trace, "--trace")
    choice = ModelChoice(model, device, dtype, revision, guidance)
    denoiser, (recipe,) = choice.load(lambda own: [build_sampler(choice.recipe(sampler), settings, frequency, own)])
    way = Way(denoiser, recipe, seed, length, chat, stop_at_eos=not whole)
    if asked is not None:
        answer_file(way, asked, model, batch or USUAL_BATCH, as_json)
    else:
        _answer_one(way, typed(str(prompt)), trace, order, as_json)


def _answer_one(way: Way, prompt: str, trace_file: Path | None, order: bool, as_json: bool) -> None:
    denoiser = way.denoiser
    row = read_prompt(denoiser, prompt, way.chat, way.length)
    run = begin(denoiser, [row], way.sampler, way.seed, way.stop_at_eos)
    console = Console()
    live = console.is_terminal and not as_json
    if live:
        trace = watch(run, denoiser, way.sampler.name, row.follows, console)
    else:
        trace = _with_progress(run, sum(stop - start for start, stop in row.gaps))
    if trace_file is not None:
        trace.save(trace_file, denoiser.tokenizer)
    text = answers(denoiser, [row], trace)[0]
    if as_json:
        typer.echo(json.dumps(trace.row(0, denoiser.tokenizer, text=text)))
        return
    if not live:
        typer.echo(text)
    if order:
        _show_order(denoiser, trace)


def _with_progress(run: Steps, length: int) -> Trace:
    """Drain the decode; a bar on standard error once it is worth one."""
    with counted("decoding") as watch:
        done = 0
        for step in run:
            done += int(step.committed.sum())
            watch(done, length)
    return run.trace()


def _show_order(denoiser: Denoiser, trace: Trace) -> None:
    """Each token over the step it was written at."""
    console = Console(highlight=False)
    name, forwards = trace.samplers[0].name, int(trace.forwards[0])
    console.print(f"\n[bold]{name}[/bold]: {forwards} forwards; the step at which each token was written")
    line, under = Text(), Text()
    steps = trace.commit_step[0].tolist()
    for token, step, moment in zip(trace.generated[0].tolist(), steps, moments(steps), strict=True):
        word = denoiser.tokenizer.decode([token]).replace("\n", "\\n")
        mark = "·" if step < 0 else str(step)
        width = max(len(word), len(mark)) + 1
        if line.cell_len + width > console.width:
            console.print(line, under, sep="\n")
            line, under = Text(), Text()
        line.append(word, style=STYLES[moment]).append(" " * (width - len(word)))
        under.append(mark.ljust(width), style="dim")
    console.print(line, under, sep="\n")
