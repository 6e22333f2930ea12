"""The live view of a decode in the terminal."""

from __future__ import annotations

import time

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from ...core.denoiser import Denoiser
from ...core.moments import moments
from ...core.stepper.advance import Step
from ...core.stepper.decode import Steps
from ...core.support.reprs import counted
from ...core.trace.row_record import OPEN
from ...core.trace.texts import token_texts
from ...core.trace.trace import Trace
from ...view.row_summary import forwards
from .drawing import Cell, draw, legend

MIN_FRAME_SECONDS = 1 / 20
"""A small model takes steps faster than eyes can follow."""


def show_live(run: Steps, denoiser: Denoiser, name: str, hides_prompt: bool, console: Console) -> Trace:
    """Run the decode of one row and show its steps. The last state stays. `hides_prompt` leaves the prompt out."""
    last = 0.0
    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        for step in run:
            if time.monotonic() - last >= MIN_FRAME_SECONDS or step.finished:
                live.update(_picture(step, run, denoiser, name, hides_prompt), refresh=True)
                last = time.monotonic()
    return run.trace()


def _picture(step: Step, run: Steps, denoiser: Denoiser, name: str, hides_prompt: bool) -> Group:
    start, committed = run.state.batch.start, run.state.record.commit_step[0].tolist()
    ids, kinds = step.tokens[0].tolist(), moments(committed)
    drafts = zip(step.offsets[0].tolist(), step.decision.belief.token[0].tolist(), strict=True)
    for offset, token in drafts:
        if committed[offset] == OPEN:
            ids[start + offset], kinds[offset] = token, "draft"
    kinds = ["given"] * start + kinds
    valid = run.state.batch.valid[0].tolist()
    shown = [at for at, real in enumerate(valid) if real and (at >= start or not hides_prompt)]
    texts = token_texts(denoiser.tokenizer, [ids[at] for at in shown])
    are_eos = [ids[at] in denoiser.eos_ids for at in shown]
    cells = [Cell(text, kinds[at], is_eos) for text, at, is_eos in zip(texts, shown, are_eos, strict=True)]
    left = committed.count(OPEN)
    taken = step.index + 1 + sum(run.state.record.probes[0])
    head = Text(name, style="bold").append(f"  {forwards(taken)}", style="not bold")
    head.append(f", {counted(left, 'mask')} left" if left else "", style="not bold dim")
    signs = [*(["draft", "masked"] if left else []), *(["eos"] if any(are_eos) else [])]
    return Group(head, Padding(draw(cells), (1, 2)), legend(*signs))
