"""`uncode count`: a corpus and a tokenizer become a frequency table."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Annotated

import typer

from ..backbones.named_tokenizer import load_tokenizer
from ..core.errors import require
from ..frequency.corpora import Corpus, Source, read_recipe, read_size
from ..frequency.count import Counted, count
from ..frequency.job import Rules
from ..frequency.shards import FORMATS
from .options import Json
from .progress import counting, writable


def command(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...", help="Files, globs, folders, addresses, dataset ids, a recipe (.toml), or -."
        ),
    ],
    tokenizer: Annotated[str, typer.Option(help="A model's folder or hub id, or a tokenizer.json.")],
    out: Annotated[Path, typer.Option(help="Where to write the table (safetensors).")],
    name: Annotated[str | None, typer.Option(help="The table's name.  [default: the output's]")] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(help="A field to count; may be repeated, and reach inside (messages.content).  [default: text]"),
    ] = None,
    file_format: Annotated[
        str | None, typer.Option("--format", help="text, jsonl, csv, tsv or parquet.  [default: by the file's name]")
    ] = None,
    encoding: Annotated[str, typer.Option(help="Of the files.")] = "utf-8",
    config: Annotated[str | None, typer.Option(help="Configuration of a dataset id (en, ...).")] = None,
    split: Annotated[str, typer.Option(help="Split of a dataset id.")] = "train",
    revision: Annotated[str | None, typer.Option(help="Revision of the tokenizer's hub id.")] = None,
    max_bytes: Annotated[str | None, typer.Option(help="The first documents, up to so much text: 16GB.")] = None,
    max_documents: Annotated[int | None, typer.Option(min=1, help="The first so many documents.")] = None,
    sample: Annotated[float, typer.Option(help="A part of the documents, drawn by their content.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Which part the sample is.")] = 0,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad record.")] = False,
    allow_bad: Annotated[float, typer.Option(min=0, max=1, help="Stop when more than this part is bad.")] = 0.01,
    plain: Annotated[bool, typer.Option("--plain", help="Tokenize whole texts, not distinct words; slower.")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Begin again, not where a killed count stopped.")] = False,
    ray: Annotated[
        str | None, typer.Option(help="Count on a Ray cluster: its address, or local for one on this machine.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Count how often each token occurs in a corpus. A count that was killed goes on where it stopped.

    Examples:

      uncode count data/*.jsonl.zst --tokenizer ./my-model --out mine.safetensors

      uncode count allenai/c4 --config en --max-bytes 16GB --tokenizer GSAI-ML/LLaDA-8B-Instruct --out c4.safetensors

      uncode count recipes/corpora/c4-16gb.toml --tokenizer Dream-org/Dream-v0-Instruct-7B --out c4.safetensors

      zcat books.gz | uncode count - --tokenizer ./my-model --out books.safetensors

      uncode count s3://bucket/c4/ --ray auto --tokenizer ./my-model --out c4.safetensors
    """
    writable(out)
    require(
        file_format is None or file_format in FORMATS.values(),
        f"'{file_format}' is not a format: choose text, jsonl, csv, tsv or parquet.",
    )
    if any(source.endswith(".toml") for source in sources):
        require(len(sources) == 1, "a recipe stands alone: name its sources in it.")
        require(Path(sources[0]).is_file(), f"there is no recipe '{sources[0]}'.")
        fixed = field or file_format or config
        require(not fixed, "a recipe says itself what it reads: leave --field, --format and --config out.")
        corpus = read_recipe(Path(sources[0]))
    else:
        made = [Source(where, file_format, tuple(field or ("text",)), encoding, config, split) for where in sources]  # type: ignore[arg-type]
        corpus = Corpus(name or out.stem, tuple(made))
    limits = {
        "name": name,
        "max_bytes": read_size(max_bytes) if max_bytes else None,
        "max_documents": max_documents,
        "sample": sample if sample != 1 else None,
        "seed": seed or None,
    }
    corpus = dataclasses.replace(corpus, **{key: value for key, value in limits.items() if value is not None})  # type: ignore[arg-type]
    named = load_tokenizer(tokenizer, revision)
    began = time.monotonic()
    with counting(corpus.name) as watch:
        done = count(
            corpus,
            named.tokenizer,
            out,
            tokenizer_name=named.name,
            revision=named.revision,
            rules=Rules(strict, allow_bad),
            plain=plain,
            restart=restart,
            ray=ray,
            watch=watch,
        )
    _tell(done, out, time.monotonic() - began, as_json)


def _tell(done: Counted, out: Path, seconds: float, as_json: bool) -> None:
    made, totals = done.table.made, done.totals
    for fault in sorted(totals.faults, key=lambda fault: (fault.file, fault.line)):
        typer.echo(f"bad: {fault}", err=True)
    if totals.bad > len(totals.faults):
        typer.echo(f"bad: and {totals.bad - len(totals.faults):,} more", err=True)
    if as_json:
        facts = dataclasses.asdict(made) | {"sha256": done.table.sha256, "out": str(out), "seconds": seconds}
        facts |= {"faults": [dataclasses.asdict(fault) for fault in totals.faults], "resumed": done.resumed}
        typer.echo(json.dumps(facts, indent=2))
        return
    left_out = f", {made.bad:,} bad records left out" if made.bad else ""
    typer.echo(
        f"{out}: {made.tokens:,} tokens in {made.documents:,} documents, {made.bytes:,} bytes{left_out}; "
        f"{seconds:.1f} s{', the rest of an earlier run' if done.resumed else ''}."
    )
