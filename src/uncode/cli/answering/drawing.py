"""Drawing a canvas in the terminal, also live: masks, drafts, and tokens coloured by commit time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from ...core.denoiser import Denoiser
from ...core.moments import EARLY, LATE, MIDDLE, moments
from ...core.stepper.advance import Step
from ...core.stepper.decode import Steps
from ...core.support.reprs import counted
from ...core.trace.row_record import OPEN
from ...core.trace.texts import token_texts
from ...core.trace.trace import Trace
from ...view.row_summary import TraceLine, eos_ids_of
from ...view.visible_text import BREAK, EOS_SIGN

STYLES = {
    EARLY: "bold #1a1a1a on #fde047",
    MIDDLE: "#ffffff on #0e7490",
    LATE: "underline #ffffff on #6b2189",
    "filled": "dim",
    "given": "",
    "masked": "dim",
    "draft": "dim italic",
}
"""Backgrounds go from light to dark, for readers who do not see colours. Without colours: bold, plain, underlined."""
MASK = "·"
MIN_FRAME_SECONDS = 1 / 20
"""A small model takes steps faster than eyes can follow."""


class DrawnToken(NamedTuple):
    """A drawn token of a canvas."""

    text: str
    kind: str
    """A key of STYLES."""
    is_eos: bool = False


def draw(cells: Sequence[DrawnToken]) -> Text:
    """The tokens as running text. Each EOS token is one character, since an answer may end in hundreds of them."""
    drawn = Text()
    for cell in cells:
        word = cell.text.lstrip(" ")
        drawn.append(cell.text[: len(cell.text) - len(word)] if drawn else "")  # blanks between words are not coloured
        sign = EOS_SIGN if cell.is_eos else MASK if cell.kind == "masked" else ""
        drawn.append(sign or word.replace("\r", "").replace("\n", f"{BREAK}\n"), style=STYLES[cell.kind])
    return drawn


def cells_of(row: TraceLine) -> list[DrawnToken]:
    """The generated tokens of a finished row."""
    eos_ids = eos_ids_of(row)
    tokens = zip(row["generated_texts"], moments(row["commit_step"]), row["generated_ids"], strict=True)
    return [DrawnToken(text, moment, token in eos_ids) for text, moment, token in tokens]


def merge_eos(cells: Sequence[DrawnToken]) -> list[DrawnToken]:
    """The cells with each run of EOS tokens merged into one, for output without colours."""
    found = list[DrawnToken]()
    for is_eos, run in groupby(cells, key=lambda cell: cell.is_eos):
        same = list(run)
        found += [DrawnToken(f" {EOS_SIGN} x {len(same)}", "given")] if is_eos else same
    return found


def legend(*kinds: str) -> Text:
    """The legend of the colours and signs."""
    drawn = Text().append("committed", style="dim")
    for moment in (EARLY, MIDDLE, LATE):
        drawn.append(" ").append(moment, style=STYLES[moment])
    for kind in kinds:
        sign = {"masked": f"{MASK} masked", "eos": f"{EOS_SIGN} EOS", "draft": "draft"}[kind]
        drawn.append("   ").append(sign, style=STYLES.get(kind, "dim"))
    return drawn


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
    cells = [DrawnToken(text, kinds[at], is_eos) for text, at, is_eos in zip(texts, shown, are_eos, strict=True)]
    left = committed.count(OPEN)
    taken = step.index + 1 + sum(run.state.record.probes[0])
    head = Text(name, style="bold").append(f"  {counted(taken, 'forward')}", style="not bold")
    head.append(f", {counted(left, 'mask')} left" if left else "", style="not bold dim")
    signs = [*(["draft", "masked"] if left else []), *(["eos"] if any(are_eos) else [])]
    return Group(head, Padding(draw(cells), (1, 2)), legend(*signs))
