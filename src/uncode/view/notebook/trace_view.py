"""A trace in a notebook: the viewer where scripts may run, else the tokens shaded by commit time.

This module stands above the packages, as `frames` does: core has the trace, and the viewer draws it.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from ..page import Trajectory, page
from .element import Html
from .trace_html import MAX_ROWS, summary, trace_html

if TYPE_CHECKING:
    from ...core.trace.trace import Trace

CLASS = "uncode-static"
_STYLE = f".{CLASS}:has(+ iframe) {{ display: none; }}"
"""Hides the static tokens where the viewer follows them. A site that removes frames, as GitHub does, shows them."""
_FRAME = "width:100%;height:36rem;border:1px solid rgba(128,128,128,.35);border-radius:6px;resize:vertical"


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
