"""`uncode eval`: models, samplers and benchmarks of a config, into a run folder."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from ....core.errors import require
from ...options import (
    DEFAULT_EVAL_BATCH,
    Batch,
    Data,
    Device,
    Dtype,
    Force,
    Json,
    Revision,
    Weights,
    complete_model,
    complete_table,
)
from ...outputs import check_output, check_run_folder
from ...printing import grid, loading, printing, resumable

if TYPE_CHECKING:
    from ....evals.run.config import EvalConfig
    from ....evals.run.runner import Runner

SUMMARY = "Run a benchmark config: the paper's tables, or your own."
LONG_SECONDS = 60.0
"""Runs that may take longer announce their time and memory."""


def complete_config(incomplete: str) -> list[str]:
    from ....evals.run.config import PACKAGE_CONFIGS

    return [name for name in PACKAGE_CONFIGS if name.startswith(incomplete)]


def command(
    config: Annotated[
        str | None,
        Argument(
            metavar="CONFIG",
            help="A config of the package (see --list), or a config file (.toml).",
            autocompletion=complete_config,
        ),
    ] = None,
    list_configs: Annotated[bool, Option("--list", help="List the configs of the package.")] = False,
    models: Annotated[
        list[str] | None,
        Option(
            "--model",
            metavar="MODEL",
            help="This model instead of the config's; may be repeated.",
            autocompletion=complete_model,
        ),
    ] = None,
    tasks: Annotated[str | None, Option(metavar="NAME,...", help="Only these tasks of the config.")] = None,
    samplers: Annotated[str | None, Option(metavar="LABEL,...", help="Only these samplers of the config.")] = None,
    limit: Annotated[int | None, Option(min=1, metavar="N", help="Only the first N examples of each task.")] = None,
    seed: Annotated[int | None, Option(metavar="N", help="Seed of all randomness.  [default: the config's]")] = None,
    batch: Batch = DEFAULT_EVAL_BATCH,
    data: Data = None,
    frequency: Annotated[
        str | None,
        Option(
            metavar="TABLE",
            help="This frequency table instead of the config's: a file or a name.",
            autocompletion=complete_table,
        ),
    ] = None,
    device: Device = None,
    dtype: Dtype = None,
    weights: Weights = None,
    revision: Revision = None,
    backend: Annotated[
        str | None,
        Option(metavar="NAME", help="For autoregressive models: transformers or vllm.  [default: transformers]"),
    ] = None,
    traces: Annotated[bool, Option("--traces", help="Keep the trace of every answer, in RUN/traces.")] = False,
    observe_span: Annotated[
        bool,
        Option("--observe-span", help="Record the entropy of every mask at every step, for `uncode analyze entropy`."),
    ] = False,
    view: Annotated[
        Path | None, Option(metavar="FILE", help="Write a page (HTML) that replays the answers; keeps the traces too.")
    ] = None,
    out: Annotated[
        Path | None, Option(metavar="DIR", help="The run folder; a run is resumed there.  [default: runs/CONFIG]")
    ] = None,
    ray: Annotated[
        str | None, Option(metavar="[ADDRESS]", help="Run on a Ray cluster: the one at ADDRESS, or a local one.")
    ] = None,
    workers: Annotated[
        int | None, Option(min=1, metavar="N", help="Workers of --ray.  [default: one per GPU, or per CPU]")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run every sampler of a config on every task with every model, and write each answer to a run folder.

    The same command resumes a run that was stopped, and repeats nothing. `uncode report RUN` prints the tables,
    `uncode regrade RUN` grades the answers again. The processes of `accelerate launch -m uncode eval ...` and of
    `torchrun --nproc_per_node 8 -m uncode eval ...` share the run, and so do the workers of --ray.

    Examples:

      uncode eval --list
      uncode eval mini --tasks mini_story --samplers confidence,uncode --limit 20 --out story
      uncode eval mini --tasks mini_story --samplers confidence,uncode --limit 20 --out story --view story.html
      uncode eval main --data ./data --tasks gsm8k,sudoku --batch 16
      uncode eval main --model ./my-llada --frequency llada --out my-llada
      uncode eval fast-dllm --tasks gsm8k --limit 200 --batch 16
      uncode eval main --data ./data --ray --workers 4
    """
    if list_configs:
        _list(as_json)
        return
    if view is not None:
        check_output(view, "--view", "page", force)
    require(config is not None, "there is nothing to run: give a config, or --list to see those of the package.")
    require(workers is None or ray is not None, "--workers is for --ray: leave it out.")
    from ....evals.run.config import EvalConfig

    chosen = EvalConfig.load(str(config)).narrowed(
        models or (), _names(tasks, "--tasks"), _names(samplers, "--samplers")
    )
    chosen = chosen if seed is None else chosen.with_seed(seed)
    folder = out or Path("runs") / chosen.name
    check_run_folder(folder)
    with loading():
        from ....evals.run.models.causal_checkpoint import check_model_name
        from ....evals.run.models.load_model import load_model
        from ....evals.run.options import RunOptions
        from ....evals.run.processes import ProcessPlace
        from ....evals.run.runner import Runner

        for name in chosen.models:
            check_model_name(name)
        if frequency is None:
            _check_tables(chosen)
        place = ProcessPlace.from_environment()
        require(ray is None or place.processes == 1, "--ray starts its own workers: leave out --ray or the launcher.")
        load = partial(
            load_model,
            config=chosen,
            device=place.device(device),
            dtype=dtype,
            weights=weights,
            revision=revision,
            frequency=frequency,
            backend=backend,
        )
        kept = (traces or view is not None, observe_span)
        options = RunOptions(batch, data, limit, *kept, place.process, place.processes)
        runner = Runner(chosen, folder, load, options)
    if _run(runner, folder, as_json, ray, workers) and view is not None:
        _write_view(view, folder, runner)


