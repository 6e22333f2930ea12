"""`uncode compare`: one prompt, or a file of prompts, under several samplers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ...core.errors import require, suggest
from .. import options as shared
from ..outputs import check_output
from ..printing import loading

if TYPE_CHECKING:
    from ...core.pieces.piece import Table
    from ...core.pieces.policy import Sampler
    from ..answering.choices import SamplerChoice

SUMMARY = "Answer a prompt, or a file of them, with several samplers."


def command(
    prompt: shared.PromptText = None,
    samplers: Annotated[
        str,
        Option(
            metavar="SAMPLER,...",
            help="Names of samplers, or sampler files, with commas between them.",
            autocompletion=shared.complete_samplers,
        ),
    ] = "confidence,semi_ar,uncode",
    settings: Annotated[
        list[str] | None, Option("--set", metavar="NAME.KEY=VALUE", help="An option of one sampler; may be repeated.")
    ] = None,
    frequency: shared.Frequency = None,
    model: shared.Model = "tiny",
    length: shared.Length = None,
    seed: shared.Seed = 0,
    chat: shared.Chat = False,
    guidance: shared.Guidance = 0.0,
    whole: shared.Whole = False,
    regex: shared.Regex = None,
    choice: shared.Choice = None,
    json_schema: shared.JsonSchema = None,
    device: shared.Device = None,
    dtype: shared.Dtype = None,
    weights: shared.Weights = None,
    revision: shared.Revision = None,
    view: shared.ViewPage = None,
    source: shared.Input = None,
    out: shared.Out = None,
    batch: shared.BatchSize = None,
    force: shared.Force = False,
    as_json: shared.Json = False,
) -> None:
    """Answer one prompt with several samplers and the same seed. Show each answer, its order and its forwards.

    With --input, every prompt of a file (the format is that of `uncode decode --input`). The answers are a table here,
    a page with --view, and with --out a line of JSON for each prompt and sampler. The same command resumes such a file.

    Examples:

      uncode tasks mini_algebra --example 3 | uncode compare -
      uncode tasks mini_algebra | uncode compare - --samplers eb --set eb.gamma=1
      uncode tasks mini_story | uncode compare - --samplers eb,story --view it.html
      uncode compare --input prompts.jsonl --out compared.jsonl --view compared.html
    """
    _check_options(prompt, source, out, view, batch, force)
    names = [name.strip() for name in samplers.split(",")]
    require(all(names), f"--samplers takes names with commas between them, not '{samplers}'.")
    chosen = {
        name: (found := shared.find_sampler(name, model), shared.read_settings(found, given))
        for name, given in _settings_of(names, settings or []).items()
    }

    rule = shared.read_constraint(regex, choice, json_schema)
    from ..answering.prompts import longest_answer, read_file, read_typed

    text = None if prompt is None else read_typed(prompt)
    file = None if source is None else read_file(source, out)

    with loading():
        from ..answering.answer_file import DecodeSettings, FileJob
        from ..answering.choices import ModelChoice, SamplerChoice
        from ..answering.side_by_side import compare, compare_file

        choices = {name: SamplerChoice(*found, frequency) for name, found in chosen.items()}
        which = ModelChoice(model, device, dtype, weights, revision, guidance)
        denoiser, built = which.load(lambda own: _build(list(choices.values()), own), longest_answer(length, file))
    by_name = dict(zip(choices, built, strict=True))
    decode_settings = DecodeSettings(denoiser, model, by_name, seed, length, chat, not whole, rule)
    if file is not None:
        job = FileJob(decode_settings, file, True, batch or shared.DEFAULT_BATCH, None, view, force)
        compare_file(job, as_json)
    elif text is not None:
        compare(decode_settings, text, view, as_json)


def _check_options(
    prompt: str | None, source: Path | None, out: Path | None, view: Path | None, batch: int | None, force: bool
) -> None:
    """Raise if options for one prompt and for a file of prompts are mixed, or if the page cannot be written."""
    if source is None:
        require(prompt is not None, "there is nothing to compare: give a prompt, or --input FILE.")
        require(out is None and batch is None, "--out and --batch are for the prompts of --input FILE: leave them out.")
    else:
        require(prompt is None, "give a prompt or --input FILE, not both.")
    if view is not None:
        require(view != out, f"--view and --out would both write '{view}': choose another file for one of them.")
        check_output(view, "--view", "page", force)


def _settings_of(names: list[str], settings: list[str]) -> dict[str, list[str]]:
    """The settings of each sampler, as KEY=VALUE. A sampler's name may contain dots; a key does not."""
    repeated = next((name for name in names if names.count(name) > 1), None)
    require(
        repeated is None,
        f"'{repeated}' is named twice: save one as TOML (`uncode samplers {repeated}`) and change the file.",
    )
    chosen: dict[str, list[str]] = {name: [] for name in names}
    for text in settings:
        whole, equals, value = text.partition("=")
        name, dot, key = whole.rpartition(".")
        require(bool(name and dot and key and equals), f"--set takes NAME.KEY=VALUE here, not '{text}'.")
        require(name in chosen, f"--set {text} is for '{name}', which is not among --samplers: {suggest(name, names)}")
        chosen[name].append(f"{key}={value}")
    return chosen


def _build(chosen: list[SamplerChoice], own: Table | None) -> list[Sampler]:
    """Build the samplers. All that take a frequency table get the same one."""
    frequency = chosen[0].frequency
    takes = any(choice.takes_table for choice in chosen)
    require(frequency is None or takes, "none of these samplers takes a frequency table: leave --frequency out.")
    return [choice.build(own) for choice in chosen]
