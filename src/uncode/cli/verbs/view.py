"""`uncode view`: traces as a page for the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...core.errors import require
from ..loading import loading
from ..options import Force
from ..outputs import check_output, same_file

if TYPE_CHECKING:
    from ...viewer.page import Trajectory

SUMMARY = "Replay traces in the browser, step by step."
MAX_ROWS = 2000
"""Rows on a page without --row."""
Option = typer.Option
Traces = Annotated[
    list[Path], typer.Argument(metavar="TRACES...", help="Trace files, folders of them, or run folders with traces.")
]
Out = Annotated[Path, Option(metavar="FILE", help="The file for the page (HTML).")]
Title = Annotated[str | None, Option(metavar="NAME", help="The heading of the page.  [default: the prompt's]")]
Rows = Annotated[
    list[int] | None, Option("--row", min=0, metavar="N", help="Only row N, counted from 0; may be repeated.")
]


def command(
    traces: Traces,
    out: Out = Path("view.html"),
    title: Title = None,
    rows: Rows = None,
    force: Force = False,
) -> None:
    """Write a page that replays traces: which token was committed when, how sure the model was, what it beat.

    Traces of one prompt stand side by side and run in step. Many prompts are a list with a search. The page is one
    file. It loads nothing from the network.

    Examples:

      uncode tasks mini_story --example 3 | uncode decode - --trace story.jsonl
      uncode view story.jsonl --out story.html
      uncode view confidence.jsonl uncode.jsonl --title "Two orders" --out orders.html
      uncode view answers.jsonl --row 3 --row 7
      uncode view runs/mini --out mini.html
    """
    check_output(out, "--out", "page", force)
    overwritten = next((path for path in traces if same_file(path, out)), None)
    require(overwritten is None, f"--out would replace the trace '{overwritten}': choose another file.")
    with loading():
        from ...viewer.page import write_page
        from ..answering.view_rows import read_trajectories
    found, left_out = read_trajectories(traces, rows, MAX_ROWS)
    write_page(out, found, title or _title(found))
    typer.echo(f"{out}: {len(found)} trace{'s' * (len(found) != 1)}, to be replayed in a browser.")
    if left_out:
        typer.echo(f"{left_out} more rows are not on the page: choose rows with --row N.", err=True)


def _title(trajectories: list[Trajectory]) -> str:
    samplers = list(dict.fromkeys(one.title for one in trajectories))
    prompts = len({one.row["prompt_text"] for one in trajectories})
    if prompts > 1:
        return f"{prompts} prompts"
    return " and ".join(samplers) if len(samplers) < 3 else f"One prompt, {len(samplers)} samplers"
