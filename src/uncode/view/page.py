"""Traces as one HTML page. It loads nothing from the network, and its text needs no JavaScript."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from zlib import compress

from ..core.errors import require
from ..core.moments import moments
from ..util.template import rendered
from ..util.write import write_whole
from .row_summary import TraceLine, eos_ids_of, summary
from .script import FOLDER, LOCKED, hash_of, script
from .visible_text import BREAK, EOS_SIGN, html

MAX_DRAWN = 24
"""Texts that are drawn before the script runs. The rows of more are compressed."""
DEFLATED = "application/deflate"
"""The type of a block of compressed rows, for the script."""
_AS_THEY_ARE = (
    "generated_ids", "generated_texts", "commit_step", "forwards", "special_ids", "mask_id"
)  # fmt: skip
_WHERE_THERE = ("probes", "events", "event_texts", "draft_texts", "answer_span")
_NUMBERS = ("logp", "entropy", "margin", "score", "mean_entropy", "runner_up")
_DIGITS = 4
"""Significant digits; the page shows three."""


@dataclass(frozen=True)
class Verdict:
    """The verdict of a grader on an answer."""

    right: bool
    reason: str = ""


@dataclass(frozen=True)
class Trajectory:
    """A row of a trace with its texts (`trace.row(r, tokenizer)`), and its title."""

    title: str
    row: TraceLine
    verdict: Verdict | None = None
    problem: str = ""
    """The name of the prompt, where a page has several. Rows of one prompt are shown side by side."""


def write_page(path: str | Path, trajectories: Sequence[Trajectory], title: str) -> None:
    """Write the page atomically."""
    write_whole(Path(path), page(trajectories, title))


def page(trajectories: Sequence[Trajectory], title: str) -> str:
    """The page as HTML. Tokens are coloured by commit time, and the traces of a prompt are replayed in step.

    Nothing that a model wrote can run: texts are escaped, and the browser runs the one script with the right hash.
    """
    check_texts(trajectories)
    style, code = (FOLDER / "page.css").read_text(encoding="utf-8"), script()
    problems, are_few = _problems(trajectories), len(trajectories) <= MAX_DRAWN
    return rendered(
        __package__,
        "page.html",
        policy=f"{LOCKED}; style-src {hash_of(style)}; script-src {hash_of(code)}",
        title=title,
        style=style,
        problems=problems,
        are_few=are_few,  # many texts would keep the browser busy: they are for readers without JavaScript alone
        data=_json_for_html([_problem_data(problem) for problem in problems]),
        rows="\n".join(_rows_block(number, problem, are_few) for number, problem in enumerate(problems)),
        script=code,
        html=html,
        summary=summary,
        tokens=_tokens,
        plain=_plain,
    )


def check_texts(trajectories: Sequence[Trajectory]) -> None:
    """Raise if there is nothing to show, or a trace without texts."""
    require(len(trajectories) > 0, "there is no trajectory to show: give at least one.")
    for one in trajectories:
        with_texts = "generated_texts" in one.row
        require(with_texts, f"the trace of '{one.title}' has no texts: write it with its tokenizer.")


def _json_for_html(data: Any) -> str:
    """JSON that is safe inside HTML. Lone surrogates, which UTF-8 does not have, become JSON escapes."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _problems(trajectories: Sequence[Trajectory]) -> list[list[Trajectory]]:
    """The trajectories of each prompt, prompts in their order."""

    def prompt(one: Trajectory) -> tuple[str, str]:
        return one.problem, one.row["prompt_text"]

    places = {key: at for at, key in reversed(list(enumerate(map(prompt, trajectories))))}
    ordered = sorted(trajectories, key=lambda one: places[prompt(one)])
    return [list(group) for _, group in groupby(ordered, prompt)]


def _problem_data(problem: list[Trajectory]) -> dict[str, Any]:
    """What the list of problems shows and searches."""
    row = problem[0].row
    task = row.get("task")
    return {
        "label": problem[0].problem,
        "task": task if isinstance(task, str) else "",
        "prompt": row["prompt_text"],
        "traces": [
            {
                "sampler": one.title,
                "right": None if one.verdict is None else one.verdict.right,
                "forwards": one.row["forwards"],
                "length": _text_length(one.row),
            }
            for one in problem
        ],
    }


def _rows_block(number: int, problem: list[Trajectory], is_plain: bool) -> str:
    """The rows of a problem in their own block: the script reads a block when its problem is opened.

    Many rows are compressed, which makes the page three times smaller.
    """
    data = _json_for_html(
        [
            {"title": one.title, "verdict": one.verdict and asdict(one.verdict), "summary": summary(one.row)}
            | compact(one.row)
            for one in problem
        ]
    )
    if is_plain:
        return f'<script type="application/json" id="rows-{number}">{data}</script>'
    packed = b64encode(compress(data.encode())).decode()
    return f'<script type="{DEFLATED}" id="rows-{number}">{packed}</script>'


def compact(row: TraceLine) -> TraceLine:
    """The row for the page. A draft repeats most of the draft before it, so only the differences are kept."""
    found = {name: row[name] for name in _AS_THEY_ARE}
    found |= {name: row[name] for name in _WHERE_THERE if row.get(name) is not None}
    found |= {name: _rounded(row[name]) for name in _NUMBERS}
    found["terms"] = {name: _rounded(values) for name, values in row["terms"].items()}
    if row.get("drafts"):
        found["draft_changes"] = _changes(row["drafts"])
    return found


def _rounded(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else _short(value) for value in values]


def _short(value: float) -> float:
    """Rounded, and a whole number where it is one: JSON then has no `.0`."""
    rounded = float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e6 else rounded


def _changes(drafts: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each step: offset, token, offset, token, ..., where its draft differs from the one before."""
    former: Sequence[int] = [-1] * len(drafts[0])
    changes = []
    for draft in drafts:
        pairs: list[Any] = [(at, token) for at, token in enumerate(draft) if token != former[at]]
        changes.append([number for pair in pairs for number in pair])
        former = draft
    return changes


def _plain(row: TraceLine) -> str:
    """The text before the first EOS."""
    return html("".join(row["generated_texts"][: _text_length(row)]))


def _text_length(row: TraceLine) -> int:
    """Tokens before the first EOS."""
    ids, eos_ids = row["generated_ids"], eos_ids_of(row)
    return next((at for at, token in enumerate(ids) if token in eos_ids), len(ids))


def _tokens(row: TraceLine) -> str:
    """The tokens, each in a span of its commit time. Blanks before a word are outside."""
    spans, eos_ids = [], eos_ids_of(row)
    tokens = zip(row["generated_texts"], row["generated_ids"], moments(row["commit_step"]), strict=True)
    for text, token, moment in tokens:
        word = EOS_SIGN if token in eos_ids else text.lstrip(" ")
        blanks = "" if token in eos_ids else " " * (len(text) - len(word))
        shown = html(word).replace("\n", f"{BREAK}\n")
        spans.append(f'{blanks}<span class="t {moment}">{shown}</span>')
    return "".join(spans)
