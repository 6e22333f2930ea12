"""`uncode view`: traces as a page for the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from ...core.errors import require
from ...core.support.reprs import counted
from ..options import Force, Traces
from ..outputs import check_output, same_file
from ..printing import loading

if TYPE_CHECKING:
    from ...view.page import Trajectory

SUMMARY = "Replay traces in the browser, step by step."


def command(
    traces: Traces,
    out: Annotated[
        Path | None,
        Option(metavar="FILE", help="The file for the page (HTML).  [default: view.html; none with --animate]"),
    ] = None,
    animate: Annotated[
        Path | None,
        Option(metavar="FILE", help="An animated picture (.svg) of at most four traces of one prompt, for a README."),
    ] = None,
    title: Annotated[
        str | None, Option(metavar="NAME", help="The heading of the page.  [default: the prompt's]")
    ] = None,
    rows: Annotated[
        list[int] | None, Option("--row", min=0, metavar="N", help="Only row N, counted from 0; may be repeated.")
    ] = None,
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
      uncode view confidence.jsonl uncode.jsonl --animate orders.svg
      uncode view runs/mini --out mini.html
    """
    if out is None and animate is None:
        out = Path("view.html")
    _check_files(traces, out, animate, force)
    with loading():
        from ...view.page import write_page
        from ..answering.pages import MAX_ROWS, read_trajectories
    found, left_out = read_trajectories(traces, rows, MAX_ROWS)
    shown = counted(len(found), "trace")
    if animate is not None:
        from ...view.animation import write_animation

        write_animation(animate, found, title=title)
        typer.echo(f"{animate}: {shown}, animated.")
    if out is None:
        return
    write_page(out, found, title or _title(found))
    typer.echo(f"{out}: {shown}, to be replayed in a browser.")
    if left_out:
        typer.echo(f"{left_out} more rows are not on the page: choose rows with --row N.", err=True)


def _check_files(traces: list[Path], out: Path | None, animate: Path | None, force: bool) -> None:
    if animate is not None:
        require(animate.suffix.lower() == ".svg", f"--animate takes an .svg file, not '{animate}'.")
        check_output(animate, "--animate", "figure", force)
    if out is not None:
        check_output(out, "--out", "page", force)
    for option, file in (("--out", out), ("--animate", animate)):
        overwritten = next((path for path in traces if file is not None and same_file(path, file)), None)
        require(overwritten is None, f"{option} would replace the trace '{overwritten}': choose another file.")


def _title(trajectories: list[Trajectory]) -> str:
    samplers = list(dict.fromkeys(one.title for one in trajectories))
    prompts = len({one.row["prompt_text"] for one in trajectories})
    if prompts > 1:
        return f"{prompts} prompts"
    return " and ".join(samplers) if len(samplers) < 3 else f"One prompt, {len(samplers)} samplers"
