"""Compiled expressions: in memory, and on disk by expression and vocabulary."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import UncodeError
from ..util.fetch import cache_folder
from ..util.write import write_whole
from .byte_dfa import ByteDfa, determinize
from .expression import parse
from .json_schema import any_json, expression_of
from .token_dfa import TokenDfa, token_dfa
from .vocabulary import Vocabulary

MAX_KEPT = 64
"""Compiled expressions that a process keeps."""
MAX_FILES = 256
"""Files of compiled expressions; the oldest are removed."""
LARGE = 10_000
"""Smaller vocabularies compile faster than a file is read, so they have none."""
VERSION = 1
"""Of the files; raise it when the automaton of an expression changes."""


def expression_from(source: Mapping[str, Any]) -> str:
    """The regular expression of what a constraint is made of: {"regex": ...}, {"choices": [...]}, {"json_schema": ...},
    or {"json": depth}."""
    ((kind, value),) = source.items()
    if kind == "choices":
        return "|".join(f"(?:{re.escape(one)})" for one in value)
    if kind == "json_schema":
        return expression_of(value)
    return any_json(value) if kind == "json" else str(value)


@lru_cache(maxsize=MAX_KEPT)
def byte_dfa(expression: str) -> ByteDfa:
    """The byte automaton of an expression."""
    return determinize(*parse(expression))


@lru_cache(maxsize=MAX_KEPT)
def compiled(expression: str, vocabulary: Vocabulary) -> TokenDfa:
    """The token automaton of an expression."""
    name, found = cached(expression, vocabulary)
    if found is None:
        found = token_dfa(byte_dfa(expression), vocabulary)
        if name:
            keep(name, content_of(found))
    return found


def cached(expression: str, vocabulary: Vocabulary) -> tuple[str, TokenDfa | None]:
    """The name of an expression's file, and its automaton; no name for a small vocabulary, and None where there is no
    file, or a damaged one."""
    if vocabulary.size < LARGE:
        return "", None
    name = hashlib.sha256(f"{VERSION}\n{vocabulary.fingerprint}\n{expression}".encode()).hexdigest()[:32]
    try:
        return name, read(_file(name).read_bytes(), vocabulary.size)
    except (OSError, UncodeError):
        return name, None


def read(content: bytes, size: int) -> TokenDfa | None:
    """The automaton over `size` tokens with this content; None where it is damaged."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            found = TokenDfa(arrays["table"], arrays["class_of"], int(arrays["start"]), arrays["accepts"])
        return found if _is_whole(found, size) else None
    except (OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return None


def _file(name: str) -> Path:
    return cache_folder() / "constraints" / f"{name}.npz"


def _is_whole(found: TokenDfa, size: int) -> bool:
    """Whether every number of an automaton over `size` tokens is that of a state or a class that it has."""
    states, classes = found.table.shape
    inside = ((found.table, states), (found.class_of, classes), (np.array(found.start), states))
    return (
        (found.accepts.shape, found.class_of.shape) == ((states,), (size,))
        and found.table.dtype == found.class_of.dtype == np.int32
        and found.accepts.dtype == np.bool_
        and all(int(numbers.min()) >= 0 and int(numbers.max()) < most for numbers, most in inside)
    )


def content_of(found: TokenDfa) -> bytes:
    """An automaton as bytes."""
    content = io.BytesIO()
    arrays = {"table": found.table, "class_of": found.class_of, "accepts": found.accepts}
    np.savez_compressed(content, start=np.array(found.start), **arrays)  # type: ignore[arg-type]
    return content.getvalue()


def keep(name: str, content: bytes) -> None:
    """Keep an automaton for other processes. Where that cannot be, nothing is lost but time."""
    with suppress(OSError, UncodeError):
        file = _file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, content)
        files = sorted(file.parent.glob("*.npz"), key=lambda one: one.stat().st_mtime)
        for old in files[:-MAX_FILES]:
            old.unlink(missing_ok=True)
