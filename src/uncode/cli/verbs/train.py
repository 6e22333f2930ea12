"""`uncode train`: make a small masked diffusion model by a training config."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...core.support.paths import make_folder
from ..options import Device

if TYPE_CHECKING:
    from ...train.config import TrainConfig
    from ...train.run import OnProgress, Progress, Run
    from ...train.shards import Shards

SUMMARY = "Train a small masked diffusion model."


def complete_config(incomplete: str) -> list[str]:
    from ...train.config import package_configs

    return [name for name in package_configs() if name.startswith(incomplete)]


def command(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG",
            help="A training config: tiny, smoke, or a file of your own (.toml).",
            autocompletion=complete_config,
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the model and its checkpoint go.")],
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the examples are.  [default: examples in --out]")
    ] = None,
    only_prepare: Annotated[bool, typer.Option("--prepare", help="Make the examples, and stop there.")] = False,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Another seed than the config's.")] = None,
    device: Device = None,
) -> None:
    """Train a model, from examples that are drawn first if they are not there; go on where it was interrupted.

    Drawing examples needs the extra `train`; training from them does not.

    Examples:

      uncode train smoke --out smoke
      uncode train tiny --out mine --prepare
      uncode train tiny --out mine --device cuda --seed 1
    """
    from ...train.checkpoint import check_folder
    from ...train.config import TrainConfig
    from ...train.prepare import check_can_draw, load_examples
    from ...train.shards import examples_file

    found = TrainConfig.load(config)
    chosen = found if seed is None else found.seeded(seed)
    folder = data or _examples_folder(out)
    check_folder(out)
    if not only_prepare and _is_over(chosen, out):
        return
    examples = None
    if only_prepare or not examples_file(folder).is_file():
        check_can_draw(chosen)
    else:
        examples = load_examples(chosen, folder)

    from ...backbones.loading.device import parse_device
    from ...files import only_one

    where = parse_device(device)
    make_folder(out)
    with only_one(out / "training.lock", out, "training"):
        examples = _draw(chosen, folder) if examples is None else examples
        if not only_prepare:
            from ...train.run import Run

            _train(Run(chosen, examples, where), folder, out)


def _examples_folder(out: Path) -> Path:
    """The folder of the training examples in a run's folder. 0.1.0 called it `lessons`, which is still used."""
    only_old = (out / "lessons").is_dir() and not (out / "examples").is_dir()
    return out / ("lessons" if only_old else "examples")


def _is_over(config: TrainConfig, out: Path) -> bool:
    """Whether the run in a folder is finished, which is said; an error if it is the run of another config."""
    from ...train.checkpoint import FILE, MODEL, check_same_config, is_finished

    check_same_config(out / FILE, config)
    finished = is_finished(out, config)
    if finished:
        typer.echo(
            f"{out}: all {config.schedule.steps:,} steps are done, and the model is in '{out / MODEL}'; to train it "
            f"again, choose another --out or delete '{out / FILE}'."
        )
    return finished


def _draw(config: TrainConfig, folder: Path) -> Shards:
    from ...train.prepare import prepare
    from ...train.shards import FILE

    with _drawing(sum(config.examples.rows)) as on_progress:
        examples = prepare(config, folder, on_progress)
    size = f"{len(examples.tokens):,} tokens, {(folder / FILE).stat().st_size / 1e6:.1f} MB"
    typer.echo(f"{folder / FILE}: {len(examples):,} examples, {size}.", err=True)
    return examples


def _train(run: Run, folder: Path, out: Path) -> None:
    from ...train.checkpoint import MODEL
    from ...train.export import export

    if run.resume(out):
        typer.echo(f"going on at step {run.progress.step:,}.", err=True)
    try:
        with _training(run.config) as on_progress:
            run.train(out, on_progress)
    except KeyboardInterrupt:
        typer.echo(f"stopped at step {run.progress.step:,}; the same command goes on from there.", err=True)
        raise
    export(run, folder, out / MODEL)
    progress = run.progress
    typer.echo(
        f"{out / MODEL}: {run.network.shape.parameters / 1e6:.2f} M parameters, {progress.step:,} steps, "
        f"{progress.tokens / 1e6:,.1f} M tokens in {progress.seconds:.0f} s, loss {progress.curve[-1][1]:.4f}."
    )


@contextmanager
def _drawing(total: int) -> Iterator[Callable[[str, int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (TextColumn("drawing {task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("examples", total=2 * total)  # drawn, then turned into tokens
        yield lambda name, count: bar.update(task, advance=count, description=name.removeprefix("mini_"))


@contextmanager
def _training(config: TrainConfig) -> Iterator[OnProgress]:
    """A bar with loss and tokens a second; where there is no terminal, a line now and then."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    steps = config.schedule.steps
    if not console.is_terminal:
        yield lambda p: console.print(_told(p), highlight=False) if p.step % max(50, steps // 20) < 50 else None
        return
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Bar(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task("", total=steps)
        yield lambda progress: bar.update(task, completed=progress.step, description=_told(progress))


def _told(progress: Progress) -> str:
    speed = progress.tokens / max(progress.seconds, 1e-3)
    return f"step {progress.step:,}, loss {progress.curve[-1][1]:.4f}, {speed / 1e3:,.0f} k tokens a second"
