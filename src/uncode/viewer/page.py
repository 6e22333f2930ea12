"""Trajectories as one HTML page. It loads nothing from the network, and its text needs no JavaScript."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..core.errors import require
from ..core.row_record import FILLED, GIVEN
from ..core.support.write import write_whole
from .moments import Row, eos_ids_of, moments, summary

EOS_SIGN, BREAK = "∎", "↵"


@dataclass(frozen=True)
class Verdict:
    """The verdict of a grader on an answer."""

    right: bool
    reason: str = ""


@dataclass(frozen=True)
class Trajectory:
    """A row of a trace with its texts (`trace.row(r, tokenizer)`), and its title."""

    title: str
    row: Row
    verdict: Verdict | None = None


def write_page(path: str | Path, trajectories: Sequence[Trajectory], title: str) -> None:
    """Write the page atomically."""
    write_whole(Path(path), page(trajectories, title))


def page(trajectories: Sequence[Trajectory], title: str) -> str:
    """The page as HTML. Tokens are coloured by commit time, and each trajectory can be replayed step by step."""
    require(len(trajectories) > 0, "there is no trajectory to show: give at least one.")
    for one in trajectories:
        with_texts = "generated_texts" in one.row
        require(with_texts, f"the trace of '{one.title}' has no texts: write it with its tokenizer.")
    prompts = [one.row["prompt_text"] for one in trajectories]
    shared = len(set(prompts)) == 1
    sections = [_section(number, one, shown=not shared) for number, one in enumerate(trajectories)]
    breaks = any("\n" in text for one in trajectories for text in one.row["generated_texts"])
    fills = any(FILLED in one.row["commit_step"] for one in trajectories)
    parts = {
        "title": escape(title),
        "prompt": _prompt(prompts[0]) if shared else "",
        "signs": (", grey where filled in without a forward" if fills else "")
        + (f", {BREAK} line break" if breaks else ""),
        "sections": "\n".join(sections),
        "steps": _json_for_html([_replay(one.row) for one in trajectories]),
    }
    template = (files(__package__) / "page.html").read_text(encoding="utf-8")
    return re.sub(
        r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template
    )  # one pass, because texts may contain {{...}} too


def _json_for_html(data: Any) -> str:
    """JSON that is safe inside HTML."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _section(number: int, one: Trajectory, shown: bool) -> str:
    row, forwards = one.row, one.row["forwards"]
    verdict = _verdict(one.verdict) if one.verdict else ""
    name = escape(one.title, quote=True)
    return f"""<section id="t{number}">
<header><h2>{name}</h2>{verdict}</header>
<p class="summary">{escape("; ".join(summary(row)))}</p>
{_prompt(row["prompt_text"]) if shown else ""}<p class="text">{_tokens(row)}</p>
<div class="replay"><button type="button" aria-label="Play {name}">Play</button>
<input type="range" min="0" max="{forwards}" value="{forwards}" aria-label="Steps of {name}"><output></output></div>
</section>"""


def _verdict(verdict: Verdict) -> str:
    word = "right" if verdict.right else "wrong"
    reason = f": {escape(verdict.reason)}" if verdict.reason else ""
    return f'<span class="verdict {word}">{"✓" if verdict.right else "✗"} {word}{reason}</span>'


def _prompt(text: str) -> str:
    return f'<div class="prompt">prompt<pre>{escape(text)}</pre></div>\n' if text else ""


def _shown(text: str, token: int, row: Row) -> str:
    """The visible text of a token, without the blanks before it. EOS is one sign, and line breaks are visible."""
    return EOS_SIGN if token in eos_ids_of(row) else text.lstrip(" ").replace("\r", "").replace("\n", f"{BREAK}\n")


def _tokens(row: Row) -> str:
    """One span per offset, in order, since the script finds them by their number. Blanks are outside the spans."""
    spans = []
    for offset, moment in enumerate(moments(row["commit_step"])):
        text = row["generated_texts"][offset]
        blanks = " " * (len(text) - len(text.lstrip(" ")))
        word, hover = _shown(text, row["generated_ids"][offset], row), escape(_hover(row, offset), quote=True)
        blanks += "<wbr>" if word == EOS_SIGN else ""  # a run of EOS may break after the word before
        spans.append(f'{blanks}<span class="{moment}" title="{hover}">{escape(word)}</span>')
    return "".join(spans)


def _hover(row: Row, offset: int) -> str:
    step, logp, entropy = row["commit_step"][offset], row["logp"][offset], row["entropy"][offset]
    text = f"{json.dumps(row['generated_texts'][offset], ensure_ascii=False)}, offset {offset}: "
    if step < 0:
        return text + {GIVEN: "given", FILLED: "filled by the stop rule"}[step]
    facts = [f"step {step}"]
    facts += [] if logp is None else [f"probability {math.exp(logp):.3g}"]
    facts += [] if entropy is None else [f"entropy {entropy:.3g} nats"]
    return text + ", ".join(facts)


def _replay(row: Row) -> dict[str, Any]:
    """The data for the script: the masked offsets, and all writes in order."""
    steps = row["commit_step"]
    if "events" in row:
        texts = row.get("event_texts", [""] * len(row["events"]))
        events = zip(row["events"], texts, strict=True)
        writes = [[step, at, _shown(text, token, row) if token >= 0 else None] for (step, at, token), text in events]
    else:
        tokens = zip(steps, row["generated_texts"], row["generated_ids"], strict=True)
        writes_by_offset = [[step, at, _shown(text, token, row)] for at, (step, text, token) in enumerate(tokens)]
        writes = sorted(write for write in writes_by_offset if write[0] >= 0)
    masked = [at for at, token in enumerate(row["canvas_ids"]) if token == row["mask_id"]]
    return {"forwards": row["forwards"], "masked": masked, "writes": writes}
