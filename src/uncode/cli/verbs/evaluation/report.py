"""`uncode report`: the tables of evaluation runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from ....core.errors import require, suggest
from ....core.support.reprs import counted
from ....util.write import write_whole
from ...options import Force, Json
from ...outputs import check_output

if TYPE_CHECKING:
    from ....evals.report.analysis import Choices
    from ....evals.report.scores import RunResults

SUMMARY = "Print tables of evaluation runs, with intervals and tests."


def complete_format(incomplete: str) -> list[str]:
    from ....evals.report.formats import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def complete_paper_model(incomplete: str) -> list[str]:
    from ....evals.paper import paper_tables

    return [name for name in paper_tables().models if name.startswith(incomplete)]


def command(
    runs: Annotated[list[Path], Argument(metavar="RUN...", help="Run folders, as `uncode eval` makes them.")],
    format: Annotated[
        str | None,
        Option(
            metavar="FORMAT",
            help="markdown, csv, latex or html.  [default: by the suffix of --out; markdown in a pipe]",
            autocompletion=complete_format,
        ),
    ] = None,
    out: Annotated[
        Path | None, Option(metavar="FILE", help="Write the report to this file (.md, .csv, .tex, .html).")
    ] = None,
    baseline: Annotated[
        str | None, Option(metavar="LABEL", help="The sampler that others are compared with.  [default: the runs' own]")
    ] = None,
    metric: Annotated[
        str, Option(metavar="METRIC", help="The metric of the comparisons: correct (our grader), paper, ...")
    ] = "correct",
    paper: Annotated[bool, Option("--paper", help="Show the paper's figures beside ours.")] = False,
    paper_model: Annotated[
        str,
        Option(
            metavar="ID",
            help="The paper's model for a model that it does not name, such as a local folder.",
            autocompletion=complete_paper_model,
        ),
    ] = "",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Print the tables of one or several runs: one section per model, one row per sampler, one column per task.

    Accuracies have 95 % Wilson intervals, by our grader and by the rule of the released code. Samplers are compared
    with the baseline on the examples that both have answered: Newcombe's interval, McNemar's test, Holm's correction.
    Costs are tokens per forward, forwards, seconds and speed-ups. Incomplete cells are marked (n of N); they enter no
    average.

    Examples:

      uncode report runs/main
      uncode report runs/llada runs/dream --paper --out report.html
      uncode report runs/efficient --baseline confidence --format latex > efficient.tex
    """
    from ....evals.report.analysis import Choices, check_choices
    from ....evals.report.scores import read_runs

    chosen = _format(format, out)
    require(not as_json or (out is None and format is None), "--json prints JSON: leave out --format and --out.")
    if out is not None:
        check_output(out, "--out", "report", force)
    results = read_runs(runs)
    known = check_choices(results, metric, baseline, paper_model)
    choices = Choices(metric, known, paper or bool(paper_model), paper_model)
    if as_json:
        typer.echo(_json(results, choices))
    elif out is not None and chosen is not None:
        write_whole(out, _text(results, choices, chosen))
        models, samplers = len(results.models), len(results.samplers())
        typer.echo(f"{out}: {counted(len(results.scores), 'cell')}, models: {models}, samplers: {samplers}.", err=True)
    elif chosen is None and sys.stdout.isatty():
        from ...report_text import print_document

        print_document(results, choices)
    else:
        typer.echo(_text(results, choices, chosen or "markdown"), nl=False)


def _format(name: str | None, out: Path | None) -> str | None:
    """The format by its name or by the suffix of the file; None if neither is given."""
    from ....evals.report.formats import FORMATS, SUFFIXES

    if name is not None:
        require(name in FORMATS, f"there is no format '{name}': {suggest(name, FORMATS)}")
        return name
    if out is None:
        return None
    found = SUFFIXES.get(out.suffix.lower())
    require(found is not None, f"'{out}' names no format: end it in .md, .csv, .tex or .html, or give --format.")
    return found


def _text(results: RunResults, choices: Choices, format: str) -> str:
    from ....evals.report import formats
    from ....evals.report.records import records
    from ....evals.report.tables import document

    if format == "csv":
        return formats.csv_text(records(results, choices))
    write = {"markdown": formats.markdown, "latex": formats.latex, "html": formats.html}[format]
    return write(document(results, choices))


def _json(results: RunResults, choices: Choices) -> str:
    from ....evals.report.records import records

    runs = [{"config": info.config, "title": info.title, "versions": dict(info.versions)} for info in results.infos]
    data = {"runs": runs, "metric": choices.metric, "baseline": choices.baseline}
    return json.dumps(data | {"records": records(results, choices)}, indent=2)
