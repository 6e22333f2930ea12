"""`uncode compare`: one prompt under several samplers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from ..core.errors import require, suggest
from ..core.piece import Table as FrequencyTable
from ..core.policy import Sampler
from ..generate import begin
from ..prompt import answers
from ..viewer.moments import first_end, summary
from ..viewer.page import Trajectory, write_page
from . import options as shared
from .drawing import draw, legend, spots_of
from .progress import counted, writable
from .prompts import read_prompt, typed

NARROWEST = 34
"""A column with fewer letters than this is hard to read: then one sampler stands below the other."""

Option = typer.Option
Samplers = Annotated[str, Option(help="Names of samplers, or TOML files, with commas between them.")]
NamedSettings = Annotated[
    list[str] | None, Option("--set", metavar="NAME.KEY=VALUE", help="An option of one sampler; may be repeated.")
]
Page = Annotated[Path | None, Option(metavar="FILE", help="Write a page to look at in a browser (HTML).")]


def command(
    prompt: Annotated[str, typer.Argument(help="The prompt, or a text with gaps (<mask:3>); - reads standard input.")],
    samplers: Samplers = "confidence,semi_ar,uncode",
    settings: NamedSettings = None,
    frequency: shared.Frequency = None,
    model: shared.Model = "tiny",
    length: shared.Length = None,
    seed: shared.Seed = 0,
    chat: shared.Chat = False,
    guidance: shared.Guidance = 0.0,
    whole: shared.Whole = False,
    device: shared.Device = None,
    dtype: shared.Dtype = None,
    revision: shared.Revision = None,
    page: Page = None,
    as_json: shared.Json = False,
) -> None:
    """Answer one prompt with several samplers, same seed, and show what each wrote, when, and for how many forwards.

    Examples:

      uncode tasks mini_algebra --example 3 | uncode compare -

      uncode tasks mini_algebra | uncode compare - --samplers confidence,eb,uncode --set eb.gamma=0.5

      uncode tasks mini_story | uncode compare - --samplers left_to_right,story,mine.toml --page compared.html
    """
    if page is not None:
        writable(page, "--page")
    names = [name.strip() for name in samplers.split(",") if name.strip()]
    chosen = _settings_of(names, settings or [])
    choice = shared.ModelChoice(model, device, dtype, revision, guidance)
    files = [(choice.recipe(name), options) for name, options in chosen.items()]
    denoiser, recipes = choice.load(lambda own: _build(files, frequency, own))
    row, seeds = read_prompt(denoiser, typed(prompt), chat, length), [seed] * len(recipes)
    run = begin(denoiser, [row] * len(recipes), recipes, seeds, stop_at_eos=not whole)
    with counted("decoding") as watch:
        for step in run:
            watch(len(recipes) - len(step.rows) + len(step.finished), len(recipes))
    trace, tokenizer = run.trace(), denoiser.tokenizer
    texts = answers(denoiser, [row] * len(recipes), trace)
    rows = [trace.row(number, tokenizer, title=name, text=texts[number]) for number, name in enumerate(chosen)]
    if page is not None:
        write_page(page, [Trajectory(row["title"], row) for row in rows], f"One prompt, {len(rows)} samplers")
    if as_json:
        typer.echo(json.dumps([row | {"first_end": first_end(row)} for row in rows]))
        return
    _show(Console(highlight=False), rows)


def _settings_of(names: list[str], settings: list[str]) -> dict[str, list[str]]:
    """The settings of each sampler, as KEY=VALUE. A name may hold dots; a key holds none."""
    require(len(names) > 0, "no sampler was named: --samplers takes names with commas between them.")
    twice = next((name for name in names if names.count(name) > 1), None)
    require(
        twice is None, f"'{twice}' is named twice: save one as TOML (`uncode samplers {twice}`) and change the file."
    )
    chosen: dict[str, list[str]] = {name: [] for name in names}
    for text in settings:
        whole, equals, value = text.partition("=")
        name, dot, key = whole.rpartition(".")
        require(bool(name and dot and key and equals), f"--set takes NAME.KEY=VALUE here, not '{text}'.")
        require(name in chosen, f"--set {text} is for '{name}', which is not among --samplers: {suggest(name, names)}")
        chosen[name].append(f"{key}={value}")
    return chosen


def _build(chosen: list[tuple[str, list[str]]], frequency: str | None, own: FrequencyTable | None) -> list[Sampler]:
    taking = [name for name, settings in chosen if shared.takes_table(name, settings)]
    require(
        frequency is None or len(taking) > 0, "none of these samplers takes a frequency table: leave --frequency out."
    )
    return [
        shared.build_sampler(name, settings, frequency if name in taking else None, own) for name, settings in chosen
    ]


def _show(console: Console, rows: list[dict[str, Any]]) -> None:
    """Side by side where there is room, and colours to tell when what was written; plain where no one looks."""
    if not console.is_terminal:
        for number, row in enumerate(rows):
            typer.echo("\n" * (number > 0) + f"{row['title']}: {'; '.join(summary(row))}\n{row['text']}")
        return
    columns = console.width // len(rows) - 3 >= NARROWEST
    cells = [_cell(row, apart=columns) for row in rows]
    ends = any(spot.end for row in rows for spot in spots_of(row))
    if columns:
        grid = Table(box=None, show_header=False, padding=(0, 3, 0, 0), pad_edge=False, expand=True)
        for _ in rows:
            grid.add_column(ratio=1, overflow="fold")
        grid.add_row(*cells)
        console.print(grid)
    else:
        console.print(*cells, sep="\n")
    console.print(legend(*["end"] * ends))


def _cell(row: dict[str, Any], apart: bool) -> Group:
    """One sampler: its name, what it cost, its text."""
    clauses = [Text(clause, style="dim") for clause in summary(row)]
    facts = clauses if apart else [Text("; ", style="dim").join(clauses)]
    return Group(Text(row["title"], style="bold"), *facts, Text(), draw(spots_of(row)), Text())
