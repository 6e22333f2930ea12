"""`uncode samplers`: what there is, and any of it as TOML."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..frequency import UnnamedTable
from ..samplers.legacy import QUIRKS
from ..samplers.papers import describe
from ..samplers.presets import PRESETS
from ..samplers.recipes import to_toml
from .options import Frequency, Json, Settings, build_sampler


def command(
    name: Annotated[str | None, typer.Argument(help="A sampler, to print it as TOML.")] = None,
    settings: Settings = None,
    frequency: Frequency = None,
    as_json: Json = False,
) -> None:
    """List the samplers, or print one as a TOML file that --sampler accepts.

    Examples:

      uncode samplers

      uncode samplers semi_ar --set blocks=4 > recipe.toml

      uncode decode "add 3 4 5" --model toy --sampler recipe.toml
    """
    if name is not None:
        sampler = build_sampler(name, settings, frequency, own=UnnamedTable())
        typer.echo(json.dumps(sampler.to_dict(), indent=2) if as_json else to_toml(sampler), nl=as_json)
        return
    entries = {name: describe(preset) for name, preset in (PRESETS | QUIRKS).items()}
    if as_json:
        listed = [{"name": name, "summary": e.summary, "source": e.source} for name, e in entries.items()]
        typer.echo(json.dumps(listed, indent=2))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "what it does", "source"):
        table.add_column(column, no_wrap=column == "name")
    for called, entry in entries.items():
        table.add_row(called, entry.summary, entry.citation, style="bold" if called == "uncode" else "")
    Console().print(table)
