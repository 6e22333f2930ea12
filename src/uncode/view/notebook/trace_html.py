"""A trace as HTML for notebooks: the generated tokens of each row, shaded by commit time."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from ...core.moments import EARLY, LATE, MIDDLE, MOMENTS, moments
from ...core.support.reprs import counted
from ...core.trace.texts import token_texts
from .element import DIM, Html, element

if TYPE_CHECKING:
    from ...core.trace.trace import Trace

MAX_ROWS, MAX_TOKENS = 8, 512
"""Rows of a trace and tokens of a row that are drawn, because a notebook stores what it draws."""
EOS_SIGN, BREAK = "∎", "↵"
STYLES = {
    EARLY: "background:rgba(250,204,21,.4);font-weight:600",
    MIDDLE: "background:rgba(6,148,190,.35)",
    LATE: "background:rgba(147,51,234,.4);text-decoration:underline",
    "filled": DIM,
    "given": "",
}
"""Bold, plain and underlined, for readers who do not see colours."""
_BOX = "border:1px solid rgba(128,128,128,.35);border-radius:6px;padding:.5em .8em;margin:.2em 0;color:inherit"
_TOKENS = "font-family:monospace;line-height:1.7;white-space:pre-wrap;overflow-wrap:anywhere;margin:.1em 0 .5em"
_NOTE = "font-size:85%;" + DIM


def trace_html(trace: Trace, tokenizer: Any = None) -> Html:
    """The first rows of the trace with a summary and a legend. It says how many rows and tokens are left out."""
    rows = range(min(len(trace.tokens), MAX_ROWS))
    drawn = "".join(_row(trace, row, tokenizer) for row in rows)
    rest = len(trace.tokens) - len(rows)
    more = element("div", f"… {counted(rest, 'row')} more, not drawn", _NOTE) if rest else ""
    title = element("div", f"{element('b', 'Trace')} {escape(summary(trace))}")
    return Html(element("div", title + _legend(tokenizer is not None) + drawn + more, _BOX))


def summary(trace: Trace) -> str:
    """The shape of the trace and the names of its samplers, as text."""
    rows, span = trace.commit_step.shape
    names = ", ".join(dict.fromkeys(sampler.name for sampler in trace.samplers))
    return f"{counted(rows, 'row')} of {counted(span, 'token')}, {counted(len(trace), 'forward')}, {names}"


def _legend(has_texts: bool) -> str:
    shades = " ".join(element("span", f"&nbsp;{moment}&nbsp;", STYLES[moment]) for moment in MOMENTS)
    signs = f"{EOS_SIGN} EOS, dim where filled without a forward, unshaded where given"
    signs += f", {BREAK} line break" if has_texts else ", numbers are token ids (to_html(tokenizer) shows texts)"
    return element("div", f"committed {shades} {element('span', signs, DIM)}", "font-size:85%;margin:.2em 0 .5em")


def _row(trace: Trace, row: int, tokenizer: Any) -> str:
    length = int(trace.canvas.lengths[row])
    prompt = int(trace.canvas.valid[row, : trace.canvas.start].sum())
    forwards = counted(int(trace.forwards[row]), "forward")
    label = f"row {row}: {escape(trace.samplers[row].name)}, {forwards}, prompt of {counted(prompt, 'token')}"
    rest = length - MAX_TOKENS
    more = element("span", f" … {counted(rest, 'token')} more, not drawn", DIM) if rest > 0 else ""
    return element("div", label, _NOTE) + element("div", _tokens(trace, row, length, tokenizer) + more, _TOKENS)


def _tokens(trace: Trace, row: int, length: int, tokenizer: Any) -> str:
    """A span for each token, with a tooltip. Blanks before a word are left unshaded, so that words stand apart."""
    ids = trace.generated[row, : min(length, MAX_TOKENS)].tolist()
    texts = [f" {token}" for token in ids] if tokenizer is None else token_texts(tokenizer, ids)
    steps, entropies = trace.commit_step[row, :length].tolist(), trace.entropy[row].tolist()
    eos_ids = {*trace.header["special_ids"]} - {trace.canvas.mask_id}
    drawn = []
    for offset, (token, text, moment) in enumerate(zip(ids, texts, moments(steps), strict=False)):
        is_eos = token in eos_ids
        word = EOS_SIGN if is_eos else text.lstrip(" ") or text
        blanks = "" if is_eos else text[: len(text) - len(word)]
        how = f"step {steps[offset]}, entropy {entropies[offset]:.2f}" if steps[offset] >= 0 else moment
        style = ";".join(filter(None, (STYLES[moment], DIM if is_eos and moment in MOMENTS else "")))
        written = escape(word.replace("\r", "")).replace("\n", f"{BREAK}\n")
        drawn.append(blanks + element("span", written, style, f"offset {offset}, {how}"))
    return "".join(drawn).lstrip(" ")
