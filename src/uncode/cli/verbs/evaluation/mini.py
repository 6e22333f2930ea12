"""`uncode mini`: the paper's Table 1 on a small model and small problems."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ....core.errors import require
from ....models import TABLE
from ...options import Device, Dtype, Json, Weights, complete_family, complete_samplers, trained_folder
from ...outputs import check_plot, check_run_folder
from ...printing import print_table, printing

if TYPE_CHECKING:
    from rich.console import Console

    from ....evals.report.table import TextTable
    from ....evals.suite.board import Board
    from ....evals.suite.results import Results
    from ....evals.suite.run import SuiteRun

SUMMARY = "Run the paper's main table in miniature, on a small model."
MAX_WORKERS = 16

PROBLEMS, QUICK_PROBLEMS = 1024, 4
"""Problems per family, in a full and in a quick run."""
BATCH, GPU_BATCH = 256, 1024
"""Problems per batch, on a CPU and on a GPU."""
FIGURE_KINDS = (".svg", ".png")


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
Plot = Annotated[
    Path | None, Option(metavar="FILE", help="With --all: draw accuracy against forwards, as .svg or .png.")
]


def command(
    model: ModelName = None,
    quick: Quick = False,
    every: All = False,
    second: Second = None,
    samplers: Samplers = None,
    families: Families = None,
    problems: Problems = None,
    batch: BatchSize = None,
    workers: Workers = None,
    seed: Seed = None,
    draw: Draw = None,
    device: Device = None,
    dtype: Dtype = None,
    weights: Weights = None,
    out: Out = None,
    plot: Plot = None,
    show: Show = None,
    as_json: Json = False,
) -> None:
    """Decode held-out problems of all seven families with the main presets, and print the accuracies.

    Uncode's rate is chosen per family without labels: of seven rates, the one with the smallest mean predictive
    entropy on 64 other problems, independent of --problems. That takes minutes on a CPU. --quick uses known rates.
    This is the config `mini` of `uncode eval`, with its own tables. --all adds the presets that the paper does not have
    and prints a leaderboard; a preset that the model cannot be decoded with is named with the reason.

    Examples:

      uncode mini --quick
      uncode mini --quick --family story --draw 40
      uncode mini --device cuda --workers 8 --out mini
      uncode mini --all --device cuda --workers 8 --second out/model --out board --plot board.svg
      uncode mini --all --quick --family sudoku --samplers left_to_right,mine.toml
      uncode mini --show mini/results.json
    """
    given = (model, out, families, problems, batch, workers, seed, draw, device, dtype, weights, second, samplers)
    require(
        show is None or not (quick or any(option is not None for option in given)),
        "--show goes with --json, --all and --plot only: leave the other options out.",
    )
    for name, value in {"--second": second, "--samplers": samplers, "--plot": plot}.items():
        require(every or value is None, f"{name} is for the leaderboard: add --all, or leave it out.")
    require(not (quick and second), "--quick takes the rates of one model: leave out --quick or --second.")
    if plot is not None:
        check_plot(plot, FIGURE_KINDS, force=False)
    if show is not None:
        results = _results_in(show, every)
    else:
        names = [name.strip() for name in (samplers or "").split(",") if name.strip()]
        require(samplers is None or bool(names), "--samplers names nothing: give names with commas, or leave it out.")
        models = [model or "tiny", *([] if second is None else [second])]
        folders = _check_folders(models, out, every, names)
        chosen = _find_families(families or [])

        from ....backbones.loading.device import usual_device
        from ....evals.suite.folder import SECOND_FOLDER
        from ....evals.suite.run import SuiteRun

        on_gpu = (device or usual_device()).startswith("cuda")
        run = SuiteRun(
            model=models[0],
            device=device,
            dtype=dtype,
            problems=problems or (QUICK_PROBLEMS if quick else PROBLEMS),
            batch=batch or (GPU_BATCH if on_gpu else BATCH),
            seed=seed or 0,
            rates=_known_rates(folders[0], chosen) if quick else None,
            folder=out,
            families=chosen,
            draw=draw,
            every_preset=every,
            samplers=tuple(names),
            weights=weights,
        )
        runs = [run]
        if second is not None:
            runs.append(replace(run, model=second, folder=None if out is None else out / SECOND_FOLDER))
        results = [_run(one, workers or 1) for one in runs]
    if every:
        _show_board(results, plot, as_json)
    elif as_json:
        typer.echo(json.dumps(asdict(results[0]), indent=1))
    else:
        _print(results[0])


def _results_in(file: Path, every: bool) -> list[Results]:
    """The results in a file; for a leaderboard also those of the second seed, in the folder beside it."""
    from ....evals.suite.folder import SECOND_FOLDER
    from ....evals.suite.results import Results

    beside = file.parent / SECOND_FOLDER / file.name
    return [Results.load(one) for one in ([file, beside] if every and beside.is_file() else [file])]


def _check_folders(models: list[str], out: Path | None, every: bool, samplers: list[str]) -> list[Path]:
    """The folders of the models. Raise, before anything is loaded, if one of them or of the sampler files is wrong."""
    folders = [trained_folder(name) for name in models]
    if out is not None:
        check_run_folder(out)

    from ....evals.suite.folder import check_seeds

    for name, folder in zip(models, folders, strict=True):
        has_table = every or (folder / TABLE).is_file()
        require(has_table, f"'{name}' has no {TABLE}, which the mini-suite needs: make it with `uncode count --out`.")
    check_seeds(folders)
    if samplers:
        from ....samplers.catalog import is_file
        from ....samplers.resolve import resolve

        for folder in folders:
            table = folder / TABLE if (folder / TABLE).is_file() else None
            for name in filter(is_file, samplers):
                resolve(name, table=table)
    return folders


def _find_families(names: list[str]) -> tuple[str, ...]:
    from ....evals.suite.families import FAMILIES, find_family

    return tuple(map(find_family, names or FAMILIES))


def _known_rates(folder: Path, families: tuple[str, ...]) -> dict[str, float]:
    """Uncode's rates in the results of the model in a folder."""
    from ....evals.suite.folder import results_of

    results = results_of(folder)
    return {name: results.rate(name) for name in families}


