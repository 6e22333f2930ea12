"""`uncode models`: the known models, their shapes and special ids, and the local cache."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from ..options import Json
from ..printing import loading, printing

if TYPE_CHECKING:
    from rich.table import Table

    from ...backbones.dialects.dialect import Dialect

SUMMARY = "List the models uncode knows, and which are downloaded."


def command(as_json: Json = False) -> None:
    """List the models uncode knows, with their shapes and special ids, and which are in the local cache.

    Examples:

      uncode models
      uncode models --json
    """
    with loading():
        from ...backbones.dialects.registry import DIALECTS

        entries = [entry for dialect in DIALECTS for entry in _releases(dialect)]
    if as_json:
        typer.echo(json.dumps(entries, indent=2))
        return
    with printing() as console:
        for dialect in DIALECTS:
            shape, ids = dialect.releases[0].shape, dialect.ids
            blocks = f"blocks of {shape.block_length}, " if shape.block_length else ""
            console.print(
                f"[bold]{dialect.family}[/bold]  {shape.parameters / 1e9:.1f} B parameters, {shape.layers} layers "
                f"of width {shape.width}, {shape.heads} heads over {shape.key_heads}, context {shape.context}\n"
                f"  {blocks}vocabulary {shape.vocab}, mask {ids['mask']}, EOS {' and '.join(map(str, dialect.eos_ids))}"
            )
            console.print(_table([entry for entry in entries if entry["family"] == dialect.family]), "")
        console.print(
            "[bold]masked LMs[/bold]  every AutoModelForMaskedLM: BERT, RoBERTa, ALBERT, ModernBERT, ...\n"
            "[bold]built in[/bold]    tiny: seven families of small problems, like LLaDA (`uncode mini`)\n"
            "            toy: three-number sums, no weights"
        )


def _releases(dialect: Dialect) -> list[dict[str, Any]]:
    from ...backbones.loading import hub

    return [
        {
            "name": release.name,
            "family": dialect.family,
            "chat": release.chat,
            "parameters": release.shape.parameters,
            "layers": release.shape.layers,
            "width": release.shape.width,
            "heads": release.shape.heads,
            "key_heads": release.shape.key_heads,
            "vocabulary": release.shape.vocab,
            "context": release.shape.context,
            "mask_id": dialect.ids["mask"],
            "eos_ids": dialect.eos_ids,
            "block_length": release.shape.block_length,
            "cached": hub.cached(release.name),
        }
        for release in dialect.releases
    ]


def _table(entries: list[dict[str, Any]]) -> Table:
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    for _ in range(3):
        table.add_column(overflow="fold")  # a truncated name could not be copied
    for e in entries:
        revisions = ", ".join(revision[:7] for revision in e["cached"])
        cached = f"in the cache: {revisions}" if revisions else "not in the cache"
        table.add_row(e["name"], "chat" if e["chat"] else "base", cached)
    return table
