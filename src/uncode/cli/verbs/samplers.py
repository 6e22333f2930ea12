"""`uncode samplers`: list the samplers, or print one as TOML."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from ...core.errors import require
from ...models import TABLE, TINY, sampler_files
from ...samplers.catalog import catalog, find
from ...samplers.options import DEFAULT_SAMPLER
from ...samplers.preset import Preset
from ..options import Frequency, Json, SamplerSettings, complete_sampler, find_sampler, read_settings
from ..printing import NARROW_COLUMNS, listing, loading, printing

if TYPE_CHECKING:
    from rich.table import Table

SUMMARY = "List the samplers; print one with its options as TOML."


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="A sampler, to print its options and TOML.", autocompletion=complete_sampler
        ),
    ] = None,
    settings: SamplerSettings = None,
    frequency: Frequency = None,
    as_json: Json = False,
) -> None:
    """List the samplers, or print one with its options as a sampler file (TOML) that --sampler accepts.

    Examples:

      uncode samplers
      uncode samplers uncode
      uncode samplers semi_ar --set blocks=4 > mine.toml
      uncode tasks mini_story | uncode decode - --sampler mine.toml
    """
    if name is None:
        given = "--set" if settings else "--frequency" if frequency else None
        require(given is None, f"{given} changes one sampler: name it, as in `uncode samplers uncode {given} ...`.")
    if name is not None:
        _print_one(name, settings, frequency, as_json)
    elif as_json:
        listed = [{"name": e.name, "summary": e.summary, "source": e.source} for e in catalog().values()]
        typer.echo(json.dumps(listed, indent=2))
    else:
        _list()


def _print_one(name: str, settings: list[str] | None, frequency: str | None, as_json: bool) -> None:
    found = find_sampler(name, "tiny")
    options = read_settings(found, settings, frequency)
    if name in sampler_files("tiny") and not as_json:
        typer.echo(f"# {name}: a sampler file of tiny (--sampler {name})\n\n{Path(found).read_text()}", nl=False)
        return

    with loading():
        from ...frequency import FrequencyTable
        from ..answering.choices import SamplerChoice

        own = FrequencyTable.load(TINY / TABLE) if name in sampler_files("tiny") else None
        sampler = SamplerChoice(found, options, frequency).build(own)
    if as_json:
        typer.echo(json.dumps(sampler.to_dict(), indent=2))
        return
    if found == name and name in catalog():
        typer.echo("\n".join(_comments(find(name))))
    typer.echo(sampler.to_toml(), nl=False)


def _comments(entry: Preset) -> list[str]:
    """A summary of the sampler and its options, as comments above the TOML."""
    lines = [f"# {entry.name}: {entry.summary}"]
    lines += wrap(f"Source: {entry.source}.", 100, initial_indent="# ", subsequent_indent="# ")
    if entry.options:
        width = max(len(option.name) for option in entry.options)
        default = max(len(option.written_default) for option in entry.options)
        lines += ["#", "# Options (--set NAME=VALUE), their defaults and meaning:"]
        lines += [
            f"#   {option.name:{width}}  {option.written_default:{default}}  {option.meaning}"
            for option in entry.options
        ]
    return [*lines, ""]


def _list() -> None:
    entries = catalog().values()
    with printing() as console:
        is_narrow = console.width < NARROW_COLUMNS
        console.print(listing((entry.name, [entry.summary]) for entry in entries) if is_narrow else _table())


def _table() -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "what it does", "source"):
        table.add_column(column, no_wrap=column == "name")
    for entry in catalog().values():
        style = "bold" if entry.name == DEFAULT_SAMPLER else ""
        table.add_row(Text(entry.name), Text(entry.summary), Text(entry.citation), style=style)
    return table
