"""`uncode cases`: problems that one sampler solves and another does not, with the paper's three kinds of failure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from ...core.errors import require
from ..options import Force, Json, Traces
from ..outputs import check_output
from ..printing import loading, printing

if TYPE_CHECKING:
    from rich.console import Console

    from ...analysis.cases import Case

SUMMARY = "Show where one sampler fails and another is right, and why."
DIVERGENCE_SIGN = "»"
IN_WORDS = {
    "early_answer": "the answer is committed before the reasoning",
    "cut_short": "an early EOS cuts the text short",
    "trivial_lock": "a trivial token locks the reasoning",
}
"""What goes wrong, for each kind of case."""


def complete_case(incomplete: str) -> list[tuple[str, str]]:
    return [(name, meaning) for name, meaning in IN_WORDS.items() if name.startswith(incomplete)]


def command(
    traces: Traces,
    samplers: Annotated[
        str, Option(metavar="FAILING,RIGHT", help="The sampler that fails, and the one that is right, by their labels.")
    ] = "confidence,uncode",
    kinds: Annotated[
        list[str] | None,
        Option(
            "--kind",
            metavar="KIND",
            help="early_answer, cut_short or trivial_lock; may be repeated.  [default: all]",
            autocompletion=complete_case,
        ),
    ] = None,
    limit: Annotated[int, Option(min=1, metavar="N", help="Cases of each kind that are shown.")] = 1,
    view: Annotated[Path | None, Option(metavar="FILE", help="Write a page (HTML) that replays the cases.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show problems on which one sampler fails and another is right, with the paper's three kinds of failure.

    early_answer: the answer is committed before half of the reasoning, or without any. cut_short: an EOS token is
    committed before half of the text, and the text ends there. trivial_lock: the first token that differs is trivial,
    or the token after it is trivial and was there first. A sign stands before the first token that differs.

    Examples:

      uncode eval mini --tasks mini_story --samplers confidence,semi_ar --limit 40 --traces --out run
      uncode cases run --samplers confidence,semi_ar
      uncode cases run --samplers confidence,semi_ar --kind early_answer --limit 5 --view cases.html
      uncode cases run --samplers "confidence,uncode 0.1" --json
    """
    failing, _, right = samplers.partition(",")
    is_pair = bool(failing and right) and "," not in right
    require(is_pair, f"--samplers takes two labels with a comma, not '{samplers}'.")
    if view is not None:
        check_output(view, "--view", "page", force)
    with loading():
        from ...analysis.cases import RULES, find_cases
        from ...util.progress import reading_bar
    with reading_bar("reading traces") as on_bytes:
        found = find_cases(traces, failing, right, kinds=tuple(kinds or RULES), on_bytes=on_bytes)
    groups = {kind: [case for case in found if case.kind == kind] for kind in kinds or RULES}
    shown = [case for group in groups.values() for case in group[:limit]]
    if view is not None:
        _write_view(view, shown)
    if as_json:
        typer.echo(json.dumps([case.data() for case in found]))
        return
    with printing() as console:
        for kind, group in groups.items():
            _print(console, kind, group, limit)


def _print(console: Console, kind: str, group: list[Case], limit: int) -> None:
    from rich.text import Text

    console.print(Text(f"{kind}: {IN_WORDS[kind]} ({len(group)} found)", style="bold"))
    for case in group[:limit]:
        rows = case.rows()
        console.print(Text(f"\n{case.task} {case.id}".rstrip(), style="dim"))
        console.print(Text(rows[0].get("prompt_text", "").strip()))
        for row, trace, verdict in zip(rows, (case.failing, case.right), ("wrong", "right"), strict=True):
            console.print(Text(f"\n{trace.group.sampler}, {verdict}", style="bold"))
            console.print(_drawn(row, case.divergence, console.is_terminal))
    console.print()


def _drawn(row: dict[str, object], divergence: int, coloured: bool) -> object:
    """The tokens, coloured by commit time, with a sign before the first one that differs."""
    from ..answering.drawing import DrawnToken, cells_of, draw, merge_eos

    cells = cells_of(row)
    cells.insert(divergence, DrawnToken(DIVERGENCE_SIGN, "given"))
    return draw(cells if coloured else merge_eos(cells))


def _write_view(path: Path, cases: list[Case]) -> None:
    from ...view.page import Trajectory, Verdict
    from ..answering.pages import write_view

    require(len(cases) > 0, "no case was found, so there is no page to write: try other samplers or more traces.")
    trajectories = []
    for case in cases:
        verdicts = Verdict(False, IN_WORDS[case.kind]), Verdict(True)
        for trace, row, verdict in zip((case.failing, case.right), case.rows(), verdicts, strict=True):
            trajectories.append(Trajectory(trace.group.sampler, row, verdict, problem=f"{case.kind}, {case.id}"))
    write_view(path, trajectories, "Where the order decides")
