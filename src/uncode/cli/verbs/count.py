"""`uncode count`: count the tokens of a corpus into a frequency table."""

from __future__ import annotations

import dataclasses
import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...core.errors import require
from ...core.support.reprs import counted
from ..options import Json
from ..outputs import check_output, check_resumable, same_file

if TYPE_CHECKING:
    from ...frequency.corpora.corpus import Corpus
    from ...frequency.counting.count import Counted
    from ...frequency.table import FrequencyTable

SUMMARY = "Count a corpus into a frequency table for Uncode."
MAX_UNKNOWN = 0.05
"""A larger share of unknown tokens is warned of: the table would be one of another language."""
Option = typer.Option


def complete_spec(incomplete: str) -> list[str]:
    from ...frequency.corpora.corpus_spec import package_specs

    return [name for name in package_specs() if name.startswith(incomplete)]


Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="Files, globs, folders, URLs, dataset ids, a corpus spec (.toml or a name), or -.",
        autocompletion=complete_spec,
    ),
]
Tokenizer = Annotated[str, Option(metavar="MODEL", help="A model's folder or hub id, or a tokenizer.json.")]
Revision = Annotated[str | None, Option(metavar="NAME", help="Revision of the tokenizer's hub id.")]
Out = Annotated[Path, Option(metavar="FILE", help="Where to write the table (safetensors).")]
Name = Annotated[str | None, Option(metavar="NAME", help="The table's name.  [default: the name of the output]")]
Field = Annotated[
    list[str] | None,
    Option(
        metavar="FIELD", help="A field to count; may be repeated; may be a path (messages.content).  [default: text]"
    ),
]
Format = Annotated[
    str | None,
    Option(
        "--format", metavar="FORMAT", help="text, jsonl, csv, tsv or parquet.  [default: by the names of the files]"
    ),
]
Encoding = Annotated[str | None, Option(metavar="NAME", help="The encoding of the files.  [default: utf-8]")]
Config = Annotated[str | None, Option(metavar="NAME", help="Configuration of a dataset id (en, ...).")]
Split = Annotated[str | None, Option(metavar="NAME", help="Split of a dataset id.  [default: train]")]
MaxBytes = Annotated[str | None, Option(metavar="SIZE", help="Count the first documents, up to this much text: 16GB.")]
MaxDocuments = Annotated[int | None, Option(min=1, metavar="N", help="Count the first N documents.")]
Sample = Annotated[
    float, Option(metavar="SHARE", help="Count this share of the documents, above 0 and at most 1, chosen by a hash.")
]
Seed = Annotated[int, Option(metavar="N", help="The seed of the sample.")]
Strict = Annotated[bool, Option("--strict", help="Stop at the first bad record.")]
AllowBad = Annotated[
    float, Option(min=0, max=1, metavar="SHARE", help="Stop when more than this share of the records is bad.")
]
Plain = Annotated[bool, Option("--plain", help="Tokenize whole texts, not distinct words: the same counts, slower.")]
Restart = Annotated[bool, Option("--restart", help="Start again; do not resume a killed count.")]
Force = Annotated[bool, Option("--force", help="Count a finished table again; overwrite a file uncode did not write.")]
Ray = Annotated[
    str | None,
    Option(metavar="[ADDRESS]", help="Count on a Ray cluster: the one at ADDRESS, or a local one."),
]


def command(
    sources: Sources,
    tokenizer: Tokenizer,
    out: Out,
    name: Name = None,
    field: Field = None,
    file_format: Format = None,
    encoding: Encoding = None,
    config: Config = None,
    split: Split = None,
    max_bytes: MaxBytes = None,
    max_documents: MaxDocuments = None,
    sample: Sample = 1.0,
    seed: Seed = 0,
    strict: Strict = False,
    allow_bad: AllowBad = 0.01,
    plain: Plain = False,
    restart: Restart = False,
    ray: Ray = None,
    revision: Revision = None,
    force: Force = False,
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
    _check_out(out, sources, force)

    from ...backbones.loading.tokenizer import check_name, load_tokenizer
    from ...frequency.corpora.corpus import read_size
    from ...frequency.counting.job import BadRecordRules

    fields = field and tuple(field)
    reading = {"format": file_format, "fields": fields, "config": config, "split": split, "encoding": encoding}
    limits = {"max_bytes": read_size(max_bytes) if max_bytes else None, "max_documents": max_documents}
    drawn = {"sample": sample if sample != 1 else None, "seed": seed or None}
    corpus = _corpus(sources, name, out, {key: value for key, value in reading.items() if value})
    changes: dict[str, Any] = {"name": name, **limits, **drawn}
    corpus = dataclasses.replace(corpus, **{key: value for key, value in changes.items() if value is not None})
    check_name(tokenizer)
    shards = corpus.shards()  # errors in the sources come before the tokenizer is loaded
    loaded, rules = load_tokenizer(tokenizer, revision), BadRecordRules(strict, allow_bad)
    settings: dict[str, Any] = {
        "tokenizer_name": loaded.name,
        "revision": loaded.revision,
        "rules": rules,
        "shards": shards,
    }
    settings |= {"plain": plain, "restart": restart, "reuse": not (force or restart), "ray": ray}
    began = time.monotonic()
    done = _count(corpus, loaded.tokenizer, out, **settings)
    _report(done, out, time.monotonic() - began, as_json)


def _check_out(out: Path, sources: list[str], force: bool) -> None:
    check_resumable(out, "--out")
    for source in sources:
        require(not same_file(Path(source), out), f"'{out}' is the corpus itself: choose another --out.")
    check_output(out, "--out", "frequency table", force)


def _count(corpus: Corpus, tokenizer: Any, out: Path, **settings: Any) -> Counted:
    from ...frequency.counting.checkpoint import checkpoint_of
    from ...frequency.counting.count import count
    from ..progress import counting_bar

    try:
        with counting_bar(corpus.name) as on_progress:
            done = count(corpus, tokenizer, out, on_progress=on_progress, **settings)
    except KeyboardInterrupt:
        kept = checkpoint_of(out)
        resumable = f"stopped; the same command resumes from '{kept}'"
        typer.echo(resumable if kept.is_file() else "stopped; nothing was kept", err=True)
        raise
    _warn_of_unknown(done.table, tokenizer)
    return done


def _corpus(sources: list[str], name: str | None, out: Path, reading: dict[str, Any]) -> Corpus:
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
        return Corpus(name or out.stem, tuple(Source(where, **reading) for where in sources))
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


def _warn_of_unknown(table: FrequencyTable, tokenizer: Any) -> None:
    from ...frequency.fingerprint import unknown_id

    unknown = unknown_id(tokenizer)
    share = 0.0 if unknown is None else table.array[unknown] / table.total
    if share > MAX_UNKNOWN:
        typer.echo(
            f"{100 * share:.1f} % of the tokens are unknown ({tokenizer.convert_ids_to_tokens(unknown)}), so the table "
            "says little about this corpus: give the --tokenizer of a model that knows such texts.",
            err=True,
        )
