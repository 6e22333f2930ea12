"""Writes the page of `--view`, and says where it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from ...core.support.reprs import counted
from ...view.page import Trajectory, write_page


def write_view(path: Path, trajectories: Sequence[Trajectory], title: str) -> None:
    """Write the page. Where it is goes to standard error: standard output is for answers."""
    write_page(path, trajectories, title)
    typer.echo(f"{path}: {counted(len(trajectories), 'trace')}, to be replayed in a browser.", err=True)
