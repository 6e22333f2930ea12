"""Options shared by several verbs, and their shell completion. This module imports no torch."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import UncodeError, require, shown
from ..models import BUILT_IN, OWN_SAMPLER, RELEASES, folder_of, sampler_files, table_of
from ..models.names import check_name
from ..samplers.catalog import catalog, find, is_file, read_options, takes_table
from ..samplers.options import DEFAULT_LENGTH, DEFAULT_SAMPLER, OPTIONS, SHARED
from ..util.paths import require_file
from .devices import DTYPES, WEIGHTS, check_device, check_dtype, check_weights

if TYPE_CHECKING:
    from ..constraints.constraint import TextConstraint

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
"""A number as people write it: JSON has neither .8 nor 1. nor +1."""
DEFAULT_BATCH, DEFAULT_EVAL_BATCH = 8, 32
"""Rows of a batch, for a file of prompts and in an evaluation."""


def check_seed(seed: int) -> int:
    """Raise if a seed has more than 64 bits. The help would print the whole range of an option with bounds."""
    require(-(2**63) <= seed < 2**63, f"--seed must be a whole number of at most 64 bits, not {seed}.")
    return seed


def complete_model(incomplete: str) -> list[str]:
    return [name for name in (*BUILT_IN, *RELEASES) if name.startswith(incomplete)]


def complete_sampler(incomplete: str) -> list[tuple[str, str]]:
    summaries = {name: entry.summary for name, entry in catalog().items()}
    own = dict.fromkeys(sampler_files("tiny"), "sampler file of tiny")
    own[OWN_SAMPLER] = "what the authors of a published model use (`uncode models`)"
    return [(name, summary) for name, summary in (summaries | own).items() if name.startswith(incomplete)]


def complete_table(incomplete: str) -> list[str]:
    from ..frequency.names import known_names

    return [name for name in known_names() if name.startswith(incomplete)]


def complete_task(incomplete: str) -> list[str]:
    from ..evals.names import TASK_NAMES

    return [name for name in TASK_NAMES if name.startswith(incomplete)]


def complete_dtype(incomplete: str) -> list[str]:
    return [name for name in DTYPES if name.startswith(incomplete)]


def complete_weights(incomplete: str) -> list[str]:
    return [name for name in WEIGHTS if name.startswith(incomplete)]


def complete_samplers(incomplete: str) -> list[str]:
    """Complete the last of several names with commas between them."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name, _ in complete_sampler(last)]


