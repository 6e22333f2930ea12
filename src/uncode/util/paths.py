"""What is at a path, in the words of an error message."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..core.errors import require

_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFREG: "a file", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def kind_at(path: str | Path) -> str:
    """What is there: "a folder", "a file", "a device", ...; empty where nothing is, or nothing can be."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError, RuntimeError):  # nothing, too long a name, a NUL, a loop of links
        return ""
    return _KINDS.get(stat.S_IFMT(mode), "a device")


def no_file(path: str | Path, what: str = "file") -> str:
    """The sentence for a path where a file was expected and something else is; `what` is the kind of file."""
    kind = kind_at(path)
    wrong = f"'{path}' is {kind}: give" if kind else f"the file '{path}' does not exist: give the path of"
    return f"{wrong} a {what}."


def require_file(path: str | Path, what: str = "file") -> None:
    """Raise unless a regular file is there."""
    require(kind_at(path) == "a file", no_file(path, what))


def require_folder(path: str | Path) -> None:
    """Raise unless a folder is there."""
    kind = kind_at(path)
    require(kind != "", f"the folder '{path}' does not exist: create it first.")
    require(kind == "a folder", f"'{path}' is {kind}: give a folder.")


def check_folder_can_be_made(path: Path) -> None:
    """Raise if something that is no folder, or a folder that is read-only, is in the way of a folder."""
    found = next(one for one in (path, *path.parents) if kind_at(one))
    require(kind_at(found) == "a folder", f"'{found}' is {kind_at(found)}: choose another folder than '{path}'.")
    require(os.access(found, os.W_OK), f"'{found}' is read-only: choose another folder than '{path}'.")


def make_folder(path: Path) -> None:
    """Make a folder and those above it; one sentence where something else is in the way."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        check_folder_can_be_made(path)
        raise
