"""`uncode models`: the known models, their shapes and special ids, and the local cache."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

import typer

from ..devices import WEIGHTS
from ..options import Json
from ..printing import printing

if TYPE_CHECKING:
    from rich.console import Console

    from ...backbones.dialects.dialect import Dialect
    from ...backbones.transformer.shape import Shape

SUMMARY = "List the models uncode knows, and which are downloaded."


def command(as_json: Json = False) -> None:
    """List the models uncode knows: shapes, special ids, memory, licence, how their authors decode, what was checked,
    and which are in the local cache.

    Examples:

      uncode models
      uncode models --json
    """
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


def _memory(shape: Shape) -> dict[str, int]:
    """Bytes of the weights in bfloat16, and in each format of `--weights`, which experts have not."""
    formats = WEIGHTS if shape.mixture is None else ()
    return {"bfloat16": shape.weight_bytes(2), **{name: shape.weight_bytes(2, name) for name in formats}}


def _releases(dialect: Dialect) -> list[dict[str, Any]]:
    from ...backbones.loading import hub

    return [
        {
            "name": release.name,
            "family": dialect.family,
            "title": dialect.title,
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
    console.print(f"[bold]{dialect.title}[/bold]  ({dialect.family})")
    ids = f"mask {dialect.ids['mask']}, EOS {' and '.join(map(str, dialect.eos_ids))}"
    _print_indented(console, 2, ids, f"checked: {dialect.checked}")
    for shape, alike in groupby(entries, key=_shape_lines):
        _print_indented(console, 2, *shape)
        for about, group in groupby(alike, key=_about_lines):
            for entry in group:
                kind = "" if entry["chat"] else "  base model"
                revisions = ", ".join(revision[:7] for revision in entry["cached"])
                cached = f"  in the cache: {revisions}" if revisions else ""
                _print_indented(console, 4, f"[bold]{entry['name']}[/bold]{kind}{cached}")
            _print_indented(console, 6, *about)
    console.print()


def _shape_lines(entry: dict[str, Any]) -> list[str]:
    sizes = {name: f"{size / 1e9:.1f}" for name, size in entry["memory"].items()}
    blocks = f", blocks of {entry['block_length']}" if entry["block_length"] else ""
    active, packed = entry["active_parameters"], "experts cannot be packed"
    if "fp8" in sizes:
        packed = f"{sizes['fp8']} with fp8 or int8 weights, {sizes['int4']} with int4"
    some = f", {active / 1e9:.1f} B active" if active < entry["parameters"] else ""
    return [
        f"{entry['parameters'] / 1e9:.1f} B{some}: {sizes['bfloat16']} GB in bfloat16; {packed}",
        f"{entry['layers']} layers of width {entry['width']}, {entry['heads']} heads over {entry['key_heads']}, "
        f"vocabulary {entry['vocabulary']}, context {entry['context']}{blocks}",
    ]


def _about_lines(entry: dict[str, Any]) -> list[str]:
    """What is said once for releases that have it in common."""
    own, checked = entry["own_sampler"], entry["checked"][-1]
    return [f"licence: {entry['licence']}"] + [f"own: {own}"] * bool(own) + [f"checked: {checked}"] * bool(checked)


def _print_indented(console: Console, indent: int, *lines: str) -> None:
    from rich.padding import Padding

    for line in lines:
        console.print(Padding(line, (0, 0, 0, indent)))
