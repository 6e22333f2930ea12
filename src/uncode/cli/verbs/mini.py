"""`uncode mini`: the paper's Table 1 in miniature, on a small model."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...core.errors import require
from ...models import TABLE
from ..options import Device, Dtype, Json, complete_family, trained
from ..printing import printing

if TYPE_CHECKING:
    from rich.console import Console

    from ...evals.mini import report
    from ...evals.mini.job import Job
    from ...evals.mini.results import Results
    from ...evals.mini.run import OnProgress

SUMMARY = "The paper's main table in miniature, on a small model."
FAMILIES = 7

PROBLEMS, FEW = 256, 12
WIDEST = 1000


Option = typer.Option
ModelName = Annotated[
    str | None,
    Option(metavar="MODEL", help="tiny, or the folder of a model that `uncode train` made.  [default: tiny]"),
]
Quick = Annotated[
    bool, Option("--quick", help="Five presets, few problems, and the rates of the model's results: none is chosen.")
]
Families = Annotated[
    list[str] | None,
    Option(
        "--family",
        metavar="NAME",
        help="Only this one; may be repeated.  [default: all seven]",
        autocompletion=complete_family,
    ),
]
Problems = Annotated[
    int | None,
    Option(min=1, max=PROBLEMS, metavar="N", help="Problems of each family.  [default: 256; quick: 12]"),
]
Batch = Annotated[int | None, Option(min=1, metavar="N", help="Problems decoded at a time.  [default: 256]")]
Workers = Annotated[
    int | None, Option(min=1, max=FAMILIES, metavar="N", help="Families at a time, in processes.  [default: 1]")
]
Seed = Annotated[int | None, Option(metavar="N", help="Seed of all randomness.  [default: 0]")]
Out = Annotated[Path | None, Option(metavar="DIR", help="Keep results and answers there, and resume.")]
Show = Annotated[Path | None, Option(metavar="FILE", help="Print results that lie in a file.")]
Card = Annotated[bool, Option("--card", help="Print the model's card.")]


def command(
    model: ModelName = None,
    few: Quick = False,
    families: Families = None,
    problems: Problems = None,
    batch: Batch = None,
    workers: Workers = None,
    seed: Seed = None,
    device: Device = None,
    dtype: Dtype = None,
    out: Out = None,
    show: Show = None,
    print_card: Card = False,
    as_json: Json = False,
) -> None:
    """Decode held-out problems of all seven families under every preset, and print who is right how often.

    Uncode's rate is chosen per family without labels: the one of seven with the least mean predictive entropy on 64
    other problems, whatever --problems says. That takes minutes on a CPU; --quick takes the rates that are known.

    Examples:

      uncode mini --quick
      uncode mini --card
      uncode mini --device cuda --workers 7 --out mini
      uncode mini --show mini/results.json
      uncode mini --model out/model --device cuda --workers 7 --out mini
    """
    given = (out, families, problems, batch, workers, seed, device, dtype)
    running = few or any(option is not None for option in given)
    require(not (print_card and (show or running or as_json)), "--card takes --model, and nothing else.")
    require(show is None or not (running or model), "--show prints a file of results, and takes --json, nothing else.")
    if show is not None:
        from ...evals.mini.results import Results

        _tell(Results.load(show), as_json)
        return
    model = model or "tiny"
    folder = trained(model)

    from ...evals.families import FAMILIES, find_family
    from ...evals.mini.card import card, results_of

    if print_card:
        typer.echo(card(folder), nl=False)
        return
    names = tuple(map(find_family, families or FAMILIES))
    own = results_of(folder) if few else None
    has_table = (folder / TABLE).is_file()
    require(has_table, f"'{model}' has no {TABLE}, which the mini-suite needs: make it with `uncode count --out`.")
    rates = None if own is None else {name: own.rate(name) for name in names}

    from ...evals.mini.job import Job

    each = problems or (FEW if few else PROBLEMS)
    job = Job(model, device, dtype, each, batch or PROBLEMS, seed or 0, rates, out, names)
    _tell(_run(job, workers or 1, out), as_json)


def _run(job: Job, workers: int, out: Path | None) -> Results:
    try:
        with _progress() as on_progress:
            return job.run(workers, on_progress)
    except KeyboardInterrupt:
        resumes = f"'{out}' holds what is finished, and the same command goes on from there"
        typer.echo(f"stopped; {'nothing was kept: --out DIR keeps it' if out is None else resumes}", err=True)
        raise


def _tell(results: Results, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(asdict(results), indent=1))
    else:
        _print(results)


@contextmanager
def _progress() -> Iterator[OnProgress]:
    """What is being decoded, on standard error."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        began = time.monotonic()
        yield lambda message: console.print(
            f"{time.monotonic() - began:6.0f} s  {message}", highlight=False, soft_wrap=True
        )
        return
    with console.status("") as status:
        yield status.update


def _print(results: Results) -> None:
    from ...evals.mini import report

    about = results.about
    with printing() as console:
        console.print(f"{about['model']}: {about['problems']} held-out problems a family, per cent right\n")
        _show(console, report.accuracy(results))
        if results.entropies:
            console.print("\nthe mean predictive entropy at each rate, on problems without labels\n")
            _show(console, report.rates(results))
        if results.biases:
            console.print("\nwhat confidence writes first (95 % intervals)\n")
            _show(console, report.biases(results))
            console.print("\nwhen confidence writes each tenth of the span, from 0 (first) to 1 (last)\n")
            _show(console, report.times(results))


def _show(console: Console, table: report.Table) -> None:
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for number, title in enumerate(table.titles):
        shown.add_column(title, justify="right" if number else "left", no_wrap=True)
    for row in table.rows:
        shown.add_row(*row)
    needed = console.measure(shown, options=console.options.update(max_width=WIDEST)).maximum
    console.width = max(console.width, needed)  # a line that is too long wraps, and is not cut
    console.print(shown, soft_wrap=True)
