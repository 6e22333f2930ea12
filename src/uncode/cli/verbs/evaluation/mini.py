"""`uncode mini`: the paper's Table 1 on a small model and small problems."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....core.errors import require
from ....models import TABLE
from ...options import Device, Dtype, Json, complete_family, trained_folder
from ...printing import print_whole, printing

if TYPE_CHECKING:
    from rich.console import Console

    from ....evals.mini.job import Job
    from ....evals.mini.results import Results
    from ....evals.report.table import Table

SUMMARY = "The paper's main table in miniature, on a small model."
FAMILY_COUNT = 7

PROBLEMS, QUICK_PROBLEMS = 1024, 4
"""Problems per family, in a full and in a quick run."""
BATCH, GPU_BATCH = 256, 1024
"""Problems per batch, on a CPU and on a GPU."""


Option = typer.Option
ModelName = Annotated[
    str | None,
    Option(metavar="MODEL", help="tiny, or the folder of a model that `uncode train` made.  [default: tiny]"),
]
Quick = Annotated[bool, Option("--quick", help="Five presets and few problems, with the rates in the model's results.")]
Families = Annotated[
    list[str] | None,
    Option(
        "--family",
        metavar="NAME",
        help="Only this family; may be repeated.  [default: all seven]",
        autocompletion=complete_family,
    ),
]
Problems = Annotated[
    int | None,
    Option(min=1, max=PROBLEMS, metavar="N", help="Problems per family.  [default: 1024; quick: 4]"),
]
BatchSize = Annotated[int | None, Option(min=1, metavar="N", help="Problems per batch.  [default: 256; on a GPU 1024]")]
Workers = Annotated[
    int | None, Option(min=1, max=FAMILY_COUNT, metavar="N", help="Number of processes, one family each.  [default: 1]")
]
Seed = Annotated[int | None, Option(metavar="N", help="Seed of all randomness.  [default: 0]")]
Out = Annotated[
    Path | None, Option(metavar="DIR", help="A run folder for answers and results, from which a run is resumed.")
]
Draw = Annotated[
    int | None,
    Option(min=0, metavar="SEED", help="Test on new held-out problems, drawn with this seed, that nobody has seen."),
]
Show = Annotated[Path | None, Option(metavar="FILE", help="Print the results in a file.")]
Card = Annotated[bool, Option("--card", help="Print the model card.")]


def command(
    model: ModelName = None,
    quick: Quick = False,
    families: Families = None,
    problems: Problems = None,
    batch: BatchSize = None,
    workers: Workers = None,
    seed: Seed = None,
    draw: Draw = None,
    device: Device = None,
    dtype: Dtype = None,
    out: Out = None,
    show: Show = None,
    print_card: Card = False,
    as_json: Json = False,
) -> None:
    """Decode held-out problems of all seven families with every preset, and print the accuracies.

    Uncode's rate is chosen per family without labels: of seven rates, the one with the smallest mean predictive
    entropy on 64 other problems, independent of --problems. That takes minutes on a CPU. --quick uses known rates.
    This is the config `mini` of `uncode eval`, with its own tables.

    Examples:

      uncode mini --quick
      uncode mini --card
      uncode mini --quick --family story --draw 7
      uncode mini --device cuda --workers 7 --out mini
      uncode mini --show mini/results.json
      uncode mini --model out/model --device cuda --workers 7 --out mini
    """
    given = (out, families, problems, batch, workers, seed, draw, device, dtype)
    running = quick or any(option is not None for option in given)
    require(
        not (print_card and (show or running or as_json)), "--card goes with --model only: leave the other options out."
    )
    require(show is None or not (running or model), "--show goes with --json only: leave the other options out.")
    if show is not None:
        from ....evals.mini.results import Results

        _report(Results.load(show), as_json)
        return
    model = model or "tiny"
    folder = trained_folder(model)

    from ....evals.families import FAMILIES, find_family
    from ....evals.mini.card.page import card

    if print_card:
        typer.echo(card(folder), nl=False)
        return
    names = tuple(map(find_family, families or FAMILIES))
    rates = _known_rates(folder, names) if quick else None
    has_table = (folder / TABLE).is_file()
    require(has_table, f"'{model}' has no {TABLE}, which the mini-suite needs: make it with `uncode count --out`.")

    from ....evals.mini.job import Job

    per_family = problems or (QUICK_PROBLEMS if quick else PROBLEMS)
    job = Job(model, device, dtype, per_family, batch or _batch_size(device), seed or 0, rates, out, names, draw)
    _report(_run(job, workers or 1, out), as_json)


def _batch_size(device: str | None) -> int:
    from ....backbones.loading.device import usual_device

    return GPU_BATCH if (device or usual_device()).startswith("cuda") else BATCH


def _known_rates(folder: Path, families: tuple[str, ...]) -> dict[str, float]:
    """Uncode's rates in the results of the model in a folder."""
    from ....evals.mini.folder import results_of

    results = results_of(folder)
    return {name: results.rate(name) for name in families}


def _run(job: Job, workers: int, out: Path | None) -> Results:
    from ...progress import eval_bar

    try:
        with eval_bar("mini") as on_progress:
            return job.run(workers, on_progress)
    except KeyboardInterrupt:
        resumes = f"'{out}' holds the answers so far, and the same command resumes there"
        typer.echo(f"stopped; {'nothing was kept: give --out DIR to keep it' if out is None else resumes}", err=True)
        raise


def _report(results: Results, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(asdict(results), indent=1))
    else:
        _print(results)


def _print(results: Results) -> None:
    from ....evals.mini import report

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


def _show(console: Console, table: Table) -> None:
    from rich.table import Table as Grid

    shown = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for number, title in enumerate(table.titles):
        shown.add_column(title, justify="right" if number else "left", no_wrap=True)
    for row in table.rows:
        shown.add_row(*row)
    print_whole(console, shown)
