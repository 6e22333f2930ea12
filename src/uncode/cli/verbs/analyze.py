"""`uncode analyze`: the paper's figures from traces."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ...analysis.kinds import KINDS, SWEEPS, check_choices
from ...core.errors import require
from ...core.support.reprs import counted
from ...util.extras import check_installed
from ...util.write import write_whole
from ..options import Force, Json, Traces
from ..outputs import check_output
from ..printing import grid, loading, print_whole, printing

if TYPE_CHECKING:
    from ...analysis.analyze import Analysis

SUMMARY = "Draw the paper's figures from traces, as pictures, CSV or JSON."
SUFFIXES = (".png", ".svg", ".pdf", ".csv")


def complete_kind(incomplete: str) -> list[tuple[str, str]]:
    return [(name, meaning) for name, meaning in KINDS.items() if name.startswith(incomplete)]


def command(
    kind: Annotated[
        str,
        Argument(metavar="KIND", help="The figure: heatmap, trivial, ... (all below).", autocompletion=complete_kind),
    ],
    traces: Traces,
    out: Annotated[
        Path | None, Option(metavar="FILE", help="The figure (.png, .svg, .pdf), or its arrays (.csv); see --json too.")
    ] = None,
    parts: Annotated[
        int | None,
        Option(metavar="N", help="Divide the span and the decode into N equal parts; lengths may then differ."),
    ] = None,
    reference: Annotated[
        list[Path] | None,
        Option(
            metavar="TRACES", help="For trivial: traces of a left-to-right sampler, drawn as a line; may be repeated."
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draw a figure of the paper from traces. No model is needed.

    From any traces: heatmap (which positions are unmasked first, with the boundary-first index), trivial (the share of
    trivial tokens per step), answers (when the answer is committed), accuracy, planning (accuracy on reasoning and on
    planning), and entropy (the uncertainty over time, from traces recorded with --observe-span). From traces of the
    samplers that they compare, such as those of `uncode paper`: rejection, anchors, hyperparameters, rates, priors,
    corpora and efficiency. Traces are grouped by model, task and sampler.

    Examples:

      uncode eval mini --tasks mini_story --limit 20 --traces --out run
      uncode analyze heatmap run --out heat.png
      uncode analyze trivial run --parts 20 --out trivial.svg
      uncode analyze answers run --out answers.csv
      uncode analyze entropy run --json > entropy.json
    """
    check_choices(kind, parts, bool(reference))
    suffix = "" if out is None else out.suffix.lower()
    if out is not None:
        require(suffix in SUFFIXES, f"--out takes a .png, .svg, .pdf or .csv file, not '{out}'.")
        if suffix != ".csv":
            check_installed("matplotlib", "plots", "a figure")
        check_output(out, "--out", "CSV of an analysis" if suffix == ".csv" else "figure", force)
    with loading():
        from ...analysis.analyze import analyze
        from ...util.progress import reading_bar
    with reading_bar("reading traces") as on_bytes:
        found = analyze(kind, traces, parts=parts, reference=reference or (), on_bytes=on_bytes)
    if out is not None and suffix == ".csv":
        write_whole(out, found.csv())
    elif out is not None:
        from ...analysis.figures import draw

        draw(found, out)
    if as_json:
        typer.echo(json.dumps(found.data(), allow_nan=False))
    else:
        _show(found)
    if out is not None:
        typer.echo(f"{out}: {kind} of {counted(found.traces, 'trace')}.", err=True)


def _show(found: Analysis) -> None:
    """One line per group: the traces, and the numbers in the figure's title or legend."""
    measures = _MEASURES[found.kind]
    rows = [
        (*group, f"{one.traces:,}", *(_cell(read(one)) for read in measures.values()))
        for group, one in found.groups.items()
    ]
    with printing() as console:
        print_whole(console, grid(("model", "task", "sampler", "traces", *measures), rows, range(3), no_wrap=True))
        for group, share in found.references.items():
            console.print(f"reference: {share:.2f} of {group.sampler} {group.task}".rstrip())


def _cell(value: object) -> str:
    return "none" if value is None else value if isinstance(value, str) else f"{value:.2f}"


Measure = Callable[[Any], float | str | None]
"""Reads a value from one group of an analysis; which class that is depends on the figure."""
_OUTCOMES: dict[str, Measure] = {
    "right": lambda one: one.share,
    "tokens a forward": lambda one: one.tokens_per_forward,
    "rate": lambda one: one.settings.rate,
    "clip": lambda one: one.settings.clip,
    "table": lambda one: one.settings.table or None,
    "rejection": lambda one: one.settings.rejection,
}
_MEASURES: dict[str, dict[str, Measure]] = {
    "heatmap": {
        "boundary first": lambda one: one.boundary and one.boundary.index,
        "first quarter": lambda one: one.boundary and one.boundary.first,
        "last quarter": lambda one: one.boundary and one.boundary.last,
        "right": lambda one: one.accuracy,
    },
    "trivial": {"share of trivial tokens": lambda one: one.overall},
    "answers": {
        "mean step": lambda one: one.mean_step,
        "entropy, nats": lambda one: one.mean_entropy,
        "before the reasoning": lambda one: one.early,
    },
    "anchors": {"anchor": lambda one: one.text or None, "at": lambda one: one.anchor},
    **dict.fromkeys(SWEEPS, _OUTCOMES),
    "entropy": {"at the first step, nats": lambda one: one.mean[0]},
}
"""For each figure the columns of the printed table."""
