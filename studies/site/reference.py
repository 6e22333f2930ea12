"""The reference of the site, made from the package: verbs, Python names, samplers, models, configs and the HTTP API."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import getmodule, isclass, isfunction
from typing import Any

import typer
from typer.testing import CliRunner

import uncode
from uncode.cli.app import app
from uncode.samplers.catalog import catalog
from uncode.samplers.preset import Preset

from ..trainings import ROOT

WIDTH = {"COLUMNS": "100"}
CONFIGS = ROOT / "src" / "uncode" / "evals" / "run" / "configs"
PIECES = ("policy", "score", "select", "blocks", "remask", "propose", "stop", "cache", "piece")
"""The modules of pieces, in the order of a step."""


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table in markdown; its cells may have bars and line breaks."""
    cells = [[" ".join(str(cell).split()).replace("|", "\\|") for cell in row] for row in [list(head), *rows]]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(cells[0]), *lines[1:]])


def python_page() -> str:
    """Every public name, from its docstring by mkdocstrings."""
    parts = [
        "# Python",
        "For those who write Python with uncode: every public name, its signature and its docstring. `import uncode` "
        "gives all of them, and loads torch when the first one is used.",
    ]
    classes, functions, modules = [], [], []
    for name in sorted(set(uncode.__all__) - {"__version__"}):
        value = getattr(uncode, name)
        if isclass(value):
            classes.append(_documented(value))
        elif isfunction(value):
            functions.append(_documented(value))
        else:
            modules.append(value)
    parts += ["## Functions", *functions, "## Classes", *classes]
    parts += ["## `uncode.presets`", "The samplers. Their options are on [a page of their own](samplers.md)."]
    for module in (value for value in modules if value.__name__.endswith(("interventions", "legacy"))):
        parts += [f"## `uncode.{module.__name__.rpartition('.')[2]}`", _directive(module.__name__, root=False)]
    parts += ["## `uncode.testing`", "For authors of pieces and models."]
    testing = import_module("uncode.testing")
    parts += [_documented(getattr(testing, name)) for name in testing.__all__]
    parts += ["## Errors and warnings", _directive("uncode.core.errors", root=False, only=ERRORS)]
    return "\n\n".join(parts) + "\n"


ERRORS = ("SettingError", "OptionError", "NoSuchName", "RowError", "BadLogits", "Advice")
"""Beside `UncodeError` and `Stalled`, which are public names themselves."""


def _documented(value: Any) -> str:
    module = getmodule(value)
    assert module is not None
    return _directive(f"{module.__name__}.{value.__name__}")


def _directive(path: str, *, root: bool = True, only: Iterable[str] = ()) -> str:
    """What mkdocstrings replaces by the documentation of an object."""
    options = [f"show_root_heading: {str(root).lower()}"]
    if only:
        options.append(f"members: [{', '.join(only)}]")
    return "\n".join([f"::: {path}", "    options:", *(f"      {option}" for option in options)])


def pieces_page() -> str:
    """The pieces of samplers."""
    parts = [
        "# Pieces",
        "For those who build a sampler of their own: every piece that a sampler is made of. [One step](../step.md) "
        "says how a step uses them.",
    ]
    for name in PIECES:
        parts += [f"## `uncode.core.pieces.{name}`", _directive(f"uncode.core.pieces.{name}", root=False)]
    return "\n\n".join(parts) + "\n"


def commands_page() -> str:
    """The help of every verb."""
    parts = [
        "# Commands",
        "For those who work on the command line: every command and its options, as `uncode VERB --help` prints them.",
        *_command("uncode", ()),
    ]
    verbs: dict[str, Any] = getattr(typer.main.get_command(app), "commands", {})
    for name, command in verbs.items():
        parts += _command(f"uncode {name}", (name,))
        for inner in getattr(command, "commands", {}):
            parts += _command(f"uncode {name} {inner}", (name, inner))
    return "\n\n".join(parts) + "\n"


def _command(title: str, words: tuple[str, ...]) -> list[str]:
    shown = CliRunner().invoke(app, [*words, "--help"], env=WIDTH, prog_name="uncode")
    assert shown.exit_code == 0, shown.output
    return [f"## `{title}`", f"```text\n{shown.output.rstrip()}\n```"]


def samplers_page() -> str:
    """Every preset with its options."""
    parts = [
        "# Samplers",
        "For those who set a sampler's options: every sampler, its options, their defaults and what it costs. "
        "[Papers](../papers.md) quotes where each default comes from, and [Choose a sampler](../choose-a-sampler.md) "
        "compares them.",
        "`--set NAME=VALUE` sets an option on the command line, and `uncode.presets.SAMPLER(NAME=VALUE)` in Python. "
        "`uncode samplers SAMPLER` prints the same list.",
    ]
    entries = catalog().values()
    for entry in entries:
        parts += _sampler(entry)
    return "\n\n".join(parts) + "\n"


