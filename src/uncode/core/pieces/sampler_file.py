"""Sampler files: a sampler as TOML, complete, and back; an error names the line."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from typing import Any

from ..errors import SettingError, UncodeError

_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?")
_KEY = re.compile(r"""\s*["']?([\w.-]+)["']?\s*=""")
_AT_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def read_toml(text: str, read: Callable[[dict[str, Any]], Any], name: str) -> Any:
    """What `read` makes of the TOML in `text`; errors name the file and the line."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _AT_LINE.search(str(error))
        line = found[1] if found and found[1] else len(text.splitlines())
        why = _AT_LINE.sub("", str(error))
        raise UncodeError(f"{name}, line {line}, is not TOML: {why[:1].lower()}{why[1:]}.") from None
    try:
        return read(data)
    except SettingError as error:
        raise UncodeError(f"{name}, line {line_of(text, error.path)}: {error}") from None
    except UncodeError as error:
        raise UncodeError(f"{name}: {error}") from None


def line_of(text: str, path: tuple[str, ...]) -> int:
    """The line of a TOML text, counted from 1, that holds the setting at `path`, or the nearest one above it."""
    section: tuple[str, ...] = ()
    best, length = 1, 0
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            section = tuple(header[1].split("."))
            line_path = section
        elif key := _KEY.match(line):
            line_path = (*section, *key[1].split("."))
        else:
            line_path = (*section, *path[-1:]) if path and re.search(rf"\b{re.escape(path[-1])}\s*=", line) else ()
        shared = _common(line_path, path)
        if shared > length:
            best, length = number, shared
    return best


def _common(line_path: tuple[str, ...], path: tuple[str, ...]) -> int:
    """How many leading names two paths share, if the one is no sibling of the other."""
    count = 0
    for mine, theirs in zip(line_path, path, strict=False):
        if mine != theirs:
            return 0
        count += 1
    return count


def to_toml(data: dict[str, Any]) -> str:
    """A sampler's data as TOML: plain values first, then a section for each piece that holds others."""
    ordered = {"name": data["name"], "policy": data["policy"], **data}
    return "\n".join(_lines(ordered, ())) + "\n"


def _lines(data: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    plain = {key: value for key, value in data.items() if not _is_section(value)}
    lines = [f"{key} = {_value(value)}" for key, value in plain.items()]
    for key, value in data.items():
        if key not in plain:
            bare = all(_is_section(item) for item in value.values())
            lines += [] if bare else ["", f"[{'.'.join((*path, key))}]"]
            lines += _lines(value, (*path, key))
    return lines


def _is_section(value: Any) -> bool:
    return isinstance(value, dict) and set(value) != {"table", "sha256"}


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