def complete_setting(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete the options of the sampler on the command line, then the values of an option."""
    entry = catalog().get(context.params.get("sampler") or context.params.get("name") or DEFAULT_SAMPLER)
    found = []
    for option in entry.options if entry else (OPTIONS[name] for name in SHARED):
        found.append((f"{option.name}=", option.meaning))
        found += [(f"{option.name}={choice}", option.meaning) for choice in option.choices]
    has_key = "=" in incomplete
    return [pair for pair in found if pair[0].startswith(incomplete) and pair[0].endswith("=") is not has_key]


def complete_family(incomplete: str) -> list[str]:
    from ..evals.suite.families import FAMILIES

    names = [name.removeprefix("mini_") for name in FAMILIES]
    return [name for name in (*names, *FAMILIES) if name.startswith(incomplete)]


Model = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="A built-in model (tiny, toy), a local folder or a hub id; see `uncode models`.",
        autocompletion=complete_model,
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="cpu, cuda, cuda:0, ...  [default: the GPU if there is one]",
        callback=check_device,
    ),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        "--dtype",
        metavar="DTYPE",
        help="float32, bfloat16, ...  [default: the dtype of the weights; float32 on a CPU]",
        callback=check_dtype,
        autocompletion=complete_dtype,
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="FORMAT",
        help="fp8, int8 or int4: pack the weights of a diffusion model while they are read.  [default: not packed]",
        callback=check_weights,
        autocompletion=complete_weights,
    ),
]
Revision = Annotated[
    str | None, typer.Option("--revision", metavar="NAME", help="A branch, tag or commit of a hub id.")
]
SamplerName = Annotated[
    str,
    typer.Option(
        "--sampler",
        metavar="SAMPLER",
        help="A preset (see `uncode samplers`), a sampler of the model, or a sampler file (.toml).",
        autocompletion=complete_sampler,
    ),
]
SamplerSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="An option of the sampler; may be repeated.",
        autocompletion=complete_setting,
    ),
]
Frequency = Annotated[
    str | None,
    typer.Option(
        "--frequency",
        metavar="TABLE",
        help="A frequency table: a file or a name (llada).  [default: the model's own, if it has one]",
        autocompletion=complete_table,
    ),
]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        metavar="MODEL",
        help="Show tokens as text, with the tokenizer of a model's folder, a hub id or a tokenizer.json.",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="A folder with the benchmarks' files.  [default: download them]"),
]
Length = Annotated[
    int | None,
    typer.Option(
        "--length", min=1, metavar="N", help=f"Tokens to generate after the prompt.  [default: {DEFAULT_LENGTH}]"
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of all randomness.", callback=check_seed)]
Chat = Annotated[bool, typer.Option("--chat", help="Send the prompt as a user message, through the chat template.")]
Guidance = Annotated[
    float, typer.Option("--guidance", min=0, metavar="SCALE", help="Scale of classifier-free guidance; 0 is none.")
]
Whole = Annotated[bool, typer.Option("--whole", help="Fill every mask; do not stop at EOS.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Regex = Annotated[
    str | None,
    typer.Option("--regex", metavar="EXPRESSION", help="The answer, or each gap, matches this expression (Python's)."),
]
Choice = Annotated[
    list[str] | None,
    typer.Option("--choice", metavar="ANSWER", help="The answer must be one of these texts; may be repeated."),
]
JsonSchema = Annotated[
    Path | None,
    typer.Option(
        "--json-schema",
        metavar="FILE",
        help="The answer must be JSON that is valid under the schema in this file; the schema true is any JSON.",
    ),
]
ViewPage = Annotated[
    Path | None, typer.Option("--view", metavar="FILE", help="Write a page (HTML) that replays the decode.")
]
Input = Annotated[
    Path | None,
    typer.Option("--input", metavar="FILE", help="A file of prompts instead of one prompt (JSON lines, or .txt)."),
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="The file for the answers to --input (JSON lines).")
]
BatchSize = Annotated[
    int | None,
    typer.Option("--batch", min=1, metavar="N", help=f"Answers to --input per batch.  [default: {DEFAULT_BATCH}]"),
]
PromptText = Annotated[
    str | None,
    typer.Argument(metavar="PROMPT", help="The prompt, or a text with gaps (<mask:3>); - reads standard input."),
]
Traces = Annotated[
    list[Path], typer.Argument(metavar="TRACES...", help="Trace files, folders of them, or run folders with traces.")
]
TableOut = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write the table (safetensors).")]
Batch = Annotated[int, typer.Option("--batch", min=1, metavar="N", help="Answers that are decoded at a time, at most.")]
"""Of an evaluation; that of a file of prompts is BatchSize."""
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file uncode did not write.")]


def find_sampler(name: str, model: str) -> str:
    """The path of a sampler file (the user's or the model's), or the name of a preset. An unknown model is an error."""
    check_name(model)
    if is_file(name):
        require_file(name, "sampler file")
        return name
    own = sampler_files(model)
    return str(own[name]) if name in own and name not in catalog() else find(name, own, f"'{model}'").name


def read_settings(name: str, settings: list[str] | None, frequency: str | None = None) -> dict[str, Any]:
    """The sampler options of `--set`. For an unknown option the error suggests a similar name. The table of
    --frequency must exist, and the sampler must take one."""
    options: dict[str, Any] = {}
    for key, value in map(_setting, settings or []):
        twice = f"--set gives {key} twice, as {shown(options.get(key))} and as {shown(value)}: leave one of them out."
        require(key not in options, twice)
        options[key] = value
    options = read_options(name, options)
    if frequency is not None:
        takes = is_file(name) or takes_table(name, options)
        require(takes, f"the sampler '{name}' takes no frequency table: leave --frequency out.")
        from ..frequency.names import find as find_table

        require_file(table_of(frequency) or find_table(frequency), "frequency table")
    return options


def read_constraint(regex: str | None, choices: list[str] | None, json_schema: Path | None) -> TextConstraint | None:
    """The constraint of --regex, --choice or --json-schema; None where none of them is given."""
    given = {"--regex": regex, "--choice": choices or None, "--json-schema": json_schema}
    names = [name for name, value in given.items() if value is not None]
    require(len(names) < 2, f"{' and '.join(names)} are constraints each, and an answer has one: give one of them.")
    if not names:
        return None
    from ..constraints.constraint import constraint

    if json_schema is None:
        return constraint(regex=regex, choices=choices or None)
    require_file(str(json_schema), "JSON schema")
    try:
        schema = json.loads(json_schema.read_bytes())
    except (ValueError, RecursionError, OSError) as error:
        raise UncodeError(f"the JSON schema '{json_schema}' cannot be read: {error}.") from None
    require(schema is not None, f"the JSON schema '{json_schema}' is null: write an object, true or false.")
    return constraint(json_schema=schema)


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    require(bool(key and equals), f"--set takes KEY=VALUE, not '{text}'.")
    require(key != "frequency", "the frequency table has its own option: --frequency FILE.")
    words = {"none": "none", "true": True, "false": False}
    if value.lower() in words:
        return key, words[value.lower()]
    try:
        return key, json.loads(value)
    except (json.JSONDecodeError, RecursionError):
        is_number = _DECIMAL.fullmatch(value) is not None
        return key, (float(value) if "." in value else int(value)) if is_number else value


def trained_folder(model: str) -> Path:
    """The folder of a trained model: `tiny`, or a local folder."""
    folder = folder_of(model)
    if folder is None:
        wrong = f"'{model}' has no trained weights" if model in BUILT_IN else f"there is no folder '{model}'"
        raise UncodeError(f"{wrong}: give --model tiny, or the folder of a model that `uncode train` made.")
    return folder