def _run(run: SuiteRun, workers: int) -> Results:
    from ...progress import eval_bar
    from ...run_time import announce_time

    try:
        with eval_bar("mini") as on_progress:
            # how long the choice of rates takes is not estimated
            return run.run(workers, on_progress, announce_time if run.rates is not None else None)
    except KeyboardInterrupt:
        out = run.folder
        resumes = f"'{out}' holds the answers so far, and the same command resumes there"
        typer.echo(f"stopped; {'nothing was kept: give --out DIR to keep it' if out is None else resumes}", err=True)
        raise


def _print(results: Results) -> None:
    from ....evals.suite import report

    about = results.about
    with printing() as console:
        console.print(f"{about['model']}: {about['problems']} held-out problems a family, per cent right\n")
        print_table(console, report.accuracy(results))
        _print_reasoning(console, [report.reasoning(results)])
        if results.entropies:
            console.print("\nthe mean predictive entropy at each rate, on problems without labels\n")
            print_table(console, report.rates(results))
        if results.biases:
            console.print("\nwhat confidence writes first (95 % intervals)\n")
            print_table(console, report.biases(results))
            console.print("\nwhen confidence writes each tenth of the span, from 0 (first) to 1 (last)\n")
            print_table(console, report.times(results))


def _print_reasoning(console: Console, tables: Sequence[TextTable | None]) -> None:
    from ....evals.suite.report import SOUND

    measured = [table for table in tables if table is not None]
    if measured:
        console.print(f"\n{SOUND}; per cent, and a paired difference in points with its 95 % interval", soft_wrap=True)
    for table in measured:
        console.print()
        print_table(console, table)


def _show_board(runs: Sequence[Results], plot: Path | None, as_json: bool) -> None:
    """Print the leaderboard of one or two runs, and draw it if a file is given."""
    from ....evals.suite.board import Board
    from ....util.write import write_whole

    board = Board.of(runs)
    if plot is not None:
        from ....evals.suite.scatter import draw_board

        write_whole(plot, draw_board(board, plot.suffix.lower().removeprefix(".")))
    if as_json:
        typer.echo(json.dumps(_board_data(board), indent=1))
    else:
        _print_board(board)


def _print_board(board: Board) -> None:
    from ....evals.suite import report
    from ....evals.suite.board import NOT_RUN

    about = board.first.about
    with printing() as console:
        console.print(f"{about['model']}: {about['problems']} held-out problems a family, per cent right\n")
        print_table(console, report.standings(board))
        for seed in board.runs:
            console.print()
            print_table(console, report.by_family(board, seed))
        _print_reasoning(console, [report.reasoning_on(board, seed) for seed in board.runs])
        if len(board.names) > 1:
            console.print(
                "\neach row minus the one in the title, in points, with 95 % intervals (not corrected for their "
                "number); p-values of McNemar's exact test after Holm's correction over the table\n",
                soft_wrap=True,
            )
        for reference in board.references if len(board.names) > 1 else ():
            print_table(console, report.differences(board, reference))
            console.print()
        for name, why in board.without_row.items():
            if why != NOT_RUN:
                console.print(f"no row for {name}: {why}", markup=False, soft_wrap=True)
        rest = list(board.without_row.values()).count(NOT_RUN)
        if rest:
            console.print(f"no row for {rest} other presets: {NOT_RUN}")


def _sound_shares(run: Results, name: str) -> dict[str, float]:
    """The share of sound answers by family, where it was measured."""
    marks = {family: run.reasoned(name, [family]) for family in run.families_with_reasoning}
    return {family: float(of.mean()) for family, of in marks.items() if of is not None}


def _board_data(board: Board) -> dict[str, Any]:
    """The leaderboard for a program. Accuracies are shares, each with its interval."""
    found = {
        reference: {seed: board.differences(reference, seed) for seed in board.runs} for reference in board.references
    }
    rows = [
        {
            "name": name,
            "seeds": {
                seed: {
                    "average": one.average,
                    "forwards": one.forwards,
                    "on_front": name in board.fronts[seed],
                    "sound": _sound_shares(board.runs[seed], name),
                    "minus": {ref: of[seed][name]._asdict() for ref, of in found.items() if name in of[seed]},
                }
                for seed, one in board.standings[name].items()
            },
        }
        for name in board.names
    ]
    return {
        "rows": rows,
        "without_row": board.without_row,
        "about": {seed: run.about for seed, run in board.runs.items()},
    }
