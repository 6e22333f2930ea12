"""`uncode train`: train a small masked diffusion model from a training config."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from ...core.support.reprs import counted
from ...util.paths import check_folder_can_be_made, make_folder
from ..options import Device

if TYPE_CHECKING:
    from ...train.config import TrainConfig
    from ...train.examples.shards import Shards
    from ...train.run import Run

SUMMARY = "Train a small masked diffusion model."


def complete_config(incomplete: str) -> list[str]:
    from ...train.config import package_configs

    return [name for name in package_configs() if name.startswith(incomplete)]


def command(
    config: Annotated[
        str,
        Argument(
            metavar="CONFIG",
            help="A training config: smoke, or a file of your own (.toml).",
            autocompletion=complete_config,
        ),
    ],
    out: Annotated[Path, Option(metavar="DIR", help="The folder for the model and its checkpoint.")],
    data: Annotated[
        Path | None, Option(metavar="DIR", help="The folder of the training examples.  [default: examples in --out]")
    ] = None,
    only_prepare: Annotated[bool, Option("--prepare", help="Draw the training examples, then stop.")] = False,
    seed: Annotated[int | None, Option(metavar="N", help="A seed that replaces the config's.")] = None,
    device: Device = None,
) -> None:
    """Train a model. Missing training examples are drawn first. An interrupted run is resumed.

    Examples:

      uncode train smoke --out smoke
      uncode train mine.toml --out mine --prepare
      uncode train mine.toml --out mine --device cuda --seed 1
    """
    from ...train.config import TrainConfig
    from ...train.examples.prepare import check_can_draw, load_examples
    from ...train.examples.shards import EXAMPLES_FILE

    found = TrainConfig.load(config)
    chosen = found if seed is None else found.with_seed(seed)
    folder = data or out / "examples"
    check_folder_can_be_made(out)
    if not only_prepare and _report_if_finished(chosen, out):
        return
    examples = None
    if only_prepare or not (folder / EXAMPLES_FILE).is_file():
        check_can_draw(chosen)
    else:
        examples = load_examples(chosen, folder)

    from ...backbones.loading.device import parse_device
    from ...util.files import exclusive_lock

    parsed = parse_device(device)
    make_folder(out)
    with exclusive_lock(out / "training.lock", out, "training"):
        examples = _draw_examples(chosen, folder) if examples is None else examples
        if not only_prepare:
            from ...train.run import Run

            _train(Run(chosen, examples, parsed), folder, out)


def _report_if_finished(config: TrainConfig, out: Path) -> bool:
    """Print a message and return True if the run in a folder is finished. Raise if another config began it."""
    from ...train.checkpoint import CHECKPOINT_FILE, MODEL_FOLDER, check_same_config, is_finished

    check_same_config(out / CHECKPOINT_FILE, config)
    finished = is_finished(out, config)
    if finished:
        typer.echo(
            f"{out}: done after {counted(config.schedule.steps, 'step')}, and the model is in "
            f"'{out / MODEL_FOLDER}'; to train it again, choose another --out or delete '{out / CHECKPOINT_FILE}'."
        )
    return finished


def _draw_examples(config: TrainConfig, folder: Path) -> Shards:
    from ...train.examples.prepare import prepare
    from ...train.examples.shards import EXAMPLES_FILE
    from ..progress import drawing_bar

    with drawing_bar(2 * sum(config.examples.rows)) as on_progress:
        examples = prepare(config, folder, on_progress)  # each is drawn, then tokenized
    size = f"{len(examples.tokens):,} tokens, {(folder / EXAMPLES_FILE).stat().st_size / 1e6:.1f} MB"
    typer.echo(f"{folder / EXAMPLES_FILE}: {counted(len(examples), 'example')}, {size}.", err=True)
    return examples


def _train(run: Run, folder: Path, out: Path) -> None:
    from ...train.checkpoint import MODEL_FOLDER
    from ...train.export import export
    from ..progress import training_bar

    if run.resume(out):
        typer.echo(f"resuming at step {run.progress.step:,}.", err=True)
    try:
        with training_bar(run.config.schedule.steps) as on_progress:
            run.train(out, on_progress)
    except KeyboardInterrupt:
        typer.echo(f"stopped at step {run.progress.step:,}; the same command resumes there.", err=True)
        raise
    export(run, folder, out / MODEL_FOLDER)
    progress = run.progress
    typer.echo(
        f"{out / MODEL_FOLDER}: {run.network.shape.parameters / 1e6:.2f} M parameters, "
        f"{counted(progress.step, 'step')}, {progress.tokens / 1e6:,.1f} M tokens in {progress.seconds:.0f} s, "
        f"loss {progress.curve[-1][1]:.4f}."
    )
