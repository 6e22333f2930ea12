"""Writes the report: figures as PNG and SVG, their arrays as CSV, the findings as JSON, and one page with all of it."""

from __future__ import annotations

import base64
import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from ..analysis.cases import RULES, find_cases, text_end
from ..analysis.figures import figure_of
from ..analysis.figures.style import DPI, picture, style
from ..analysis.measures.trivial_share import texts_of
from ..analysis.read_traces import TraceRow
from ..core.moments import MOMENTS
from ..core.support.reprs import counted
from ..evals.run.folder import RunFolder
from ..evals.suite.names import UNCODE
from ..util.paths import make_folder
from ..util.template import rendered
from ..util.write import write_whole
from .arrays import Arrays, OnFigure
from .findings import AGREES, CANNOT_TELL, DISAGREES, Finding

REPORT, FINDINGS = "report.html", "findings.json"
FORMATS = ("png", "svg")
FAILURES = {
    "early_answer": ("An answer committed too early", "with an answer committed too early"),
    "cut_short": ("A text cut short by EOS", "with a text cut short"),
    "trivial_lock": ("A trivial token that locks the reasoning", "with a trivial token in the way"),
}
"""For each kind of failure its title, and its words after a number."""
CAPTIONS = tomllib.loads((resources.files(__package__) / "captions.toml").read_text(encoding="utf-8"))
"""The figures of the report in their order, each with its title and its caption."""


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
        png = files["png"]
        width = int.from_bytes(png[16:20], "big") * 96 // DPI
        pictures[name] = {"png": base64.b64encode(png).decode(), "width": width}
    write_whole(out / FINDINGS, json.dumps([one.data() for one in found], indent=1) + "\n")
    cases = find_cases(folder.trace_files(("confidence", UNCODE)), "confidence", UNCODE)
    counts = Counter(case.kind for case in cases)
    page = rendered(
        __package__,
        "report.html",
        title=f"The paper's analysis, on {Path(folder.info().cells[0].model).name}",
        about=_about(folder, arrays.tasks),
        summary=summary(found),
        found=found,
        captions=CAPTIONS,
        pictures=pictures,
        failures=FAILURES,
        cases=[next(case for case in cases if case.kind == kind) for kind in RULES if counts[kind]],
        cases_found=", ".join(f"{counts[kind]} {FAILURES[kind][1]}" for kind in RULES),
        prompt_of=lambda case: str(case.rows()[0].get("prompt_text", "")).strip(),
        shown_tokens=_shown_tokens,
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


def _shown_tokens(row: TraceRow, divergence: int) -> Iterator[dict[str, Any]]:
    """The text before the first EOS, each token with the third of the decode in which it was committed."""
    for offset, text in enumerate(texts_of(row)[: text_end(row)]):
        step = int(row.commit_step[offset])
        moment = MOMENTS[min(2, 3 * step // row.steps)] if step >= 0 else ""
        yield {"text": text, "step": step, "kind": moment + (" first" if offset == divergence else "")}
