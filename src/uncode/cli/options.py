"""Options that several verbs share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..backbones.guidance import Guided
from ..backbones.load import BUILT_IN, RECIPES, TABLE, check_name, folder_of, load
from ..core.denoiser import Denoiser
from ..core.errors import UncodeError, require, suggest
from ..core.piece import Table
from ..core.policy import Sampler
from ..samplers import recipes

Model = Annotated[
    str, typer.Option(help="A built-in model (tiny, toy), a local folder or a hub id; see `uncode models`.")
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:0, ...; default: the GPU where there is one.")]
Dtype = Annotated[
    str | None, typer.Option(help="float32, bfloat16, ...; default: as the weights are stored; float32 on a CPU.")
]
Revision = Annotated[str | None, typer.Option(help="A branch, tag or commit of a hub id.")]
SamplerName = Annotated[
    str,
    typer.Option(
        "--sampler", help="A sampler's name (see `uncode samplers`), a recipe of the model's, or a TOML file."
    ),
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="An option of the sampler; may be repeated.")
]
Frequency = Annotated[
    str | None,
    typer.Option(
        metavar="TABLE",
        help="A frequency table, as a file or by name (llada); default: the model's own, if it has one.",
    ),
]
Tokenizer = Annotated[
    str | None, typer.Option(help="A model's folder or hub id, or a tokenizer.json: to show tokens as text.")
]
Data = Annotated[
    Path | None, typer.Option(metavar="DIR", help="A folder with the benchmarks' files; default: fetch them.")
]
Length = Annotated[int | None, typer.Option(help="Tokens to generate after the prompt.  [default: 96]")]
Seed = Annotated[int, typer.Option(help="Seed of all randomness.")]
Chat = Annotated[bool, typer.Option("--chat", help="Send the prompt as a user's message, by the template.")]
Guidance = Annotated[float, typer.Option(help="Scale of classifier-free guidance; 0 is none.")]
Whole = Annotated[bool, typer.Option("--whole", help="Fill every mask; do not stop at the end token.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@dataclass(frozen=True)
class ModelChoice:
    """The model a user asked for."""

    name: str
    device: str | None
    dtype: str | None
    revision: str | None
    guidance: float

    def load(self, build: Callable[[Table | None], list[Sampler]]) -> tuple[Denoiser, list[Sampler]]:
        """The model, and the samplers that `build` makes of the model's own table."""
        folder = folder_of(self.name)
        own = self.name in BUILT_IN or (folder is not None and (folder / TABLE).is_file())  # it brings its own table
        if not own and folder is None:
            check_name(self.name)
        early = [] if own else build(None)  # a wrong option is told before gigabytes are read
        denoiser = load(self.name, device=self.device, dtype=self.dtype, revision=self.revision)
        samplers = early or build(getattr(denoiser, "frequency", None))
        return Guided(denoiser, self.guidance) if self.guidance else denoiser, samplers

    def recipe(self, sampler: str) -> str:
        """The file of a sampler that lies in the model's folder; any other name as it is."""
        folder = folder_of(self.name)
        if folder is None or sampler in recipes.NAMES or sampler.endswith(".toml"):
            return sampler
        own = {file.stem: str(file) for file in sorted((folder / RECIPES).glob("*.toml"))}
        if own and sampler not in own:
            known = suggest(sampler, [*recipes.NAMES, *own])
            raise UncodeError(f"neither a sampler nor a recipe of '{self.name}' is named '{sampler}': {known}")
        return own.get(sampler, sampler)


def trained(model: str) -> Path:
    """The folder of a model with results of its own: `tiny`, or one that was made here."""
    folder = folder_of(model)
    if folder is None:
        raise UncodeError(f"there is no folder '{model}': give one that `uncode train` made, or leave --model out.")
    return folder


def build_sampler(name: str, settings: list[str] | None, frequency: str | None, own: Table | None) -> Sampler:
    """The sampler a user asked for; `own` is the table to use where one is needed and none is given."""
    table = frequency or own
    options = dict(_setting(text) for text in settings or [])
    if table is not None and not name.endswith(".toml") and not _takes_table(name, options):
        require(frequency is None, f"the sampler '{name}' takes no frequency table: leave --frequency out.")
        table = None
    if table is None and not name.endswith(".toml") and _takes_table(name, options):
        raise UncodeError(_no_table(name))
    return recipes.load(name, frequency=table, **options)


def takes_table(name: str, settings: list[str]) -> bool:
    """Whether a sampler, with these settings, can use a frequency table; a file says itself which it needs."""
    return name.endswith(".toml") or _takes_table(name, dict(_setting(text) for text in settings))


def _no_table(name: str) -> str:
    alone = ", give --set informativeness=false for its positional prior alone"
    return (
        f"the sampler '{name}' needs a frequency table, and this model has none of its own: fetch the paper's "
        "(`uncode table get llada`, then --frequency llada) or count one (`uncode count`, then --frequency FILE)"
        f"{alone if 'informativeness' in recipes.options_of(name) else ''}, or take another --sampler."
    )


def _takes_table(name: str, options: dict[str, Any]) -> bool:
    return "frequency" in recipes.options_of(name) and options.get("informativeness", True) is True


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    require(bool(key and equals), f"--set takes KEY=VALUE, not '{text}'.")
    require(key != "frequency", "the frequency table has an option of its own: --frequency FILE.")
    words = {"none": None, "true": True, "false": False}
    if value.lower() in words:
        return key, words[value.lower()]
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value
