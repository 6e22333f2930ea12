"""The kinds of file that uncode writes, known by their first bytes: no file of another kind is replaced.

:func:`save_text` and :func:`load_text` are what `save` and `load` of traces and samplers do.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Literal

from ..core.errors import UncodeError, require
from .paths import kind_at, no_file
from .write import is_stream, write_whole

Kind = Literal["trace", "page", "frequency table", "sampler file", "report", "figure", "CSV of an analysis"]
_PART = 1 << 16
_BEGINS: dict[Kind, tuple[bytes, ...]] = {
    "trace": (b'{"schema":',),
    "report": (b"<!-- uncode report -->", b"% uncode report", b"model,sampler,task,metric,"),
    "CSV of an analysis": (b"model,task,sampler,",),
}
"""How files begin whose kind their first characters tell; a report may be HTML too."""
_SAMPLER_KEYS = {"name", "policy", "propose", "cache", "limit", "draft_steps"}
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
        _is_of_kind(begin, kind), f"'{path}' exists and is not a {kind}: choose another name, or replace it with {how}."
    )


def _is_of_kind(begin: bytes, kind: Kind) -> bool:
    """Whether a file that begins so is of a kind. Pages, and pictures, name us as the program that made them."""
    if begin.startswith(_BEGINS.get(kind, ())):
        return True
    if kind == "frequency table":
        return _is_table(begin)
    if kind == "sampler file":
        return _is_sampler(begin)
    if kind == "figure":
        return begin.startswith((b"\x89PNG", b"%PDF", b"<?xml", b"<svg")) and b"uncode" in begin
    generator = b"uncode report" if kind == "report" else b"uncode"
    is_html = kind in ("page", "report") and begin.startswith(b"<!DOCTYPE html>")
    return is_html and b'<meta name="generator" content="%s">' % generator in begin


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
