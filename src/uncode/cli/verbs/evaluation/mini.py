"""`uncode mini`: the paper's Table 1 on a small model and small problems."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....core.errors import require
from ....models import TABLE
from ...board_text import check_plot, show_board, stored_rows_note
from ...options import Device, Dtype, Json, complete_family, complete_samplers, trained_folder
from ...outputs import check_run_folder
from ...printing import print_table, printing

if TYPE_CHECKING:
    from ....evals.suite.job import Job
    from ....evals.suite.results import Results

SUMMARY = "The paper's main table in miniature, on a small model."
MAX_WORKERS = 16

PROBLEMS, QUICK_PROBLEMS = 1024, 4
"""Problems per family, in a full and in a quick run."""
BATCH, GPU_BATCH = 256, 1024
"""Problems per batch, on a CPU and on a GPU."""


Option = typer.Option
ModelName = Annotated[
    str | None,
    Option(metavar="MODEL", help="tiny, or the folder of a model that `uncode train` made.  [default: tiny]"),
]
Quick = Annotated[bool, Option("--quick", help="Six presets and few problems, with the rates in the model's results.")]
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
    int | None, Option(min=1, max=MAX_WORKERS, metavar="N", help="Processes, which share the cells.  [default: 1]")
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
All = Annotated[bool, Option("--all", help="Every preset, as a leaderboard: accuracy against forwards, paired tests.")]
Second = Annotated[
    str | None, Option(metavar="FOLDER", help="With --all: the same model, trained with another seed, as a second run.")
]
Samplers = Annotated[
    str | None,
    Option(
        metavar="NAME,...",
        help="With --all: only these presets and sampler files, with commas between them.",
        autocompletion=complete_samplers,
    ),
]
Stored = Annotated[
    bool,
    Option("--stored", help="With --all and --samplers: take all other rows from the model's stored results."),
]
Plot = Annotated[
    Path | None, Option(metavar="FILE", help="With --all: draw accuracy against forwards, as .svg or .png.")
]


def command(
    model: ModelName = None,
    quick: Quick = False,
    every: All = False,
    second: Second = None,
    samplers: Samplers = None,
    stored: Stored = False,
    families: Families = None,
    problems: Problems = None,
    batch: BatchSize = None,
    workers: Workers = None,
    seed: Seed = None,
    draw: Draw = None,
    device: Device = None,
    dtype: Dtype = None,
    out: Out = None,
    plot: Plot = None,
    show: Show = None,
    print_card: Card = False,
    as_json: Json = False,
) -> None:
    """Decode held-out problems of all seven families with the main presets, and print the accuracies.

    Uncode's rate is chosen per family without labels: of seven rates, the one with the smallest mean predictive
    entropy on 64 other problems, independent of --problems. That takes minutes on a CPU. --quick uses known rates.
    This is the config `mini` of `uncode eval`, with its own tables. --all adds the presets that the paper does not have
    and prints a leaderboard; a preset that the model cannot be decoded with is named with the reason.

    Examples:

      uncode mini --quick
      uncode mini --card
      uncode mini --quick --family story --draw 40
      uncode mini --device cuda --workers 8 --out mini
      uncode mini --all --device cuda --workers 8 --second out/model --out board --plot board.svg
      uncode mini --all --quick --family sudoku --samplers left_to_right,mine.toml
      uncode mini --all --samplers mine.toml --stored --problems 64
      uncode mini --show mini/results.json
    """
    given = (out, families, problems, batch, workers, seed, draw, device, dtype, second, samplers)
    running = quick or stored or any(option is not None for option in given)
    _check_show(show, print_card, model, running, as_json, every)
    _check_board(every, quick, {"--second": second, "--samplers": samplers, "--plot": plot})
    has_rows = every and samplers is not None
    require(not stored or has_rows, "--stored adds rows to a leaderboard: give --all and --samplers too.")
    if show is not None:
        _report(_stored(show, every), every, plot, as_json)
    elif print_card:
        from ....evals.suite.card.page import card

        typer.echo(card(trained_folder(model or "tiny")), nl=False)
    else:
        models = [model or "tiny"] if second is None else [model or "tiny", second]
        problems = problems or (QUICK_PROBLEMS if quick else PROBLEMS)
        settings = (device, dtype, problems, batch, seed or 0)
        jobs = _jobs(models, settings, quick, out, families or [], draw, every, samplers)
        known = _stored_rows(jobs) if stored else [None] * len(jobs)
        runs = [_run(job, workers or 1, rows) for job, rows in zip(jobs, known, strict=True)]
        _report(runs, every, plot, as_json)


def _check_show(show: Path | None, card: bool, model: str | None, running: bool, as_json: bool, every: bool) -> None:
    require(
        not (card and (show or running or as_json or every)),
        "--card goes with --model only: leave the other options out.",
    )
    require(
        show is None or not (running or model),
        "--show goes with --json, --all and --plot only: leave the other options out.",
    )


def _check_board(every: bool, quick: bool, options: dict[str, str | Path | None]) -> None:
    """Raise if an option of the leaderboard is given without it, or with --quick where that has no rates."""
    for name, value in options.items():
        require(every or value is None, f"{name} is for the leaderboard: add --all, or leave it out.")
    is_quick = quick and options["--second"] is not None
    require(not is_quick, "--quick takes the rates of one model: leave out --quick or --second.")
    if isinstance(plot := options["--plot"], Path):
        check_plot(plot)


def _jobs(
    models: list[str],
    settings: tuple[str | None, str | None, int, int | None, int],
    quick: bool,
    out: Path | None,
    families: list[str],
    draw: int | None,
    every: bool,
    samplers: str | None,
) -> list[Job]:
    """The run of each model. That of the second one is in a folder inside the first one's."""
    folders = [trained_folder(name) for name in models]
    if out is not None:
        check_run_folder(out)

    from ....evals.suite.families import FAMILIES, find_family
    from ....evals.suite.folder import SECOND_FOLDER, check_seeds

    names = tuple(map(find_family, families or FAMILIES))
    rates = _known_rates(folders[0], names) if quick else None
    for name, folder in zip(models, folders, strict=True):
        has_table = every or (folder / TABLE).is_file()
        require(has_table, f"'{name}' has no {TABLE}, which the mini-suite needs: make it with `uncode count --out`.")
    check_seeds(folders)

    from ....evals.suite.job import Job

    device, dtype, problems, batch, seed = settings
    known = (device, dtype, problems, batch or _batch_size(device), seed, rates)
    rows = tuple(name.strip() for name in (samplers or "").split(",") if name.strip())
    require(samplers is None or bool(rows), "--samplers names nothing: give names with commas, or leave it out.")
    for folder in folders:
        _check_sampler_files(rows, folder)
    outs = (out, None if out is None else out / SECOND_FOLDER)
    return [Job(name, *known, to, names, draw, every, rows) for name, to in zip(models, outs, strict=False)]


