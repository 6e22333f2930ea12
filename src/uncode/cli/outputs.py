"""Checks of output files and folders, before any work is done: can it be written, and may it be replaced?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..core.errors import require
from ..util.extras import check_installed
from ..util.file_kinds import Kind, check_replaces
from ..util.write import check_writable, is_stream


def check_output(path: Path, option: str, kind: Kind, force: bool) -> None:
    """Raise if the file cannot be written, or if it is of another kind and `force` is not given."""
    check_writable(path, option)
    check_replaces(path, kind, force, how="--force")


def check_plot(path: Path, kinds: Sequence[str], force: bool) -> None:
    """Raise if the figure of --plot cannot be drawn, or not written there. `kinds` are the endings that it may have."""
    check_installed("matplotlib", "plots", "--plot")
    listed = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
    require(path.suffix.lower() in kinds, f"--plot takes a {listed} file, not '{path}'.")
    check_output(path, "--plot", "figure", force)


def check_resumable(path: Path, option: str) -> None:
    """Raise if work cannot be written there step by step and resumed later."""
    check_writable(path, option)
    require(
        not is_stream(path),
        f"'{path}' is not a regular file: give {option} a file, from which the work can be resumed.",
    )


def check_run_folder(path: Path) -> None:
    """Raise if the folder of a run cannot be made, or holds other files."""
    from ..evals.run.folder import RunFolder

    RunFolder(path).check()


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, also through links."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False
