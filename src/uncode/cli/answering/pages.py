"""Pages that replay traces: those of a decode, or the rows of trace files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from ...analysis.read_traces import read_fields, trace_lines
from ...core.errors import require
from ...core.support.reprs import counted
from ...view.page import Trajectory, Verdict, write_page
from ...view.row_summary import TraceLine

MAX_ROWS = 2000
"""Rows on a page, unless they are chosen."""


def write_view(path: Path, trajectories: Sequence[Trajectory], title: str) -> None:
    """Write the page of `--view`. Where it is goes to standard error: standard output is for answers."""
    write_page(path, trajectories, title)
    typer.echo(f"{path}: {counted(len(trajectories), 'trace')}, to be replayed in a browser.", err=True)


def read_trajectories(
    paths: Sequence[Path], chosen: Sequence[int] | None, max_rows: int
) -> tuple[list[Trajectory], int]:
    """The rows in the order of the files, and how many rows were left out.

    `chosen` are numbers of rows, counted from 0 over all files. Without them the first `max_rows` are read.
    """
    wanted = None if chosen is None else set(chosen)
    found, count = list[tuple[TraceLine, Path]](), 0
    for count, (number, file, row) in enumerate(trace_lines(paths), 1):
        if (len(found) < max_rows) if wanted is None else (count - 1 in wanted):
            _check(row, number, file)
            found.append((row, file))
    missing = sorted(wanted - set(range(count))) if wanted else []
    require(not missing, f"there is no row {missing[0] if missing else ''}: the traces have rows 0 to {count - 1}.")
    left_out = count - len(found) if wanted is None else 0
    return _named(found), left_out


def _check(row: Any, number: int, file: Path) -> None:
    read_fields(row, None, number, str(file))
    with_texts = row.get("generated_texts") is not None and row.get("prompt_text") is not None
    require(with_texts, f"line {number} of '{file}' has no texts: write the trace with its tokenizer.")


def _named(rows: list[tuple[TraceLine, Path]]) -> list[Trajectory]:
    """The rows with titles: the sampler's label or name, with the file or the row's number where names are equal."""
    names = [_sampler(row) for row, _ in rows]
    if _repeats(rows, names) and len({file for _, file in rows}) > 1:
        names = [f"{name}, {file.stem}" for name, (_, file) in zip(names, rows, strict=True)]
    if _repeats(rows, names):
        names = [f"{name}, row {number}" for number, name in enumerate(names)]
    return [
        Trajectory(name, row, _verdict(row), problem=_problem(row)) for name, (row, _) in zip(names, rows, strict=True)
    ]


def _repeats(rows: list[tuple[TraceLine, Path]], names: list[str]) -> bool:
    """Whether two rows of one prompt have the same name."""
    seen = Counter((_problem(row), row["prompt_text"], name) for (row, _), name in zip(rows, names, strict=True))
    return max(seen.values(), default=0) > 1


def _sampler(row: TraceLine) -> str:
    notes = (row.get("label"), row.get("title"))
    return next((name for name in notes if isinstance(name, str) and name), str(row["sampler"]["name"]))


def _problem(row: TraceLine) -> str:
    """The task and the id of the problem, where an evaluation noted them. Some ids begin with the task."""
    task, number = (str(row[name]) if isinstance(row.get(name), str | int) else "" for name in ("task", "id"))
    return number if number.startswith(task) else f"{task} {number}".rstrip()


def _verdict(row: TraceLine) -> Verdict | None:
    return None if row.get("correct") is None else Verdict(bool(row["correct"]))
