"""Files that a verb is asked to write: whether it can, and whether it may. Asked before any work is done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from ..core.errors import require
from ..core.write import check_writable, is_stream

Kind = Literal["trace", "page", "frequency table"]
_PART = 1 << 16


def check_output(path: Path, option: str, kind: Kind, force: bool) -> None:
    """Raise if the file cannot be written, or holds something else and `force` is not given."""
    check_writable(path, option)
    if force or is_stream(path) or not path.is_file() or path.stat().st_size == 0:
        return
    with open(path, "rb") as file:
        begin = file.read(_PART)
    same = {"trace": _is_trace, "page": _is_page, "frequency table": _is_table}[kind](begin)
    require(same, f"'{path}' exists and is not a {kind}: choose another name, or replace it with --force.")


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


def _is_trace(begin: bytes) -> bool:
    """A line of a trace begins with its schema."""
    return begin.startswith(b'{"schema":')


def _is_page(begin: bytes) -> bool:
    return b'<meta name="generator" content="uncode">' in begin


def _is_table(begin: bytes) -> bool:
    """A safetensors file: the length of its header in eight bytes, then the header as JSON."""
    length = int.from_bytes(begin[:8], "little")
    try:
        header: Any = json.loads(begin[8 : 8 + length])
    except ValueError:
        return False
    return isinstance(header, dict) and "counts" in header
