"""`uncode table`: frequency tables: import, get, show, compare, merge."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import require
from .options import Force, Json, Tokenizer, complete_table
from .outputs import check_output, same_file

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as Grid

    from ..frequency import FrequencyTable

SUMMARY = "Frequency tables: get, import, show, compare, merge."
app = typer.Typer(
    help="Frequency tables: fetch the paper's, import, look at, compare and add them; `uncode count` makes them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="A table's file, or the name of one that was fetched.", autocompletion=complete_table
    ),
]
Out = Annotated[Path, typer.Option(metavar="FILE", help="Where to write the table (safetensors).")]
Top = Annotated[int, typer.Option(min=0, metavar="N", help="How many tokens to list.")]


@app.command(name="get", short_help="Fetch a table released with the paper.")
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which released table: llada or dream.")],
    url: Annotated[str | None, typer.Option(metavar="URL", help="Another address of the same file.")] = None,
) -> None:
    """Fetch a table released with the paper (NEUIR/Uncode, MIT) into the cache, check its sha256 and convert it.

    Examples:

      uncode table get llada

      uncode decode "What is 12 * 7?" --model GSAI-ML/LLaDA-8B-Instruct --chat --frequency llada
    """
    from ..frequency import FrequencyTable
    from ..frequency.released import get
    from .progress import download

    with download(f"fetching {name}") as watch:
        path = get(name, url, watch)
    table = FrequencyTable.load(path)
    typer.echo(f"{name}: {table.total:,.0f} tokens over a vocabulary of {len(table):,}; use it as --frequency {name}.")
    typer.echo(f"It lies in {path}.")


@app.command(name="import", short_help="Read a table in the JSON format of the release.")
def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A JSON file of the release's format.")],
    out: Out,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The table's name.  [default: the file's]")] = None,
    vocab_size: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The model's vocabulary, where the tokenizer is not at hand.")
    ] = None,
    tokenizer: Tokenizer = None,
    force: Force = False,
) -> None:
    """Turn a table in the JSON format of the paper's release into one file with a checksum.

    Examples:

      uncode table import reference_corpus_llada.json --out llada.safetensors

      uncode table import mine.json --tokenizer ./my-model --out mine.safetensors
    """
    require(file.is_file(), f"there is no file '{file}'.")
    check_output(out, "--out", "frequency table", force)

    from ..frequency.released import import_released

    named = _tokenizer(tokenizer)
    content = file.read_bytes()
    table = import_released(content, name or file.stem, vocab_size=vocab_size, tokenizer=named and named.tokenizer)
    if named is not None:
        made = dataclasses.replace(table.made, tokenizer=named.name, revision=named.revision)
        table = table.with_provenance(made)
    table.save(out)
    typer.echo(f"{out}: {table.total:,.0f} tokens over a vocabulary of {len(table):,}.")


@app.command(short_help="Where a table comes from, its commonest tokens.")
def show(table: Name, top: Top = 20, tokenizer: Tokenizer = None, as_json: Json = False) -> None:
    """Print where a table comes from and its most frequent tokens.

    Examples:

      uncode table show llada

      uncode table show c4.safetensors --top 40 --tokenizer GSAI-ML/LLaDA-8B-Instruct
    """
    from rich.console import Console
    from rich.table import Table as Grid

    found, words = _read(table, tokenizer)
    entries = found.top(top, words)
    if as_json:
        typer.echo(json.dumps(_as_data(found) | {"top": [dataclasses.asdict(entry) for entry in entries]}, indent=2))
        return
    console = Console(highlight=False)
    _print_facts(console, found)
    grid = Grid(box=None, padding=(0, 2, 0, 0))
    for title in ("id", "token", "count", "share", "S"):
        grid.add_column(title, justify="left" if title == "token" else "right")
    for e in entries:
        grid.add_row(str(e.id), _shown(e.token), f"{e.count:,}", f"{e.share:.3%}", f"{e.surprisal:.2f}")
    console.print("", grid, sep="\n")
    if not words:
        console.print("\nTo see the tokens as text: --tokenizer MODEL", style="dim")


@app.command(name="compare", short_help="How another corpus changes S = -log p.")
def beside(
    a: Name,
    b: Name,
    clip: Annotated[float, typer.Option(metavar="X", help="Where S is cut off, as in the sampler.")] = 10.0,
    top: Top = 10,
    tokenizer: Tokenizer = None,
    as_json: Json = False,
) -> None:
    """Say how another corpus changes S = -log p, which Uncode weighs tokens by.

    Examples:

      uncode table compare c4-16gb.safetensors slimpajama.safetensors --tokenizer ./my-model
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as Grid

    from ..frequency import compare

    (one, words), (two, _) = _read(a, tokenizer), _read(b, tokenizer)
    c = compare(one, two, clip)
    rows = [(i, one.entry(i, words), two.entry(i, words)) for i in c.moved(top)]
    if as_json:
        told = {f.name: getattr(c, f.name) for f in dataclasses.fields(c) if f.name not in ("surprisal", "weight")}
        moved = [
            {"id": i, "token": x.token, "a": min(x.surprisal, clip), "b": min(y.surprisal, clip)} for i, x, y in rows
        ]
        typer.echo(json.dumps({"a": one.name, "b": two.name} | told | {"moved": moved}, indent=2))
        return
    console = Console(highlight=False)
    for letter, table in (("A", one), ("B", two)):
        console.print(f"[bold]{letter}[/bold]  {escape(table.name)}: {table.total:,.0f} tokens")
    console.print()
    console.print(_measures(c))
    grid = Grid(box=None, padding=(0, 2, 0, 0))
    for title in ("id", "token", "S in A", "S in B", "change"):
        grid.add_column(title, justify="left" if title == "token" else "right")
    for i, x, y in rows:
        before, after = min(x.surprisal, clip), min(y.surprisal, clip)
        grid.add_row(str(i), _shown(x.token), f"{before:.2f}", f"{after:.2f}", f"{after - before:+.2f}")
    if rows:
        console.print(
            "\nThe tokens that change the prior most (change times how often they are read):\n", grid, sep="\n"
        )


