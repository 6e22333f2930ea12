"""`uncode decode`: answer one prompt, or a file of prompts."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from ...core.errors import require
from ...samplers.options import DEFAULT_SAMPLER
from .. import options as shared
from ..outputs import check_output, check_resumable
from ..printing import loading

SUMMARY = "Answer a prompt, fill gaps, or answer a file of prompts."


def command(
    prompt: shared.PromptText = None,
    model: shared.Model = "tiny",
    sampler: shared.SamplerName = DEFAULT_SAMPLER,
    settings: shared.SamplerSettings = None,
    frequency: shared.Frequency = None,
    length: shared.Length = None,
    seed: shared.Seed = 0,
    chat: shared.Chat = False,
    guidance: shared.Guidance = 0.0,
    whole: shared.Whole = False,
    regex: shared.Regex = None,
    choice: shared.Choice = None,
    json_schema: shared.JsonSchema = None,
    order: Annotated[bool, Option("--order", help="Show the order in which the tokens were written.")] = False,
    device: shared.Device = None,
    dtype: shared.Dtype = None,
    weights: shared.Weights = None,
    revision: shared.Revision = None,
    trace: Annotated[
        Path | None, Option("--trace", metavar="FILE", help="Write the trace to a file (JSON lines).")
    ] = None,
    view: shared.ViewPage = None,
    source: Annotated[
        str | None,
        Option("--input", metavar="FILE", help="A file of prompts (JSON lines, or .txt); with --ray also a folder."),
    ] = None,
    out: Annotated[
        str | None,
        Option("--out", metavar="FILE", help="The file for the answers to --input (JSON lines); with --ray a folder."),
    ] = None,
    batch: shared.BatchSize = None,
    ray: Annotated[
        str | None, Option(metavar="[ADDRESS]", help="Answer on a Ray cluster: the one at ADDRESS, or a local one.")
    ] = None,
    workers: Annotated[
        int | None, Option(min=1, metavar="N", help="Workers of --ray.  [default: one per GPU, or per CPU]")
    ] = None,
    force: shared.Force = False,
    as_json: shared.Json = False,
) -> None:
    """Answer a prompt, fill the gaps in a text, or answer a file of prompts.

    A line of --input is {"prompt": "..."}, {"messages": [...]} or a JSON string; it may have an id, a length and a
    seed. Prompt n, counted from 0, takes the seed plus n. The same command resumes a run that was stopped. With --ray,
    --out is a folder of shards. In the order of their names they hold the lines that one machine would write.

    Examples:

      uncode tasks mini_story --example 3 | uncode decode - --order --view story.html
      uncode tasks mini_sudoku | uncode decode - --set rate=0 --trace sudoku.jsonl
      uncode decode "add 3 4 5 first 3 + 4 = <mask:1> , then <mask:5>" --model toy
      uncode decode --input prompts.jsonl --out answers.jsonl --batch 16 --view answers.html
      uncode decode "add 3 4 5" --regex "[0-9 ]+[.]" --model toy
      uncode decode "What is 2 + 2?" --model GSAI-ML/LLaDA-8B-Instruct --chat
      uncode decode --input s3://me/prompts/ --out s3://me/answers/ --ray
    """
    if ray is None:
        require(workers is None, "--workers is for --ray: leave it out.")
        _check_files(trace, view, source, out, force)
    else:
        require(source is not None, "--ray is for the prompts of --input: give --input and --out, or leave it out.")
        _check_ray(trace, view, force)
    _check_options(prompt, source, out, batch, order, as_json)
    given = shared.read_settings(found := shared.find_sampler(sampler, model), settings, frequency)
    rule = shared.read_constraint(regex, choice, json_schema)
    from ..answering.finished_answers import command_of, report_if_finished
    from ..answering.prompts import longest_answer, read_file, read_typed

    asked: dict[str, Any] = {
        "settings": given,
        "length": length,
        "seed": seed,
        "chat": chat,
        "guidance": guidance,
        "whole": whole,
    }
    asked |= {} if rule is None else {"constraint": rule.to_dict()}
    loaded_with = {"device": device, "dtype": dtype, "weights": weights, "revision": revision}
    if ray is not None:
        from ..answering.on_ray import answer_with

        options: dict[str, Any] = {"model": model, "sampler": found, "frequency": frequency}
        options |= {"batch": batch or shared.DEFAULT_BATCH}
        answer_with(str(source), str(out), options | asked | loaded_with, ray, workers, as_json)
        return
    prompt_file = None if source is None else read_file(Path(source), None if out is None else Path(out))
    command = None if prompt_file is None else command_of(prompt_file, model, found, frequency, **asked, **loaded_with)
    if prompt_file is not None and report_if_finished(prompt_file, command, force, as_json, not (trace or view)):
        return
    text = None if prompt is None else read_typed(prompt)
    with loading():
        from ..answering.answer_file import DecodeSettings, FileJob, answer_file
        from ..answering.answer_prompt import answer_one
        from ..answering.choices import ModelChoice, SamplerChoice

        chosen = SamplerChoice(found, given, frequency)
        which = ModelChoice(model, device, dtype, weights, revision, guidance)
        denoiser, (built,) = which.load(lambda own: [chosen.build(own)], longest_answer(length, prompt_file))
    named = {built.name: built}
    decode_settings = DecodeSettings(denoiser, model, named, seed, length, chat, stop_at_eos=not whole, constraint=rule)
    if prompt_file is not None:
        job = FileJob(decode_settings, prompt_file, False, batch or shared.DEFAULT_BATCH, trace, view, force)
        answer_file(job, command).report(prompt_file, as_json)
    elif text is not None:
        answer_one(decode_settings, text, trace, view, order, as_json)


def _check_ray(trace: Path | None, view: Path | None, force: bool) -> None:
    """Raise if an option is given that is for one machine."""
    asked = {"--trace": trace, "--view": view, "--force": force}
    for option, value in asked.items():
        require(not value, f"{option} is for one machine: leave it out with --ray.")


def _check_options(
    prompt: str | None, source: str | None, out: str | None, batch: int | None, order: bool, as_json: bool
) -> None:
    """Raise if options for one prompt and for a file of prompts are mixed."""
    require(not (order and as_json), "--json holds the order already (commit_step): leave --order out.")
    if source is None:
        require(
            out is None, "--out is for the answers to --input FILE: write the trace of one prompt with --trace FILE."
        )
        require(batch is None, "--batch is for the prompts of --input FILE: leave it out.")
        require(prompt is not None, "there is nothing to decode: give a prompt, or --input FILE and --out FILE.")
    else:
        require(prompt is None, "give a prompt or --input FILE, not both.")
        require(out is not None, "--input needs a file for the answers: give --out FILE.")
        require(not order, "--order is for one prompt: leave it out with --input.")


def _check_files(trace: Path | None, view: Path | None, source: str | None, out: str | None, force: bool) -> None:
    """Raise if the trace or the page cannot be written, or if two options name one file."""
    files = {"--trace": trace, "--view": view, "--out": None if out is None else Path(out)}
    for one, other in combinations([option for option, file in files.items() if file is not None], 2):
        require(
            files[one] != files[other],
            f"{one} and {other} would both write '{files[one]}': choose another file for one of them.",
        )
    if trace is not None and source is not None:
        check_resumable(trace, "--trace")
    elif trace is not None:
        check_output(trace, "--trace", "trace", force)
    if view is not None:
        check_output(view, "--view", "page", force)