def _write_view(path: Path, folder: Path, runner: Runner) -> None:
    from ...answering.pages import MAX_ROWS, read_trajectories, write_view

    found, left_out = read_trajectories([folder], None, MAX_ROWS)
    write_view(path, found, runner.config.title)
    if left_out:
        typer.echo(f"{left_out} more rows are not on the page: `uncode view {folder} --row N` chooses rows.", err=True)
    if (missing := runner.total - len(found) - left_out) > 0:
        typer.echo(f"answers without a trace: {missing:,} of {runner.total:,}, decoded without --traces.", err=True)


def _names(text: str | None, option: str) -> list[str]:
    """The names of an option. An empty value is an error: it may be a variable of a shell that is not set."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    require(
        text is None or bool(names), f"{option} names nothing: give names with commas between them, or leave it out."
    )
    return names


def _list(as_json: bool) -> None:
    from ....evals.run.config import PACKAGE_CONFIGS, EvalConfig

    configs = [EvalConfig.load(name) for name in PACKAGE_CONFIGS]
    if as_json:
        rows = [{"name": c.name, "title": c.title, "models": c.models, "tasks": c.tasks} for c in configs]
        typer.echo(json.dumps(rows, indent=2))
        return
    counts = [(c.name, c.title, *(str(len(part)) for part in (c.models, c.tasks, c.samplers))) for c in configs]
    with printing() as console:
        console.print(grid(("config", "what it runs", "models", "tasks", "samplers"), counts, left=range(2)))


def _check_tables(config: EvalConfig) -> None:
    """Raise if a frequency table that the config names is missing, before any model is loaded."""
    from ....frequency.names import find

    for entry in config.samplers:
        table = entry.options.get("frequency")
        require(
            table is None or find(table).is_file(),
            f"the sampler '{entry.label}' needs the frequency table '{table}', which is not here: count it with "
            "`uncode count`, or give another with --frequency.",
        )


def _run(runner: Runner, folder: Path, as_json: bool, ray: str | None, workers: int | None) -> bool:
    """Run, and say whether the run is complete."""
    import warnings

    from ....sandbox import NoJail
    from ...progress import eval_bar
    from ...run_time import announce_time

    warnings.simplefilter("once", NoJail)
    place = runner.options
    with resumable(folder), eval_bar(runner.config.name) as on_progress:
        runner.on_progress = on_progress
        runner.on_start = partial(announce_time, least_seconds=LONG_SECONDS)
        if ray is None:
            is_complete = runner.run()
        else:
            from ....evals.run.on_ray import run_on_ray

            is_complete = run_on_ray(runner, ray, workers)
    if not is_complete:
        typer.echo(f"process {place.process} of {place.processes} is done; others are still at work", err=True)
        return False
    if as_json:
        typer.echo(json.dumps({"run": str(folder), "samples": runner.total}))
    else:
        typer.echo(f"{folder}: the run is complete; `uncode report {folder}` prints its tables.", err=True)
        _print_published(runner, folder)
    return True


def _print_published(runner: Runner, folder: Path) -> None:
    """Our figures beside those that the config quotes."""
    if not runner.config.published:
        return
    from ....evals.report.scores import read_runs
    from ...report_text import print_published

    print_published(read_runs([folder]))
