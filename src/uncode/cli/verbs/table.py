"""`uncode table`: frequency tables: import, get, show, compare, merge."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...core.errors import require
from ...models import table_of
from ...util.paths import require_file
from ..options import Force, Json, Tokenizer, complete_table
from ..outputs import check_output, same_file
from ..printing import printing

if TYPE_CHECKING:
    from ...frequency import FrequencyTable

SUMMARY = "Frequency tables: get, import, show, compare, merge."
app = typer.Typer(
    help="Frequency tables: download the paper's, import, show, compare and merge. `uncode count` makes new ones.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
TABLE_HELP = "A table file, the name of a downloaded table, or a model with its own table (tiny)."


def complete(incomplete: str) -> list[str]:
    return [name for name in ("tiny",) if name.startswith(incomplete)] + complete_table(incomplete)


def complete_released(incomplete: str) -> list[str]:
    from ...frequency.published import RELEASED

    return [name for name in RELEASED if name.startswith(incomplete)]


Out = Annotated[Path, typer.Option(metavar="FILE", help="Where to write the table (safetensors).")]
Top = Annotated[int, typer.Option(min=0, metavar="N", help="How many tokens to list; 0 lists none.")]


@app.command(name="get", short_help="Download a table released with the paper.")
def fetch(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Which released table: llada or dream.", autocompletion=complete_released),
    ],
    url: Annotated[str | None, typer.Option(metavar="URL", help="Another URL of the same file.")] = None,
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
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A JSON file in the format of the release.")],
    out: Out,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The table's name.  [default: the file's]")] = None,
    vocab_size: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="The size of the model's vocabulary, if there is no tokenizer."),
    ] = None,
    tokenizer: Tokenizer = None,
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
    table: Annotated[str, typer.Argument(metavar="TABLE", help=TABLE_HELP, autocompletion=complete)],
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
    from ..table_text import as_data, columns, print_facts, quoted

    found, loaded_tokenizer = _read(table, tokenizer)
    entries = found.top(top, loaded_tokenizer)
    if as_json:
        typer.echo(json.dumps(as_data(found) | {"top": [dataclasses.asdict(entry) for entry in entries]}, indent=2))
        return
    rows = [(str(e.id), quoted(e.token), f"{e.count:,}", f"{e.share:.3%}", f"{e.surprisal:.2f}") for e in entries]
    with printing() as console:
        print_facts(console, found)
        if rows:
            console.print("", columns(("id", "token", "count", "share", "S"), rows), sep="\n")
        if rows and not loaded_tokenizer:
            console.print("\nTo see the tokens as text: --tokenizer MODEL", style="dim")


@app.command(name="compare", short_help="Compare the surprisal of two tables.")
def compare_tables(
    a: Annotated[str, typer.Argument(metavar="A", help=TABLE_HELP, autocompletion=complete)],
    b: Annotated[str, typer.Argument(metavar="B", help="The table to compare it with.", autocompletion=complete)],
    clip: Annotated[float, typer.Option(metavar="X", help="S is clipped at this value, as in the sampler.")] = 10.0,
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
    from ..table_text import columns, measures, quoted

    (one, loaded_tokenizer), (two, _) = _read(a, tokenizer), _read(b, tokenizer)
    c = compare(one, two, clip)
    rows = [(i, one.entry(i, loaded_tokenizer), two.entry(i, loaded_tokenizer)) for i in c.moved(top)]
    moved: list[dict[str, Any]] = [
        {"id": i, "token": x.token, "a": min(x.surprisal, clip), "b": min(y.surprisal, clip)} for i, x, y in rows
    ]
    if as_json:
        fields = {f.name: getattr(c, f.name) for f in dataclasses.fields(c) if f.name not in ("surprisal", "weight")}
        typer.echo(json.dumps({"a": one.name, "b": two.name} | fields | {"moved": moved}, indent=2))
        return
    with printing() as console:
        for letter, table in (("A", one), ("B", two)):
            console.print(f"[bold]{letter}[/bold]  {escape(table.name)}: {table.total:,.0f} tokens")
        console.print()
        console.print(measures(c))
        if rows:
            lines = [
                (str(x["id"]), quoted(x["token"]), f"{x['a']:.2f}", f"{x['b']:.2f}", f"{x['b'] - x['a']:+.2f}")
                for x in moved
            ]
            title = "\nThe tokens that change the prior most (change times frequency):\n"
            console.print(title, columns(("id", "token", "S in A", "S in B", "change"), lines), sep="\n")


@app.command(short_help="Add tables of the same tokenizer.")
def merge(
    tables: Annotated[
        list[str], typer.Argument(metavar="TABLE...", help="Tables of the same tokenizer.", autocompletion=complete)
    ],
    out: Out,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The name of the sum.")] = None,
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
