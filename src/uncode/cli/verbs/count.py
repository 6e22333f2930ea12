"""`uncode count`: count the tokens of a corpus into a frequency table."""

from __future__ import annotations

import dataclasses
import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ...core.errors import require
from ...core.support.reprs import counted
from ..options import Json, TableOut
from ..outputs import check_output, check_resumable, same_file

if TYPE_CHECKING:
    from ...frequency.corpora.corpus import Corpus
    from ...frequency.counting.count import Counted
    from ...frequency.fingerprint import Tokenizer
    from ...frequency.table import FrequencyTable

SUMMARY = "Count a corpus into a frequency table for Uncode."
MAX_UNKNOWN = 0.05
"""A larger share of unknown tokens is warned of: the table would be one of another language."""


def complete_spec(incomplete: str) -> list[str]:
    from ...frequency.corpora.corpus_spec import package_specs

    return [name for name in package_specs() if name.startswith(incomplete)]


def command(
    sources: Annotated[
        list[str],
        Argument(
            metavar="SOURCE...",
            help="Files, globs, folders, URLs, dataset ids, a corpus spec (.toml or a name), or -.",
            autocompletion=complete_spec,
        ),
    ],
    tokenizer: Annotated[str, Option(metavar="MODEL", help="A model's folder or hub id, or a tokenizer.json.")],
    out: TableOut,
    name: Annotated[
        str | None, Option(metavar="NAME", help="The table's name.  [default: the name of the output]")
    ] = None,
    field: Annotated[
        list[str] | None,
        Option(
            metavar="FIELD",
            help="A field to count; may be repeated; may be a path (messages.content).  [default: text]",
        ),
    ] = None,
    file_format: Annotated[
        str | None,
        Option(
            "--format", metavar="FORMAT", help="text, jsonl, csv, tsv or parquet.  [default: by the names of the files]"
        ),
    ] = None,
    encoding: Annotated[str | None, Option(metavar="NAME", help="The encoding of the files.  [default: utf-8]")] = None,
    config: Annotated[str | None, Option(metavar="NAME", help="Configuration of a dataset id (en, ...).")] = None,
    split: Annotated[str | None, Option(metavar="NAME", help="Split of a dataset id.  [default: train]")] = None,
    max_bytes: Annotated[
        str | None, Option(metavar="SIZE", help="Count the first documents, up to this much text: 16GB.")
    ] = None,
    max_documents: Annotated[int | None, Option(min=1, metavar="N", help="Count the first N documents.")] = None,
    sample: Annotated[
        float,
        Option(metavar="SHARE", help="Count this share of the documents, above 0 and at most 1, chosen by a hash."),
    ] = 1.0,
    seed: Annotated[int, Option(metavar="N", help="The seed of the sample.")] = 0,
    strict: Annotated[bool, Option("--strict", help="Stop at the first bad record.")] = False,
    allow_bad: Annotated[
        float, Option(min=0, max=1, metavar="SHARE", help="Stop when more than this share of the records is bad.")
    ] = 0.01,
    plain: Annotated[
        bool, Option("--plain", help="Tokenize whole texts, not distinct words: the same counts, slower.")
    ] = False,
    restart: Annotated[bool, Option("--restart", help="Start again; do not resume a killed count.")] = False,
    ray: Annotated[
        str | None, Option(metavar="[ADDRESS]", help="Count on a Ray cluster: the one at ADDRESS, or a local one.")
    ] = None,
    revision: Annotated[str | None, Option(metavar="NAME", help="Revision of the tokenizer's hub id.")] = None,
    force: Annotated[
        bool, Option("--force", help="Count a finished table again; overwrite a file uncode did not write.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Count how often each token occurs in a corpus. A killed count is resumed from OUT.counting; a finished one is
    not repeated.

    Examples:

      uncode count data/*.jsonl.zst --tokenizer tiny --out mine.safetensors
      uncode count c4-16gb --tokenizer ./my-model --out c4.safetensors
      uncode count allenai/c4 --config en --tokenizer tiny --out c4.safetensors
      uncode count books/ --max-bytes 1GB --tokenizer tiny --out b.safetensors
      zcat books.gz | uncode count - --tokenizer tiny --out books.safetensors
      uncode count s3://me/c4/ --ray --tokenizer tiny --out c4.safetensors
    """
    check_resumable(out, "--out")
    for source in sources:
        require(not same_file(Path(source), out), f"'{out}' is the corpus itself: choose another --out.")
    check_output(out, "--out", "frequency table", force)

    from ...backbones.loading.tokenizer import check_name, load_tokenizer
    from ...frequency.corpora.corpus import read_size
    from ...frequency.counting.checkpoint import checkpoint_of
    from ...frequency.counting.count import count
    from ...frequency.counting.job import BadRecordRules
    from ..progress import counting_bar

    given = {"format": file_format, "fields": field and tuple(field), "encoding": encoding}
    given |= {"config": config, "split": split}
    corpus = _corpus(sources, name or out.stem, {key: value for key, value in given.items() if value})
    corpus = dataclasses.replace(
        corpus,
        name=name or corpus.name,
        max_bytes=read_size(max_bytes) if max_bytes else corpus.max_bytes,
        max_documents=max_documents or corpus.max_documents,
        sample=corpus.sample if sample == 1 else sample,
        seed=seed or corpus.seed,
    )
    check_name(tokenizer)
    shards = corpus.shards()  # errors in the sources come before the tokenizer is loaded
    loaded, began = load_tokenizer(tokenizer, revision), time.monotonic()
    try:
        with counting_bar(corpus.name) as on_progress:
            done = count(
                corpus,
                loaded.tokenizer,
                out,
                tokenizer_name=loaded.name,
                revision=loaded.revision,
                rules=BadRecordRules(strict, allow_bad),
                plain=plain,
                restart=restart,
                reuse=not (force or restart),
                shards=shards,
                ray=ray,
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        kept = checkpoint_of(out)
        resumable = f"stopped; the same command resumes from '{kept}'"
        typer.echo(resumable if kept.is_file() else "stopped; nothing was kept", err=True)
        raise
    _warn_of_unknown(done.table, loaded.tokenizer)
    _report(done, out, time.monotonic() - began, as_json)


def _corpus(sources: list[str], name: str, reading: dict[str, Any]) -> Corpus:
    """The corpus of the sources on the command line, or of one corpus spec."""
    from ...frequency.corpora.corpus import Corpus, Source, is_dataset_id
    from ...frequency.corpora.corpus_spec import find_spec, read_spec
    from ...frequency.corpora.shards import FORMATS

    chosen = reading.get("format")
    require(
        chosen is None or chosen in FORMATS.values(),
        f"'{chosen}' is not a format: choose text, jsonl, csv, tsv or parquet.",
    )
    specs = [spec for spec in map(find_spec, sources) if spec is not None]
    if not specs:
        of_datasets = [f"--{key}" for key in ("config", "split") if key in reading]
        unused = bool(of_datasets) and not any(map(is_dataset_id, sources))
        many = len(of_datasets) > 1
        require(
            not unused,
            f"{' and '.join(of_datasets)} {'are' if many else 'is'} for dataset ids, and '{sources[0]}' is none: leave "
            f"{'them' if many else 'it'} out.",
        )
        return Corpus(name, tuple(Source(where, **reading) for where in sources))
    require(len(sources) == 1, "a corpus spec cannot be mixed with other sources: name them in the spec.")
    given = [f"--{key.removesuffix('s')}" for key in reading]
    require(not given, f"a corpus spec sets its own reading options: leave {', '.join(given)} out.")
    return read_spec(specs[0])


def with_ray_address(words: list[str]) -> list[str]:
    """The command line with a bare `--ray` written as `--ray=`, since the parser requires a value."""
    address = re.compile(r"auto|local|ray://\S+|[\w.-]+:\d+")
    return [
        "--ray=" if word == "--ray" and not address.fullmatch("".join(words[after : after + 1])) else word
        for after, word in enumerate(words, 1)
    ]


def _report(done: Counted, out: Path, seconds: float, as_json: bool) -> None:
    made, totals = done.table.made, done.totals
    for fault in sorted(totals.faults, key=lambda fault: (fault.file, fault.line)):
        typer.echo(f"bad: {fault}", err=True)
    if totals.bad > len(totals.faults):
        typer.echo(f"bad: and {totals.bad - len(totals.faults):,} more", err=True)
    if as_json:
        facts = dataclasses.asdict(made) | {"sha256": done.table.sha256, "out": str(out), "seconds": seconds}
        facts |= {"faults": [dataclasses.asdict(fault) for fault in totals.faults], "resumed": done.resumed}
        facts |= {"reused": done.reused}
        typer.echo(json.dumps(facts, indent=2))
        return
    documents, tokens = counted(made.documents, "document"), counted(made.tokens, "token")
    if done.reused:
        typer.echo(f"{out}: made by the same command on {made.date}, {tokens} in {documents}; --force counts again.")
        return
    left_out = f", {made.bad:,} bad left out" if made.bad else ""
    typer.echo(
        f"{out}: {tokens} in {documents}, {made.bytes:,} bytes of text{left_out}; "
        f"{seconds:.1f} s{', the rest of an earlier run' if done.resumed else ''}."
    )


def _warn_of_unknown(table: FrequencyTable, tokenizer: Tokenizer) -> None:
    from ...frequency.fingerprint import unknown_id

    unknown = unknown_id(tokenizer)
    if unknown is not None and (share := table.array[unknown] / table.total) > MAX_UNKNOWN:
        typer.echo(
            f"{100 * share:.1f} % of the tokens are unknown ({tokenizer.convert_ids_to_tokens(unknown)}), so the table "
            "says little about this corpus: give the --tokenizer of a model that knows such texts.",
            err=True,
        )
