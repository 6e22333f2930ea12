"""`uncode convert`: pickled weights to safetensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ..options import Json
from ..printing import loading

SUMMARY = "Convert pickled weights (pytorch_model.bin) to safetensors."


def command(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="The folder of a checkpoint.")],
    out: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="A folder for the converted checkpoint.  [default: beside the pickled files]"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the weights in pytorch_model.bin, or in its shards, as safetensors. The pickled files stay.

    A pickle can run code. It is read by a process that only makes tensors, and that can start nothing, write no other
    file and reach no network. A file that holds more than weights is refused.

    Examples:

      uncode convert bert-base
      uncode convert old/model --out new/model
    """
    with loading():
        from rich.filesize import decimal

        from ...backbones.loading.convert import convert
        from ...util.progress import item_bar
    with item_bar("converting") as on_progress:
        done = convert(folder, out, on_progress)
    kinds = sorted({tensor.kind for tensor in done.tensors})
    if as_json:
        facts = {"files": list(map(str, done.files)), "tensors": len(done.tensors), "bytes": done.bytes}
        typer.echo(json.dumps(facts | {"dtypes": kinds, "tied": done.tied}))
        return
    for file in done.files:
        typer.echo(str(file))
    typer.echo(f"{len(done.tensors):,} tensors, {decimal(done.bytes)}, {', '.join(kinds)}.")
    for name, kept in done.tied.items():
        typer.echo(f"{name} is {kept}, and is stored once.")
