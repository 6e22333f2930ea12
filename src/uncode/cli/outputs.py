"""Files that a verb is asked to write: whether it can, and whether it may. PromptLine before any work is done."""

from __future__ import annotations

from pathlib import Path

from ..core.errors import require
from ..core.support.file_kinds import Kind, check_replaces
from ..core.support.write import check_writable, is_stream


def check_output(path: Path, option: str, kind: Kind, force: bool) -> None:
    """Raise if the file cannot be written, or holds something else and `force` is not given."""
    check_writable(path, option)
    check_replaces(path, kind, force, how="--force")


def check_resumable(path: Path, option: str) -> None:
    """Raise if work cannot be kept there as it is done, and taken up again."""
    check_writable(path, option)
    require(not is_stream(path), f"'{path}' is not a regular file: {option} keeps the work, so that it can be resumed.")


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, through links too."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False
