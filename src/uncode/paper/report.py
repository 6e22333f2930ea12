"""Writes the report: figures as PNG and SVG, their arrays as CSV, the findings as JSON, and one page with all of it."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from ..analysis.cases import RULES, Case, find_cases, text_end
from ..analysis.figures import figure_of
from ..analysis.figures.style import DPI, picture, style
from ..analysis.measures.trivial_share import texts_of
from ..analysis.read_traces import TraceRow
from ..core.support.reprs import counted
from ..evals.run.folder import RunFolder
from ..evals.suite.names import UNCODE
from ..util.paths import make_folder
from ..util.write import write_whole
from .arrays import Arrays, OnFigure
from .captions import CAPTIONS
from .findings import AGREES, CANNOT_TELL, DISAGREES, Finding

REPORT, FINDINGS = "report.html", "findings.json"
FORMATS = ("png", "svg")
FAILURES = {
    "early_answer": "An answer committed too early",
    "cut_short": "A text cut short by EOS",
    "trivial_lock": "A trivial token that locks the reasoning",
}
COUNTED = {
    "early_answer": "with an answer committed too early",
    "cut_short": "with a text cut short",
    "trivial_lock": "with a trivial token in the way",
}
MOMENTS = ("early", "middle", "late")


def write_report(
    out: Path,
    folder: RunFolder,
    arrays: Arrays,
    found: Sequence[Finding],
    on_figure: OnFigure = lambda name, done, total: None,
) -> Path:
    """Write all files into a folder. Returns the page, which holds its pictures, so that it can be sent alone."""
    make_folder(out / "figures")
    make_folder(out / "arrays")
    pictures = {}
    for done, (name, analysis) in enumerate(arrays.figures.items()):
        on_figure(f"drawing {name}", done, len(arrays.figures))
        with style():
            figure = figure_of(analysis)
            files = {kind: picture(figure, kind) for kind in FORMATS}
        for kind, content in files.items():
            write_whole(out / "figures" / f"{name}.{kind}", content)
        write_whole(out / "arrays" / f"{name}.csv", analysis.csv())
        pictures[name] = files["png"]
    write_whole(out / FINDINGS, json.dumps([one.data() for one in found], indent=1) + "\n")
    sections = [_section(name, found, pictures[name]) for name in CAPTIONS if name in pictures]
    template = Template((resources.files(__package__) / "report.html").read_text(encoding="utf-8"))
    page = template.substitute(
        title=escape(f"The paper's analysis, on {Path(folder.info().cells[0].model).name}"),
        about=escape(_about(folder, arrays.tasks)),
        summary=escape(summary(found)),
        rows="\n".join(map(_row, found)),
        sections="\n".join([*sections, _cases(folder)]),
    )
    write_whole(out / REPORT, page)
    return out / REPORT


def _about(folder: RunFolder, tasks: Sequence[str]) -> str:
    info = folder.info()
    samplers = len({cell.sampler for cell in info.cells})
    most, least = max(info.examples.values()), min(info.examples.values())
    count = f"{counted(most, 'problem')} each" if most == least else f"{least} to {most} problems each"
    versions = ", ".join(f"{name} {info.versions[name]}" for name in ("uncode", "torch") if name in info.versions)
    return (
        f"{counted(len(tasks), 'task')} ({', '.join(tasks)}), {count}; "
        f"{counted(samplers, 'sampler')}, {counted(len(folder.samples()), 'answer')}. Made by `uncode paper`; "
        f"{versions}. Intervals are 95 % intervals over the problems."
    )


def summary(found: Sequence[Finding]) -> str:
    """How many findings agree."""
    counts = Counter(one.verdict for one in found)
    return (
        f"Of {len(found)} findings of the paper, this model agrees with {counts[AGREES]} and disagrees with "
        f"{counts[DISAGREES]}; {counts[CANNOT_TELL]} are undecided, because the interval holds zero."
    )


def _verdict(one: Finding) -> str:
    return f'<span class="verdict {one.verdict.replace(" ", "-")}">{one.verdict}</span>'


def _row(one: Finding) -> str:
    link = f'<a href="#{one.figure}">{escape(one.paper)}</a>'
    return f"<tr><td>{link}</td><td>{escape(one.shown)}</td><td>{_verdict(one)}</td></tr>"


def _section(name: str, found: Sequence[Finding], png: bytes) -> str:
    """A figure, its caption, and what the paper and this model show in it."""
    title, caption = map(escape, CAPTIONS[name])
    image, width = base64.b64encode(png).decode(), int.from_bytes(png[16:20], "big") * 96 // DPI
    sentences = "\n".join(
        f"<li>The paper: {escape(one.paper)} Here: {escape(one.shown)} {_verdict(one)}</li>"
        for one in found
        if one.figure == name
    )
    return (
        f'<section id="{name}"><h2>{title}</h2>\n'
        f'<figure><img width="{width}" src="data:image/png;base64,{image}" alt="{title}">'
        f"<figcaption>{caption}</figcaption></figure>\n"
        f"{f'<ul>{sentences}</ul>' if sentences else ''}</section>"
    )


def _cases(folder: RunFolder) -> str:
    found = find_cases(folder.trace_files(("confidence", UNCODE)), "confidence", UNCODE)
    counts = Counter(case.kind for case in found)
    shown = [next(case for case in found if case.kind == kind) for kind in RULES if counts[kind]]
    words = ", ".join(f"{counts[kind]} {COUNTED[kind]}" for kind in RULES)
    parts = [
        '<section id="cases"><h2>Case studies</h2>',
        "<p>Problems on which confidence fails and Uncode is right, found by rule, with the shortest of each kind. "
        f"Found: {escape(words)}. The first token that differs has a frame.</p>",
        '<p class="key samplers"><span class="early">committed early</span><span class="middle">middle</span>'
        '<span class="late">late</span></p>',
        *map(_case, shown),
        "</section>",
    ]
    return "\n".join(parts)


def _case(case: Case) -> str:
    prompt = str(case.rows()[0].get("prompt_text", "")).strip()
    parts = [f'<div class="case"><h3>{escape(FAILURES[case.kind])}</h3>', f'<div class="text">{escape(prompt)}</div>']
    for row, verdict in ((case.failing, "wrong"), (case.right, "right")):
        parts.append(f'<div class="samplers">{escape(row.group.sampler)}, {verdict}</div>')
        parts.append(f'<div class="text">{_tokens(row, case.divergence)}</div>')
    return "".join([*parts, "</div>"])


def _tokens(row: TraceRow, divergence: int) -> str:
    """The text before the first EOS, each token coloured by the third of the decode in which it was committed."""
    shown = []
    for offset, text in enumerate(texts_of(row)[: text_end(row)]):
        step = int(row.commit_step[offset])
        moment = MOMENTS[min(2, 3 * step // row.steps)] if step >= 0 else ""
        first = " first" if offset == divergence else ""
        shown.append(f'<span class="{moment}{first}" title="step {step}">{escape(text)}</span>')
    return "".join(shown)
