"""`uncode mini`: the paper's Table 1 in miniature, on the embedded model."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..backbones.load import load
from ..core.errors import require
from ..evals.mini import report
from ..evals.mini.biases import measure
from ..evals.mini.card import card, own_results
from ..evals.mini.results import Results
from ..evals.mini.run import Suite, Watch, full, quick
from ..evals.sandbox import NoJail
from .options import Device, Dtype, Json, Model

PROBLEMS, FEW = 256, 12
WIDE = 1000
"""Columns of output that goes to a file: no table is cut."""


def command(
    model: Model = "tiny",
    few: Annotated[bool, typer.Option("--quick", help="Five presets, few problems, the card's rates.")] = False,
    problems: Annotated[
        int | None, typer.Option(min=1, max=PROBLEMS, help="Of each family.  [default: 256; quick: 12]")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Problems decoded at a time.")] = 256,
    seed: Annotated[int, typer.Option(help="Seed of all randomness.")] = 0,
    device: Device = None,
    dtype: Dtype = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep results and answers there, and resume.")] = None,
    show: Annotated[Path | None, typer.Option(metavar="FILE", help="Print results that lie in a file.")] = None,
    print_card: Annotated[bool, typer.Option("--card", help="Print the embedded model's card.")] = False,
    as_json: Json = False,
) -> None:
    """Decode held-out problems of all seven families under every preset, and print who is right how often.

    Uncode's rate is chosen per family without labels, by the least mean predictive entropy on other problems.

    Examples:

      uncode mini --quick

      uncode mini --device cuda --out mini

      uncode mini --show mini/results.json

      uncode mini --card
    """
    if print_card:
        typer.echo(card(), nl=False)
        return
    results = Results.load(show) if show else _run(model, few, problems, batch, seed, device, dtype, out)
    if as_json:
        typer.echo(json.dumps(asdict(results), indent=1))
        return
    _print(results)


def _run(
    model: str,
    few: bool,
    problems: int | None,
    batch: int,
    seed: int,
    device: str | None,
    dtype: str | None,
    out: Path | None,
) -> Results:
    denoiser = load(model, device=device, dtype=dtype)
    table = getattr(denoiser, "frequency", None)
    require(
        table is not None, f"the mini-suite needs a model with a frequency table of its own, and '{model}' has none."
    )
    assert table is not None
    count = problems or (FEW if few else PROBLEMS)
    about = {
        "model": model,
        "device": denoiser.device.type,
        "dtype": str(denoiser.dtype).removeprefix("torch."),
        "problems": count,
        "seed": seed,
        "quick": few,
    }
    results = _begun(out, about)
    suite = Suite(denoiser, table, count, batch, seed, out)
    warnings.simplefilter("once", NoJail)
    began = time.monotonic()
    with _progress() as watch:
        if few:
            quick(suite, results, own_results().rates(), watch)
        else:
            full(suite, results, watch)
            results.biases = results.biases or measure(suite, watch)
    results.about["seconds"] = round(results.about.get("seconds", 0) + time.monotonic() - began, 1)
    if out is not None:
        results.save(out / "results.json")
    return results


def _begun(out: Path | None, about: dict[str, object]) -> Results:
    """Results to add to: those in the folder, if they are of the same run."""
    if out is None:
        return Results(about)
    out.mkdir(parents=True, exist_ok=True)
    if not (out / "results.json").is_file():
        return Results(about)
    found = Results.load(out / "results.json")
    other = [key for key, value in about.items() if found.about.get(key) != value]
    require(
        not other, f"'{out}' holds results of another run (other {' and other '.join(other)}): choose another --out."
    )
    return found


@contextmanager
def _progress() -> Iterator[Watch]:
    """What is being decoded, on standard error."""
    console = Console(stderr=True)
    if not console.is_terminal:
        began = time.monotonic()
        yield lambda family, name: console.print(
            f"{time.monotonic() - began:6.0f} s  {family}, {name}", highlight=False
        )
        return
    with console.status("") as status:
        yield lambda family, name: status.update(f"{family}, {name}")


def _print(results: Results) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDE
    about = results.about
    console.print(f"{about['model']}: {about['problems']} held-out problems a family, per cent right\n")
    _show(console, report.accuracy(results))
    if results.entropies:
        console.print("\nthe mean predictive entropy at each rate, on problems without labels\n")
        _show(console, report.rates(results))
    if results.biases:
        console.print("\nwhat confidence writes first (95 % intervals)\n")
        _show(console, report.biases(results))
        console.print("\nwhen confidence writes each tenth of the span, from 0 (first) to 1 (last)\n")
        _show(console, report.times(results))


def _show(console: Console, table: report.Table) -> None:
    shown = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for number, title in enumerate(table.titles):
        shown.add_column(title, justify="right" if number else "left", no_wrap=True)
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown)