@app.command(short_help="Add tables of one tokenizer.")
def merge(
    tables: Annotated[list[str], typer.Argument(metavar="TABLE...", help="Tables of one tokenizer.")],
    out: Out,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The name of the sum.")] = None,
    force: Force = False,
) -> None:
    """Add tables of one tokenizer: the table of all their texts together.

    Examples:

      uncode table merge books.safetensors maths.safetensors --name book-and-code --out both.safetensors
    """
    require(len(tables) > 1, "merge takes two tables or more.")
    for table in tables:
        require(not same_file(Path(table), out), f"'{out}' is one of the tables to add: choose another --out.")
    check_output(out, "--out", "frequency table", force)
    first, *others = (_read(table, None)[0] for table in tables)
    merged = first.merge(*others, name=name)
    merged.save(out)
    typer.echo(f"{out}: {merged.name}, {merged.total:,.0f} tokens.")


def _read(table: str, tokenizer: str | None) -> tuple[FrequencyTable, Any]:
    from ..frequency import FrequencyTable
    from ..frequency.names import find

    path = find(table)
    named = _tokenizer(tokenizer)
    words = named and named.tokenizer
    return FrequencyTable.load(path, words), words


def _tokenizer(name: str | None) -> Any:
    if name is None:
        return None
    from ..backbones.named_tokenizer import load_tokenizer

    return load_tokenizer(name)


def _as_data(table: FrequencyTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "sha256": table.sha256,
        "vocabulary": len(table),
        "unseen": table.unseen,
        "total": table.array.sum().item(),
        "special_ids": table.special_ids,
        "made": dataclasses.asdict(table.made),
    }


def _print_facts(console: Console, table: FrequencyTable) -> None:
    """Where it comes from, one line each; what is not known is left out."""
    made, surprisal = table.made, table.surprisal_array()
    below = int((surprisal < 10).sum())
    files = f"{len(made.files):,} files" if len(made.files) != 1 else made.files[0]
    text = [f"{made.bytes:,} bytes of text"] * bool(made.bytes) + [f"{made.documents:,} documents"] * bool(
        made.documents
    )
    by = f"{made.tokenizer}{f' at {made.revision[:12]}' if made.revision else ''}"
    facts = {
        "table": table.name,
        "tokens": f"{table.total:,.0f} over a vocabulary of {len(table):,}, {table.unseen:,} unseen",
        "S": f"{float(surprisal.min()):.2f} to {float(surprisal.max()):.2f}; {below:,} tokens below 10",
        "corpus": made.corpus,
        "from": files if made.files else "",
        "text": ", ".join([*text, f"{made.bad:,} bad records left out"] if made.bad else text),
        "asked": made.settings,
        "tokenizer": " ".join([by, f"(fingerprint {made.fingerprint})"]) if made.fingerprint else by,
        "made": " by ".join(part for part in (made.date, f"uncode {made.version}" if made.version else "") if part),
        "sha256": table.sha256,
    }
    console.print(_pairs({f"[bold]{key}[/bold]": value for key, value in facts.items() if value}))


def _measures(c: Any) -> Grid:
    (ab, ba), (seen_a, seen_b, seen), (below_a, below_b, below) = c.divergence, c.seen, c.below
    lines = {
        "KL(A || B), KL(B || A)": f"{ab:.4f}, {ba:.4f} nats",
        "tokens seen in A, B, both": f"{seen_a:,}, {seen_b:,}, {seen:,}",
        f"tokens with S below {c.clip:g} in A, B, both": f"{below_a:,}, {below_b:,}, {below:,}",
        "mean S of a token of A, by A and by B": f"{c.mean[0]:.3f}, {c.mean[1]:.3f}",
        "mean change of S, reading A, reading B": f"{c.change[0]:.3f}, {c.change[1]:.3f}",
        "rank correlation of S, tokens seen in both": f"{c.correlation:.4f}",
    }
    return _pairs(lines)


def _pairs(lines: dict[str, str]) -> Grid:
    from rich.markup import escape
    from rich.table import Table as Grid

    grid = Grid(box=None, show_header=False, padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for key, value in lines.items():
        grid.add_row(key, escape(value))
    return grid


def _shown(token: str) -> str:
    """A token in quotes, with its blanks and line ends visible, safe from the console's markup."""
    from rich.markup import escape

    return escape(json.dumps(token, ensure_ascii=False)) if token else ""
