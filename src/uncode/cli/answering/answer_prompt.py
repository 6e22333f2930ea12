"""Answering one prompt: live on a terminal, else printed at the end."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from ...core.denoiser import Denoiser
from ...core.moments import moments
from ...core.support.reprs import counted
from ...core.trace.trace import Trace
from ...generation.generate import start_decode
from ...generation.prompt import answer_texts, blank_gaps
from ...util.progress import item_bar
from ...view.page import Trajectory
from ...view.visible_text import EOS_SIGN
from .answer_file import DecodeSettings
from .drawing import STYLES, show_live
from .pages import write_view
from .prompt_notes import advise, note_blank_gaps
from .prompts import read_prompt


def answer_one(
    settings: DecodeSettings, prompt: str, trace_file: Path | None, view: Path | None, order: bool, as_json: bool
) -> None:
    """Decode one prompt, and print the answer, the order or the trace; write the trace and its page."""
    denoiser, (sampler,) = settings.denoiser, settings.samplers.values()
    row = read_prompt(denoiser, prompt, settings.chat, settings.length)
    run = start_decode(denoiser, [row], sampler, settings.seed, settings.stop_at_eos, settings.constraint)
    advise(settings.model, denoiser, [(prompt, row)])
    console = Console()
    live = console.is_terminal and not as_json
    if live:
        trace = show_live(run, denoiser, sampler.name, row.is_continued, console)
    else:
        done, length = 0, sum(stop - start for start, stop in row.gaps)
        with item_bar("decoding") as on_progress:
            for step in run:
                done += int(step.committed.sum())
                on_progress(done, length)
        trace = run.trace()
    if trace_file is not None:
        trace.save(trace_file, denoiser.tokenizer, force=True)  # the verb has checked --force
    text = answer_texts(denoiser, [row], trace)[0]
    note_blank_gaps(blank_gaps(denoiser, [row], trace))
    if view is not None:
        page = [Trajectory(sampler.name, trace.row(0, denoiser.tokenizer))]
        write_view(view, page, f"One prompt, {sampler.name}")
    if as_json:
        typer.echo(json.dumps(trace.row(0, denoiser.tokenizer, text=text)))
        return
    if not live:
        typer.echo(text)
    if order:
        _show_order(denoiser, trace)


def _show_order(denoiser: Denoiser, trace: Trace) -> None:
    """Print each token above the step that wrote it. A run of EOS tokens is one entry."""
    console = Console(highlight=False)
    name, forwards = trace.samplers[0].name, int(trace.forwards[0])
    console.print(f"\n[bold]{name}[/bold]: {counted(forwards, 'forward')}; the step at which each token was written")
    line, under = Text(), Text()
    for word, mark, moment in _entries(denoiser, trace):
        width = max(len(word), len(mark)) + 1
        if line.cell_len + width > console.width:
            console.print(line, under, sep="\n")
            line, under = Text(), Text()
        line.append(word, style=STYLES[moment]).append(" " * (width - len(word)))
        under.append(mark.ljust(width), style="dim")
    console.print(line, under, sep="\n")


def _entries(denoiser: Denoiser, trace: Trace) -> list[tuple[str, str, str]]:
    """The token, the step and the moment of every entry."""
    found: list[tuple[str, str, str]] = []
    steps, eos_steps = trace.commit_step[0].tolist(), list[int]()
    for token, step, moment in zip(trace.generated[0].tolist(), steps, moments(steps), strict=True):
        if token in denoiser.eos_ids:
            eos_steps.append(step)
            continue
        found += _eos_entry(eos_steps)
        eos_steps = []
        word = denoiser.tokenizer.decode([token]).replace("\n", "\\n")
        found.append((word, "·" if step < 0 else str(step), moment))
    return found + _eos_entry(eos_steps)


def _eos_entry(steps: list[int]) -> list[tuple[str, str, str]]:
    """An entry for adjacent EOS tokens: their number, and the first and last step that wrote one."""
    if not steps:
        return []
    written = sorted(step for step in steps if step >= 0)
    mark = "·" if not written else str(written[0]) if len(written) == 1 else f"{written[0]}-{written[-1]}"
    return [(EOS_SIGN if len(steps) == 1 else f"{EOS_SIGN} x {len(steps)}", mark, "filled")]
