"""Samplers by name and from TOML files."""

from __future__ import annotations

import inspect
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

from ..core.errors import UncodeError, require, suggest
from ..core.piece import Table, read_value
from ..core.policy import Sampler
from ..frequency import as_table
from .legacy import QUIRKS
from .presets import PRESETS, Calibration, Frequency

NAMES = (*PRESETS, *QUIRKS)
"""Of all presets."""


def options_of(name: str) -> list[str]:
    """The options of a preset."""
    return list(inspect.signature(_find(name)).parameters)


def _find(name: str) -> Callable[..., Sampler]:
    known = PRESETS | QUIRKS
    if name not in known:
        raise UncodeError(f"no sampler is named '{name}': {suggest(name, known)}")
    return known[name]


def named(name: str, **options: Any) -> Sampler:
    """The preset of that name with these options; a wrong name or option is an error with the near one."""
    known = options_of(name)
    hints = get_type_hints(Calibration) | get_type_hints(_find(name))
    values = {}
    for key, value in options.items():
        if key not in known:
            raise UncodeError(f"the sampler '{name}' has no option '{key}': {suggest(key, known)}")
        values[key] = value if key == "frequency" else read_value(value, hints[key], f"{name}.{key}")
    return _find(name)(**values)


def load(source: str | Path, *, frequency: Frequency | None = None, **options: Any) -> Sampler:
    """A sampler from the path of a TOML file or the name of a preset. `frequency` is the table, where one is needed."""
    if not str(source).endswith(".toml"):
        return named(str(source), **options, **({} if frequency is None else {"frequency": frequency}))
    require(not options, f"'{source}' is complete: change a copy of the file instead of passing options.")
    path = Path(source)
    require(path.is_file(), f"there is no sampler file at '{path}'.")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UncodeError(f"the sampler file '{path}' cannot be read as text.") from None
    return from_toml(text, frequency=frequency)


def from_toml(text: str, *, frequency: Frequency | None = None) -> Sampler:
    """The sampler that :func:`to_toml` wrote."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UncodeError(f"this is not a TOML file: {error}.") from None

    def resolve(name: str, sha256: str) -> Table:
        if frequency is None:
            raise UncodeError(f"this sampler needs a frequency table ('{name}'): pass it beside the file.")
        table = as_table(frequency)
        if sha256 not in ("", table.sha256):
            raise UncodeError(
                f"the sampler names the table '{name}' ({sha256[:12]}), not '{table.name}' ({table.sha256[:12]}): give "
                "it that one, or take the preset itself, which takes any."
            )
        return table

    return Sampler.from_dict(data, tables=resolve)


def to_toml(sampler: Sampler) -> str:
    """The sampler as TOML, complete: reading it back gives an equal sampler."""
    data = sampler.to_dict()
    ordered = {"name": data.pop("name"), "policy": data.pop("policy"), **data}
    return "\n".join(_lines(ordered, ())) + "\n"


def _lines(data: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    """Plain values first, then the tables below; tables that hold only plain values go on one line."""
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
