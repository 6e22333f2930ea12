"""The kinds of file that uncode writes, known by their first bytes: no file of another kind is replaced.

:func:`save_text` and :func:`load_text` are what `save` and `load` of traces and samplers do.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from ..core.errors import UncodeError, require
from .paths import kind_at, no_file
from .write import is_stream, write_whole

Kind = Literal["trace", "page", "frequency table", "sampler file", "report", "figure", "CSV of an analysis"]
_PART = 1 << 16
_REPORTS = (
    b"<!-- uncode report -->",
    b"% uncode report",
    b"model,sampler,task,metric,",
    b'<meta name="generator" content="uncode report">',
)
"""How a report begins: in Markdown, LaTeX, CSV and HTML."""
_ARRAYS = b"model,task,sampler,"
"""How the arrays of `uncode analyze` begin."""
_SAMPLER_KEYS = {"name", "policy", "propose", "cache", "limit"}
_GZIP = b"\x1f\x8b"


def save_text(path: str | Path, text: str, kind: Kind, force: bool) -> None:
    """Write a file, whole or not at all. A file of another kind is replaced with `force` alone; links stay links."""
    check_replaces(path, kind, force)
    write_whole(path, text)


def load_text(path: str | Path, kind: Kind) -> str:
    """The text of a file, which should be of a kind."""
    try:
        content = Path(path).read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        raise UncodeError(no_file(path, kind)) from None
    except (OSError, ValueError) as error:
        raise UncodeError(f"the {kind} '{path}' cannot be read: {error}.") from None
    require(not content.startswith(_GZIP), f"the {kind} '{path}' is compressed: unpack it with gunzip first.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        why = f"it is not UTF-8 text ({error.reason})"
        raise UncodeError(f"line {line} of '{path}' cannot be read: {why}; restore the file.") from None


def check_replaces(path: str | Path, kind: Kind, force: bool, how: str = "force=True") -> None:
    """Raise if a file with other content is there, unless `force`: a file of the same kind, an empty one and a missing
    one may be written. Links are followed. Pipes and devices are written through, and lose nothing.

    `how` says how the caller is forced.
    """
    if force or is_stream(path) or kind_at(path) != "a file" or Path(path).stat().st_size == 0:
        return
    with open(path, "rb") as file:
        begin = file.read(_PART)
    require(
        _CHECKS[kind](begin), f"'{path}' exists and is not a {kind}: choose another name, or replace it with {how}."
    )


def _is_trace(begin: bytes) -> bool:
    """A line of a trace begins with its schema."""
    return begin.startswith(b'{"schema":')


def _is_page(begin: bytes) -> bool:
    return b'<meta name="generator" content="uncode">' in begin


def _is_report(begin: bytes) -> bool:
    *begins, generator = _REPORTS
    return begin.startswith(tuple(begins)) or (begin.startswith(b"<!DOCTYPE html>") and generator in begin)


def _is_figure(begin: bytes) -> bool:
    """A picture that names us as the program that made it."""
    return begin.startswith((b"\x89PNG", b"%PDF", b"<?xml", b"<svg")) and b"uncode" in begin


def _is_table(begin: bytes) -> bool:
    """A safetensors file: the length of its header in eight bytes, then the header as JSON."""
    length = int.from_bytes(begin[:8], "little")
    try:
        header: Any = json.loads(begin[8 : 8 + length])
    except ValueError:
        return False
    return isinstance(header, dict) and "counts" in header


def _is_sampler(begin: bytes) -> bool:
    """TOML with a policy, and no key that a sampler does not have."""
    try:
        data = tomllib.loads(begin.decode())
    except ValueError:
        return False
    return "policy" in data and set(data) <= _SAMPLER_KEYS


_CHECKS: dict[Kind, Callable[[bytes], bool]] = {
    "trace": _is_trace,
    "page": _is_page,
    "frequency table": _is_table,
    "sampler file": _is_sampler,
    "report": _is_report,
    "figure": _is_figure,
    "CSV of an analysis": lambda begin: begin.startswith(_ARRAYS),
}
