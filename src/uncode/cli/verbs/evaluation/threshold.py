"""`uncode threshold`: choose the threshold of a sampler for a model, without labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from ....core.errors import require
from ... import options as shared
from ...outputs import check_output, check_run_folder
from ...printing import loading, resumable
from .calibrate import write_sampler

SUMMARY = "Choose a sampler's threshold for a model without labels."
BY_PROBABILITY = ("certain_first", "certain_first_fast", "fast_dllm")
"""The presets whose threshold is a probability."""
DEFAULT_EXAMPLES, DEFAULT_MASKS, DEFAULT_ERROR = 32, 8, 0.005


def command(
    tasks: Annotated[
        list[str], Argument(metavar="TASK...", help="Tasks; see `uncode tasks`.", autocompletion=shared.complete_task)
    ],
    model: shared.Model = "tiny",
    sampler: Annotated[
        str, Option("--sampler", metavar="NAME", help=f"{', '.join(BY_PROBABILITY[:2])} or fast_dllm.")
    ] = BY_PROBABILITY[0],
    settings: shared.SamplerSettings = None,
    frequency: shared.Frequency = None,
    examples: Annotated[int, Option("--n", min=1, metavar="N", help="Examples of each task.")] = DEFAULT_EXAMPLES,
    masks: Annotated[int, Option(min=1, metavar="N", help="How often each answer is masked.")] = DEFAULT_MASKS,
    max_error: Annotated[
        float, Option(metavar="SHARE", help="The largest share of masked answers that may have a wrong proposal.")
    ] = DEFAULT_ERROR,
    seed: shared.Seed = 0,
    batch: shared.Batch = shared.DEFAULT_EVAL_BATCH,
    data: shared.Data = None,
    device: shared.Device = None,
    dtype: shared.Dtype = None,
    weights: shared.Weights = None,
    revision: shared.Revision = None,
    out: Annotated[Path, Option(metavar="FILE", help="The sampler file with the chosen threshold.")] = Path(
        "threshold.toml"
    ),
    run: Annotated[Path, Option("--run", metavar="DIR", help="The folder for the answers.")] = Path("runs/threshold"),
    force: shared.Force = False,
    as_json: shared.Json = False,
) -> None:
    """Find a safe confidence threshold for a model.

    The model answers some examples from left to right. Parts of these answers are masked, and the model proposes
    tokens for them. The threshold is the lowest at which few masked answers have a wrong one. No label is
    read. The sampler is written to a file that `--sampler` of other commands takes. The same command resumes a run
    that was stopped.

    Examples:

      uncode threshold mini_story mini_countdown --n 16
      uncode threshold gsm8k humaneval --model GSAI-ML/LLaDA-8B-Instruct --frequency llada --data ./data
      uncode threshold gsm8k --model Dream-org/Dream-v0-Instruct-7B --sampler fast_dllm --out fast.toml --data ./data
    """
    from ....evals.tasks import find_task

    require(0 < max_error < 1, f"--max-error must be between 0 and 1, not {max_error:g}.")
    chosen = tuple({one.name: one for one in map(find_task, tasks)}.values())
    options = _options(sampler, settings, frequency)
    check_output(out, "--out", "sampler file", force)
    check_run_folder(run)
    with loading():
        from ....evals.run.calibrate import own_answers
        from ....evals.run.config import EvalConfig, SamplerEntry
        from ....evals.run.models.diffusion import DiffusionModel
        from ....evals.run.models.load_model import load_model
        from ....evals.run.options import RunOptions
        from ....generation.threshold import choose_threshold
        from ....util.progress import item_bar
        from ...progress import eval_bar

        entry = SamplerEntry(sampler, sampler, options)
        config = EvalConfig("threshold", "", (model,), tuple(task.name for task in chosen), (entry,))
        evaluated = load_model(
            model, config, device=device, dtype=dtype, weights=weights, revision=revision, frequency=frequency
        )
        assert isinstance(evaluated, DiffusionModel), "the sampler is not for autoregressive models"
        evaluated.prepare(entry, chosen[0].settings, {})  # refused now, not after the answers
    with resumable(run):
        with eval_bar("left to right") as on_progress:
            answers = own_answers(evaluated, chosen, examples, seed, run, RunOptions(batch, data), on_progress)
        with item_bar("masked answers") as on_amount:
            found = choose_threshold(
                evaluated.denoiser, answers, max_error=max_error, masks=masks, seed=seed, on_progress=on_amount
            )
    prepared = evaluated.prepare(entry, chosen[0].settings, {"threshold": found.threshold})
    write_sampler(prepared.sampler, out, force)
    if as_json:
        typer.echo(json.dumps(vars(found) | {"sampler": str(out)}, indent=2))
        return
    typer.echo(f"threshold {found.threshold:.7g}")
    typer.echo(f"{100 * found.share:.1f} % of {found.proposals:,} proposals reach it.")
    typer.echo(f"In {100 * found.error:.2g} % of {found.answers:,} masked answers a wrong proposal does.")
    typer.echo(f"{out}: the sampler with this threshold.", err=True)


def _options(sampler: str, settings: list[str] | None, frequency: str | None) -> dict[str, Any]:
    from ....samplers.catalog import find

    name = find(sampler).name
    names = f"{', '.join(BY_PROBABILITY[:-1])} or {BY_PROBABILITY[-1]}"
    require(name in BY_PROBABILITY, f"the sampler '{name}' has no threshold that is a probability: give {names}.")
    options = shared.read_settings(sampler, settings, frequency)
    require("threshold" not in options, "the threshold is what is chosen: leave --set threshold out.")
    return options
