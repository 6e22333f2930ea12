"""`uncode calibrate`: choose Uncode's rate for a task without labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ....core.errors import UncodeError, require
from ... import options as shared
from ...outputs import check_output, check_plot, check_run_folder
from ...printing import grid, loading, printing, resumable

if TYPE_CHECKING:
    from ....core.pieces.policy import Sampler
    from ....evals.run.calibrate import RateChoice

SUMMARY = "Choose Uncode's rate for a task without labels."
DEFAULT_RATES, DEFAULT_EXAMPLES = "0,0.25,0.5,1.0", 100


def command(
    task: Annotated[
        str, Argument(metavar="TASK", help="A task; see `uncode tasks`.", autocompletion=shared.complete_task)
    ],
    model: shared.Model = "tiny",
    sampler: Annotated[str, Option("--sampler", metavar="NAME", help="An Uncode preset.")] = "uncode",
    settings: shared.SamplerSettings = None,
    frequency: shared.Frequency = None,
    rates: Annotated[str, Option(metavar="RATE,...", help="Rates to try.")] = DEFAULT_RATES,
    examples: Annotated[
        int, Option("--n", min=1, metavar="N", help="Examples to decode at each rate.")
    ] = DEFAULT_EXAMPLES,
    labels: Annotated[
        bool, Option("--labels", help="Grade the answers too: accuracy at each rate, and Pearson's r.")
    ] = False,
    plot: Annotated[
        Path | None, Option(metavar="FILE", help="Draw entropy (and accuracy) against the rate: .png, .pdf or .svg.")
    ] = None,
    seed: shared.Seed = 0,
    batch: shared.Batch = shared.DEFAULT_EVAL_BATCH,
    data: shared.Data = None,
    device: shared.Device = None,
    dtype: shared.Dtype = None,
    weights: shared.Weights = None,
    revision: shared.Revision = None,
    out: Annotated[
        Path | None, Option(metavar="FILE", help="The sampler file with the chosen rate.  [default: TASK.toml]")
    ] = None,
    run: Annotated[
        Path | None, Option("--run", metavar="DIR", help="The folder for the answers.  [default: runs/calibrate-TASK]")
    ] = None,
    force: shared.Force = False,
    as_json: shared.Json = False,
) -> None:
    """Decode some examples of a task at several rates, and choose the rate with the least mean predictive entropy.

    No label is read for the choice (the paper's appendix on adaptive lambda). The chosen sampler is written to a file
    that `--sampler` of other commands takes. The same command resumes a run that was stopped.

    Examples:

      uncode calibrate mini_story --n 16 --rates 0,0.1,0.5
      uncode calibrate gsm8k --model GSAI-ML/LLaDA-8B-Instruct --frequency llada --data ./data
      uncode calibrate mini_sudoku --n 32 --labels --plot sudoku.png
    """
    from ....evals.tasks import find_task

    chosen = find_task(task)
    candidates = read_rates(rates)
    options = _options(sampler, settings, frequency)
    target, folder = out or Path(f"{chosen.name}.toml"), run or Path("runs") / f"calibrate-{chosen.name}"
    check_output(target, "--out", "sampler file", force)
    if plot is not None:
        check_plot(plot, (".png", ".pdf", ".svg"), force)
    check_run_folder(folder)
    with loading():
        from ....evals.run.calibrate import RateCalibration
        from ....evals.run.config import EvalConfig, SamplerEntry
        from ....evals.run.models.load_model import load_model
        from ....evals.run.options import RunOptions
        from ...progress import eval_bar

        entry = SamplerEntry(sampler, sampler, options)
        config = EvalConfig("calibrate", "", (model,), (chosen.name,), (entry,))
        evaluated = load_model(
            model, config, device=device, dtype=dtype, weights=weights, revision=revision, frequency=frequency
        )
    calibration = RateCalibration(evaluated, chosen, entry, candidates, seed)
    with resumable(folder), eval_bar(f"calibrate {chosen.name}") as on_progress:
        choice = calibration.run(examples, folder, RunOptions(batch, data), on_progress, labels)
    write_sampler(evaluated.prepare(entry, chosen.settings, {"rate": choice.rate}).sampler, target, force)
    if plot is not None:
        from ....evals.run.rate_figure import draw_rates

        draw_rates(choice, chosen.title, plot)
    _show(choice, labels, target, as_json)


def read_rates(text: str) -> tuple[float, ...]:
    """The candidates of `--rates`."""
    try:
        found = tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise UncodeError(f"--rates takes numbers with commas between them, not '{text}'.") from None
    require(all(0 <= rate < float("inf") for rate in found), f"--rates must be 0 or more, not '{text}'.")
    require(len(set(found)) > 1, f"--rates needs at least two different rates to choose from, not '{text}'.")
    return tuple(dict.fromkeys(found))


def _options(sampler: str, settings: list[str] | None, frequency: str | None) -> dict[str, Any]:
    from ....samplers.catalog import find

    names = [option.name for option in find(sampler).options]
    require("rate" in names, f"the sampler '{sampler}' has no rate to choose: give an Uncode preset.")
    options = shared.read_settings(sampler, settings, frequency)
    require("rate" not in options, "the rate is what is chosen: leave --set rate out.")
    return options


def write_sampler(sampler: Sampler, target: Path, force: bool) -> None:
    """Write the sampler without its stop rule, which belongs to the run."""
    from ....core.pieces.stop import AtTheEnd

    sampler.stopping(AtTheEnd()).save(target, force=force)


def _show(choice: RateChoice, labels: bool, target: Path, as_json: bool) -> None:
    from ....evals.run.calibrate import accuracies, correlation

    right = accuracies(choice) if labels else {}
    found = correlation(choice) if labels else None
    if as_json:
        rows = [
            {"rate": rate, "entropy": entropy, "accuracy": right[rate].estimate if labels else None}
            for rate, entropy in choice.entropies.items()
        ]
        data = {
            "rate": choice.rate,
            "rates": rows,
            "pearson": found.estimate if found else None,
            "sampler": str(target),
        }
        typer.echo(json.dumps(data, indent=2))
        return
    lines = list[tuple[str, ...]]()
    for rate, entropy in choice.entropies.items():
        accuracy = [right[rate].percent().replace(" %", "", 1)] if labels else []
        lines.append((f"{rate:g}", f"{entropy:.4f}", *accuracy, "chosen" if rate == choice.rate else ""))
    with printing() as console:
        console.print(grid(("rate", "mean predictive entropy", *(["accuracy, %"] if labels else []), ""), lines))
        if found is not None:
            console.print(f"\nPearson's r of entropy and accuracy: {found:.2f} (95 % interval)")
        elif labels:
            console.print("\nPearson's r: none, because the accuracy or the entropy is the same at every rate.")
    typer.echo(f"{target}: the sampler with rate {choice.rate:g}.", err=True)
