"""`uncode models`: the known models, their shapes and special ids, and the local cache."""

from __future__ import annotations

import json
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

import typer

from ..devices import WEIGHTS
from ..options import Json
from ..printing import loading, printing

if TYPE_CHECKING:
    from rich.console import Console

    from ...backbones.dialects.dialect import Dialect
    from ...backbones.transformer.network import Shape

SUMMARY = "List the models uncode knows, and which are downloaded."


def command(as_json: Json = False) -> None:
    """List the models uncode knows: shapes, special ids, memory, licence, how their authors decode, what was checked,
    and which are in the local cache.

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
            _print_family(console, dialect, [entry for entry in entries if entry["family"] == dialect.family])
        console.print(
            "[bold]masked LMs[/bold]  every AutoModelForMaskedLM: BERT, RoBERTa, ALBERT, ModernBERT, ...\n"
            "[bold]built in[/bold]    tiny: seven families of small problems, like LLaDA (`uncode mini`)\n"
            "            toy: three-number sums, no weights\n\n"
            "`--sampler own` decodes a model from the hub as its authors do.\n"
            "The list was made without running these weights."
        )


@cache
def _memory(shape: Shape) -> dict[str, int]:
    """Bytes of the weights in bfloat16, and in each format of `--weights`, which experts have not."""
    import torch

    from ...backbones.transformer.network import bytes_of

    formats: tuple[str | None, ...] = (None, *(WEIGHTS if shape.mixture is None else ()))
    return {name or "bfloat16": bytes_of(shape, torch.bfloat16, name) for name in formats}


def _releases(dialect: Dialect) -> list[dict[str, Any]]:
    from ...backbones.loading import hub

    return [
        {
            "name": release.name,
            "family": dialect.family,
            "chat": release.chat,
            "licence": release.licence,
            "parameters": release.shape.parameters,
            "active_parameters": release.shape.active_parameters,
            "layers": release.shape.layers,
            "width": release.shape.width,
            "heads": release.shape.heads,
            "key_heads": release.shape.key_heads,
            "vocabulary": release.shape.vocab,
            "context": release.shape.context,
            "memory": _memory(release.shape),
            "mask_id": dialect.ids["mask"],
            "eos_ids": dialect.eos_ids,
            "block_length": release.shape.block_length,
            "own_sampler": release.sampler,
            "checked": [dialect.checked, release.checked],
            "cached": hub.cached(release.name),
        }
        for release in dialect.releases
    ]


def _print_family(console: Console, dialect: Dialect, entries: list[dict[str, Any]]) -> None:
    from rich.padding import Padding

    shape = dialect.releases[0].shape
    blocks = f"blocks of {shape.block_length}, " if shape.block_length else ""
    sizes = {name: f"{size / 1e9:.1f}" for name, size in entries[0]["memory"].items()}
    active = "" if shape.mixture is None else f", {shape.active_parameters / 1e9:.1f} B of a token"
    packed = "experts cannot be packed"
    if shape.mixture is None:
        packed = f"{sizes['fp8']} with fp8 or int8 weights, {sizes['int4']} with int4"
    console.print(
        f"[bold]{dialect.family}[/bold]  {shape.parameters / 1e9:.1f} B parameters{active}, {shape.layers} layers "
        f"of width {shape.width}, {shape.heads} heads over {shape.key_heads}, context {shape.context}"
    )
    about = (
        f"{blocks}vocabulary {shape.vocab}, mask {dialect.ids['mask']}, EOS {' and '.join(map(str, dialect.eos_ids))}",
        f"{sizes['bfloat16']} GB in bfloat16; {packed}",
        f"checked: {dialect.checked}",
    )
    for line in about:
        console.print(Padding(line, (0, 0, 0, 2)))
    for (own, checked), group in groupby(entries, key=lambda entry: (entry["own_sampler"], entry["checked"][-1])):
        for entry in group:
            revisions = ", ".join(revision[:7] for revision in entry["cached"])
            cached = f"in the cache: {revisions}" if revisions else "not in the cache"
            facts = f"{'chat' if entry['chat'] else 'base'}, {entry['licence']}, {cached}"
            console.print(Padding(f"[bold]{entry['name']}[/bold]  {facts}", (0, 0, 0, 2)))
        if own:
            console.print(Padding(f"own: {own}\nchecked: {checked}", (0, 0, 0, 4)))
    console.print()
