"""`uncode table`: frequency tables: import, get, show, compare, merge."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ...core.errors import require
from ...core.support.reprs import counted
from ...models import table_of
from ...samplers.catalog import find
from ...util.paths import require_file
from ..options import Force, Json, TableOut, Tokenizer, complete_table
from ..outputs import check_output, same_file
from ..printing import facts, grid, printing

if TYPE_CHECKING:
    from rich.table import Table

    from ...frequency import FrequencyTable, TableComparison

SUMMARY = "Get, import, show, compare and merge frequency tables."
app = typer.Typer(
    help="Frequency tables: download the paper's, import, show, compare and merge. `uncode count` makes new ones.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
CLIP = find("uncode").option("clip")
"""The option of the sampler that `uncode table compare` takes too."""
TABLE_HELP = "A table file, the name of a downloaded table, or a model with its own table (tiny)."


def complete(incomplete: str) -> list[str]:
    return [name for name in ("tiny",) if name.startswith(incomplete)] + complete_table(incomplete)


def complete_released(incomplete: str) -> list[str]:
    from ...frequency.names import RELEASED

    return [name for name in RELEASED if name.startswith(incomplete)]


Top = Annotated[int, Option(min=0, metavar="N", help="How many tokens to list; 0 lists none.")]


@app.command(name="get", short_help="Download a table released with the paper.")
def fetch(
    name: Annotated[
        str, Argument(metavar="NAME", help="Which released table: llada or dream.", autocompletion=complete_released)
    ],
    url: Annotated[str | None, Option(metavar="URL", help="Another URL of the same file.")] = None,
) -> None:
    """Download a table released with the paper (NEUIR/Uncode, MIT) into the cache, check its sha256 and convert it.

    Examples:

      uncode table get llada
      uncode decode "Hello" --model GSAI-ML/LLaDA-8B-Base --frequency llada
    """
    from ...frequency import FrequencyTable
    from ...frequency.released import get
    from ...util.progress import download_bar

    with download_bar(f"fetching {name}") as on_progress:
        path = get(name, url, on_progress)
    table = FrequencyTable.load(path)
    typer.echo(f"{name}: {table.total:,.0f} tokens over a vocabulary of {len(table):,}; use it as --frequency {name}.")
    typer.echo(f"The table is in {path}.")


@app.command(name="import", short_help="Import a table in the JSON format of the release.")
def convert(
    file: Annotated[Path, Argument(metavar="FILE", help="A JSON file in the format of the release.")],
    out: TableOut,
    name: Annotated[str | None, Option(metavar="NAME", help="The table's name.  [default: the file's]")] = None,
    vocab_size: Annotated[
        int | None, Option(min=1, metavar="N", help="The size of the model's vocabulary, if there is no tokenizer.")
    ] = None,
    tokenizer: Annotated[
        str | None,
        Option(metavar="MODEL", help="The table's tokenizer: of a model's folder, a hub id or a tokenizer.json."),
    ] = None,
    force: Force = False,
) -> None:
    """Convert a table in the JSON format of the paper's release into a table file with a checksum.

    Examples:

      uncode table import llada.json --out llada.safetensors
      uncode table import mine.json --tokenizer ./m --out mine.safetensors
    """
    require_file(file)
    check_output(out, "--out", "frequency table", force)

    from ...frequency.released import import_released

    loaded = _tokenizer(tokenizer)
    content = file.read_bytes()
    table = import_released(
        content, name or file.stem, vocab_size=vocab_size, tokenizer=loaded and loaded.tokenizer, file=file
    )
    if loaded is not None:
        made = dataclasses.replace(table.made, tokenizer=loaded.name, revision=loaded.revision)
        table = table.with_provenance(made)
    table.save(out, force=True)
    typer.echo(f"{out}: {table.total:,.0f} tokens over a vocabulary of {len(table):,}.")


@app.command(short_help="Print a table's provenance and most frequent tokens.")
def show(
    table: Annotated[str, Argument(metavar="TABLE", help=TABLE_HELP, autocompletion=complete)],
    top: Top = 20,
    tokenizer: Tokenizer = None,
    as_json: Json = False,
) -> None:
    """Print the provenance of a table and its most frequent tokens.

    Examples:

      uncode table show llada
      uncode table show tiny --tokenizer tiny
      uncode table show c4.safetensors --top 40 --tokenizer ./my-model
    """
    found, loaded_tokenizer = _read(table, tokenizer)
    entries = found.top(top, loaded_tokenizer)
    if as_json:
        about = {
            "name": found.name,
            "sha256": found.sha256,
            "vocabulary": len(found),
            "unseen": found.unseen,
            "total": found.array.sum().item(),
            "special_ids": found.special_ids,
            "made": dataclasses.asdict(found.made),
        }
        typer.echo(json.dumps(about | {"top": [dataclasses.asdict(entry) for entry in entries]}, indent=2))
        return
    rows = [(str(e.id), _quoted(e.token), f"{e.count:,}", f"{e.share:.3%}", f"{e.surprisal:.2f}") for e in entries]
    with printing() as console:
        console.print(facts(_facts_of(found)))
        if rows:
            console.print("", _grid(("id", "token", "count", "share", "S"), rows), sep="\n")
        if rows and not loaded_tokenizer:
            console.print("\nTo see the tokens as text: --tokenizer MODEL", style="dim")


@app.command(name="compare", short_help="Compare the surprisal of two tables.")
def compare_tables(
    a: Annotated[str, Argument(metavar="A", help=TABLE_HELP, autocompletion=complete)],
    b: Annotated[str, Argument(metavar="B", help="The table to compare it with.", autocompletion=complete)],
    clip: Annotated[
        float, Option(f"--{CLIP.name}", metavar="X", help="S is clipped at this value, as in the sampler.")
    ] = CLIP.default,
    top: Top = 10,
    tokenizer: Tokenizer = None,
    as_json: Json = False,
) -> None:
    """Compare the surprisal S = -log p of two tables. Uncode weights tokens by S.

    Examples:

      uncode table compare c4.safetensors books.safetensors
      uncode table compare tiny books.safetensors --tokenizer tiny
    """
    from rich.markup import escape

    from ...frequency import compare

    (one, loaded_tokenizer), (two, _) = _read(a, tokenizer), _read(b, tokenizer)
    c = compare(one, two, clip)
    rows = [(i, one.entry(i, loaded_tokenizer), two.entry(i, loaded_tokenizer)) for i in c.moved(top)]
    moved: list[dict[str, Any]] = [
        {"id": i, "token": x.token, "a": min(x.surprisal, clip), "b": min(y.surprisal, clip)} for i, x, y in rows
    ]
    if as_json:
        fields = {key: value for key, value in vars(c).items() if key not in ("surprisal", "weight")}
        typer.echo(json.dumps({"a": one.name, "b": two.name} | fields | {"moved": moved}, indent=2))
        return
    with printing() as console:
        for letter, table in (("A", one), ("B", two)):
            console.print(f"[bold]{letter}[/bold]  {escape(table.name)}: {table.total:,.0f} tokens")
        console.print()
        console.print(facts(_measures(c)))
        if rows:
            lines = [
                (str(x["id"]), _quoted(x["token"]), f"{x['a']:.2f}", f"{x['b']:.2f}", f"{x['b'] - x['a']:+.2f}")
                for x in moved
            ]
            title = "\nThe tokens that change the prior most (change times frequency):\n"
            console.print(title, _grid(("id", "token", "S in A", "S in B", "change"), lines), sep="\n")


@app.command(short_help="Add tables of the same tokenizer.")
def merge(
    tables: Annotated[
        list[str], Argument(metavar="TABLE...", help="Tables of the same tokenizer.", autocompletion=complete)
    ],
    out: TableOut,
    name: Annotated[str | None, Option(metavar="NAME", help="The name of the sum.")] = None,
    force: Force = False,
) -> None:
    """Add tables of the same tokenizer. The result is the table of all their texts together.

    Examples:

      uncode table merge a.safetensors b.safetensors --out both.safetensors
    """
    require(len(tables) > 1, "merge needs at least two tables: name another one.")
    for table in tables:
        require(not same_file(Path(table), out), f"'{out}' is one of the tables to add: choose another --out.")
    check_output(out, "--out", "frequency table", force)
    first, *others = (_read(table, None)[0] for table in tables)
    merged = first.merge(*others, name=name)
    merged.save(out, force=True)
    typer.echo(f"{out}: {merged.name}, {merged.total:,.0f} tokens.")


def _facts_of(table: FrequencyTable) -> Iterator[tuple[str, str]]:
    """The name, the counts and the provenance of a table. Unknown fields are left out."""
    made, surprisal = table.made, table.surprisal_array()
    below = int((surprisal < 10).sum())
    files = counted(len(made.files), "file") if len(made.files) != 1 else made.files[0]
    documents = counted(made.documents, "document")
    text = [f"{made.bytes:,} bytes of text"] * bool(made.bytes) + [documents] * bool(made.documents)
    by = f"{made.tokenizer}{f' at {made.revision[:12]}' if made.revision else ''}"
    lines = {
        "table": table.name,
        "tokens": f"{table.total:,.0f} over a vocabulary of {len(table):,}, {table.unseen:,} unseen",
        "S": f"{float(surprisal.min()):.2f} to {float(surprisal.max()):.2f}; {below:,} tokens below 10",
        "corpus": made.corpus,
        "from": files if made.files else "",
        "text": ", ".join([*text, f"{made.bad:,} bad records left out"] if made.bad else text),
        "asked": made.settings if made.settings != "{}" else "",
        "tokenizer": " ".join([by, f"(fingerprint {made.fingerprint})"]) if made.fingerprint else by,
        "made": " by ".join(part for part in (made.date, f"uncode {made.version}" if made.version else "") if part),
        "sha256": table.sha256,
    }
    yield from ((f"[bold]{name}[/bold]", value) for name, value in lines.items() if value)


def _measures(c: TableComparison) -> list[tuple[str, str]]:
    (ab, ba), (seen_a, seen_b, seen), (below_a, below_b, below) = c.divergence, c.seen, c.below
    return [
        ("KL(A || B), KL(B || A)", f"{ab:.4f}, {ba:.4f} nats"),
        ("tokens seen in A, B, both", f"{seen_a:,}, {seen_b:,}, {seen:,}"),
        (f"tokens with S below {c.clip:g} in A, B, both", f"{below_a:,}, {below_b:,}, {below:,}"),
        ("mean S of a token of A, by A and by B", f"{c.mean[0]:.3f}, {c.mean[1]:.3f}"),
        ("mean change of S, reading A, reading B", f"{c.change[0]:.3f}, {c.change[1]:.3f}"),
        ("rank correlation of S, tokens seen in both", f"{c.correlation:.4f}"),
    ]


def _grid(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """The rows under their titles. A column of empty tokens, as without a tokenizer, is left out."""
    kept = [n for n, title in enumerate(titles) if title != "token" or any(row[n] for row in rows)]
    tokens = [at for at, n in enumerate(kept) if titles[n] == "token"]
    return grid([titles[n] for n in kept], ([row[n] for n in kept] for row in rows), left=tokens)


def _quoted(token: str) -> str:
    """A token in quotes, with visible blanks and line ends."""
    return json.dumps(token, ensure_ascii=False) if token else ""


def _read(table: str, tokenizer: str | None) -> tuple[FrequencyTable, Any]:
    from ...frequency import FrequencyTable
    from ...frequency.names import find

    path = table_of(table) or find(table)
    require(path.is_file(), f"there is no frequency table at '{path}': check the path.")
    loaded = _tokenizer(tokenizer)
    loaded_tokenizer = loaded and loaded.tokenizer
    return FrequencyTable.load(path, loaded_tokenizer), loaded_tokenizer


def _tokenizer(name: str | None) -> Any:
    if name is None:
        return None
    from ...backbones.loading.tokenizer import load_tokenizer

    return load_tokenizer(name)