def _check_sampler_files(rows: tuple[str, ...], folder: Path) -> None:
    """Raise if a sampler file cannot be read with the frequency table of the model in a folder."""
    from ....samplers.catalog import is_file
    from ....samplers.resolve import resolve

    table = folder / TABLE if (folder / TABLE).is_file() else None
    for name in rows:
        if is_file(name):
            resolve(name, table=table)


def _stored(file: Path, every: bool) -> list[Results]:
    """The results in a file; for a leaderboard also those of the second seed, in the folder beside it."""
    from ....evals.suite.folder import SECOND_FOLDER
    from ....evals.suite.results import Results

    beside = file.parent / SECOND_FOLDER / file.name
    return [Results.load(one) for one in ([file, beside] if every and beside.is_file() else [file])]


def _batch_size(device: str | None) -> int:
    from ....backbones.loading.device import usual_device

    return GPU_BATCH if (device or usual_device()).startswith("cuda") else BATCH


def _known_rates(folder: Path, families: tuple[str, ...]) -> dict[str, float]:
    """Uncode's rates in the results of the model in a folder."""
    from ....evals.suite.folder import results_of

    results = results_of(folder)
    return {name: results.rate(name) for name in families}


def _stored_rows(jobs: list[Job]) -> list[Results]:
    from ....evals.suite.stored_rows import stored_results

    return stored_results(jobs)


def _run(job: Job, workers: int, stored: Results | None) -> Results:
    from ....evals.suite.stored_rows import run_beside
    from ...progress import eval_bar
    from ...run_time import announce_time

    try:
        with eval_bar("mini") as on_progress:
            if stored is None:  # with known rates: how long the choice of others takes is not estimated
                return job.run(workers, on_progress, announce_time if job.rates is not None else None)
            return run_beside(job, stored, workers, on_progress)
    except KeyboardInterrupt:
        out = job.folder
        resumes = f"'{out}' holds the answers so far, and the same command resumes there"
        typer.echo(f"stopped; {'nothing was kept: give --out DIR to keep it' if out is None else resumes}", err=True)
        raise


def _report(runs: list[Results], every: bool, plot: Path | None, as_json: bool) -> None:
    if every:
        show_board(runs, plot, as_json)
    elif as_json:
        typer.echo(json.dumps(asdict(runs[0]), indent=1))
    else:
        _print(runs[0])


def _print(results: Results) -> None:
    from ....evals.suite import report

    about = results.about
    with printing() as console:
        console.print(f"{about['model']}: {about['problems']} held-out problems a family, per cent right\n")
        if origin := stored_rows_note(about):
            console.print(f"{origin}\n", markup=False, soft_wrap=True)
        print_table(console, report.accuracy(results))
        if results.entropies:
            console.print("\nthe mean predictive entropy at each rate, on problems without labels\n")
            print_table(console, report.rates(results))
        if results.biases:
            console.print("\nwhat confidence writes first (95 % intervals)\n")
            print_table(console, report.biases(results))
            console.print("\nwhen confidence writes each tenth of the span, from 0 (first) to 1 (last)\n")
            print_table(console, report.times(results))