def _sampler(entry: Preset) -> list[str]:
    rows = ((f"`{o.name}`", f"`{_value(o.default)}`", _meaning(o)) for o in entry.options)
    parts = [f"## `{entry.name}`", entry.summary, f"Source: {entry.source}."]
    parts += [f"Cost: {entry.cost}"] if entry.cost else []
    return [*parts, table(("option", "default", "meaning"), rows)]


def _meaning(option: Any) -> str:
    choices = f" ({', '.join(option.choices)})" if option.choices else ""
    return f"{option.meaning}{choices}; {option.range[1]}" if option.range else f"{option.meaning}{choices}"


def _value(default: object) -> str:
    return str(default).lower() if isinstance(default, bool | None) else str(default)


def models_page() -> str:
    """The models by name."""
    shown = CliRunner().invoke(app, ["models", "--json"])
    rows = [
        (
            f"`{entry['name']}`",
            "chat" if entry["chat"] else "base",
            entry["licence"],
            *(_gigabytes(entry["memory"].get(kind)) for kind in ("bfloat16", "fp8", "int4")),
            entry["block_length"] or "",
        )
        for entry in json.loads(shown.output)
    ]
    head = ("model", "kind", "licence", "GB in bfloat16", "GB in fp8 or int8", "GB in int4", "causal blocks of")
    return "\n\n".join(
        [
            "# Model names",
            "For those who choose a checkpoint: every model that uncode knows by name, and the memory of its weights. "
            "[Models](../models.md) says how they are loaded, and `uncode models` what of each was checked.",
            table(head, rows),
            "Every `AutoModelForMaskedLM` of transformers loads too. `tiny` and `toy` are built in.\n",
        ]
    )


def _gigabytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e9:.1f}"


def configs_page() -> str:
    """The configs of `uncode eval`."""
    parts = [
        "# Configs",
        "For those who reproduce a table: every config of `uncode eval`, as it lies in the package. "
        "[Evaluation](../evaluation.md) says what its fields mean.",
    ]
    for file in sorted(CONFIGS.glob("*.toml")):
        text = file.read_text()
        parts += [f"## `{file.stem}`", f"{tomllib.loads(text)['title']}.", f"```toml\n{text.rstrip()}\n```"]
    return "\n\n".join(parts) + "\n"


def trace_page() -> str:
    """The fields of a trace line."""
    from uncode.core.trace import schema

    about = re.sub(r":\w+:`~?([\w.]+)`", r"`\1`", schema.__doc__ or "")
    parts = [
        "# Trace format",
        "For those who read traces with a program: every field of a line of a trace file. "
        "[Traces](../traces.md) says what the fields mean.",
        about,
    ]
    for title, fields in (("Fields", schema.FIELDS), ("Optional fields", schema.OPTIONAL)):
        rows = (
            (f"`{name}`", f"`{kind if not callable(kind) else 'the number of the schema'}`")
            for name, kind in fields.items()
        )
        parts += [f"## {title}", table(("field", "type, length and range"), rows)]
    return "\n\n".join(parts) + "\n"


def http_page() -> str:
    """The endpoints of the server, from its OpenAPI document."""
    from uncode.server.app import create_app
    from uncode.server.service import Service

    document = create_app(Service.of(uncode.load("toy"))).openapi()
    parts = [
        "# HTTP API",
        "For those who write a client: every endpoint of `uncode serve` and the fields of its request. "
        "[The server](../server.md) shows them in use, and a running server has the same at `/docs`.",
    ]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts += [f"## `{method.upper()} {path}`", operation.get("description") or operation.get("summary", "")]
            fields = _fields(document, operation)
            parts += [table(("field", "default", "meaning"), fields)] if fields else []
    return "\n\n".join(parts) + "\n"


def _fields(document: Any, operation: Any) -> list[tuple[str, str, str]]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    schema = document["components"]["schemas"].get(content.get("$ref", "").rpartition("/")[2], content)
    return [
        (
            f"`{name}`",
            "required" if name in schema.get("required", ()) else f"`{_value(field.get('default'))}`",
            field.get("description", ""),
        )
        for name, field in schema.get("properties", {}).items()
    ]


MAKERS: dict[str, Callable[[], str]] = {
    "python.md": python_page,
    "pieces.md": pieces_page,
    "commands.md": commands_page,
    "samplers.md": samplers_page,
    "models.md": models_page,
    "configs.md": configs_page,
    "trace.md": trace_page,
    "http.md": http_page,
}
"""What writes each page of the reference, by the name of its file."""
