"""What a notebook draws: traces and samplers as HTML, with inline styles in colours that suit light and dark pages.

A trace is drawn in the viewer where scripts may run, else as tokens shaded by commit time. A sampler is a nested list
of its pieces with all their settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, fields
from html import escape
from typing import Any

from ..core.moments import EARLY, LATE, MIDDLE, MOMENTS, moments
from ..core.pieces.piece import Piece
from ..core.pieces.policy import Sampler
from ..core.pieces.tables import Table
from ..core.support.reprs import counted
from ..core.trace.texts import token_texts
from ..core.trace.trace import Trace
from .page import Trajectory, page
from .visible_text import BREAK, EOS_SIGN

DIM = "opacity:.6"
MAX_ROWS, MAX_TOKENS = 8, 512
"""Rows of a trace and tokens of a row that are drawn, because a notebook stores what it draws."""
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
CLASS = "uncode-static"
_STYLE = f".{CLASS}:has(+ iframe) {{ display: none; }}"
"""Hides the static tokens where the viewer follows them. A site that removes frames, as GitHub does, shows them."""
_FRAME = "width:100%;height:36rem;border:1px solid rgba(128,128,128,.35);border-radius:6px;resize:vertical"
MAX_ITEMS = 8
"""Items of a setting that are shown. A list of trivial tokens may have hundreds."""
_LIST = "margin:0;padding-left:1.4em;list-style:none;border-left:1px solid rgba(128,128,128,.35)"


class Html(str):
    """HTML that a notebook draws when it is the last line of a cell."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def element(tag: str, content: str, style: str = "", title: str = "") -> str:
    """An element around `content`, which is HTML already. `style` and `title` are escaped here."""
    shown = {"style": style, "title": title}
    attributes = "".join(f' {name}="{escape(value)}"' for name, value in shown.items() if value)
    return f"<{tag}{attributes}>{content}</{tag}>"


def trace_view(trace: Trace, tokenizer: Any = None) -> Html:
    """The first rows of a trace. The viewer's frame is sandboxed: its script reaches nothing of the notebook."""
    static = f'<div class="{CLASS}">{trace_html(trace, tokenizer)}</div>'
    source = escape(page(list(_trajectories(trace, tokenizer)), summary(trace)), quote=True)
    frame = f'<iframe title="Trace" sandbox="allow-scripts" style="{_FRAME}" srcdoc="{source}"></iframe>'
    return Html(f"<div><style>{_STYLE}</style>{static}{frame}</div>")


def _trajectories(trace: Trace, tokenizer: Any) -> Iterator[Trajectory]:
    """The rows; those of one prompt are shown side by side. Without a tokenizer a token's text is its id."""
    prompts: dict[tuple[int, ...], str] = {}
    titles: set[tuple[str, str]] = set()
    for number in range(min(len(trace.tokens), MAX_ROWS)):
        row = trace.row(number, tokenizer)
        if tokenizer is None:
            row |= {"prompt_text": "", "generated_texts": [f" {token}" for token in row["generated_ids"]]}
            row |= {"event_texts": [f" {token}" for _, _, token in row.get("events", [])]}
        problem = prompts.setdefault(tuple(row["prompt_ids"]), f"row {number}")
        title = trace.samplers[number].name
        title = title if (problem, title) not in titles else f"{title}, row {number}"
        titles.add((problem, title))
        yield Trajectory(title, row, problem=problem)


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


def sampler_html(sampler: Sampler) -> Html:
    """The sampler's name and pieces. Settings that have their default value are dim, not hidden."""
    parts = [field for field in fields(sampler) if field.name != "name"]
    title = f"{element('b', 'Sampler')} {escape(sampler.name)}"
    note = element("span", "dim: default values", f"font-size:85%;{DIM}")
    return Html(element("div", f"{title} {note}{_list(sampler, parts)}", "line-height:1.6;color:inherit"))


def _list(piece: Piece, shown: list[Field[Any]]) -> str:
    """The settings that are pieces, each with its own list below it; plain settings after them."""
    lines = []
    for field in shown:
        value = getattr(piece, field.name)
        if isinstance(value, Piece):
            lines.append(_piece(value, field.name))
        elif _holds_pieces(value):
            lines += [_piece(item) for item in value]
        else:
            lines.append(element("li", _setting(field, value)))
    return element("ul", "".join(lines), _LIST) if lines else ""


def _piece(piece: Piece, role: str = "") -> str:
    """A piece with its plain settings on one line, and the pieces in it below."""
    values = [(field, getattr(piece, field.name)) for field in fields(piece)]
    inner = [field for field, value in values if isinstance(value, Piece) or _holds_pieces(value)]
    settings = [_setting(field, value) for field, value in values if field not in inner]
    name = element("b", escape(type(piece).__name__))
    line = " ".join(filter(None, (element("span", escape(role), DIM) if role else "", name, *settings)))
    return element("li", line + _list(piece, inner))


def _setting(field: Field[Any], value: Any) -> str:
    is_default = value is field.default or (not isinstance(value, Table) and value == field.default)
    return element("code", escape(f"{field.name}={_written(value)}"), DIM if is_default else "")


def _written(value: Any) -> str:
    """A value as in Python. A table is its name and the start of its checksum."""
    if isinstance(value, Table):
        return f"{value.name!r} (sha256 {value.sha256[:12]})"
    if isinstance(value, tuple) and len(value) > MAX_ITEMS:
        return f"({', '.join(map(repr, value[:MAX_ITEMS]))}, … {counted(len(value) - MAX_ITEMS, 'item')} more)"
    return repr(value)


def _holds_pieces(value: Any) -> bool:
    return isinstance(value, tuple) and any(isinstance(item, Piece) for item in value)
