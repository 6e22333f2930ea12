"""Corpus specs: corpora as TOML files, shipped with the package or written by the user."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from ...core.errors import UncodeError, nearest, require, suggest
from ...util.toml_file import read_toml
from .corpus import Corpus, Source, read_size
from .shards import FORMATS


def package_specs() -> dict[str, Path]:
    """The paths of the package's corpus specs (the paper's corpora), by name."""
    return {file.stem: file for file in sorted((Path(__file__).parent / "specs").glob("*.toml"))}


def find_spec(source: str) -> Path | None:
    """The path of a corpus spec, given the name of one of the package's (c4-16gb) or a TOML file; else None."""
    if source.endswith(".toml"):
        return Path(source)
    own = package_specs()
    near = nearest(source, own)
    if source not in own and near is not None and "/" not in source and not os.path.lexists(source):
        raise UncodeError(f"there is no file, folder or corpus spec '{source}': did you mean '{near}'?")
    return own.get(source)


def read_spec(path: Path) -> Corpus:
    """Read a corpus from a TOML file: a name, limits, and a [[source]] table for each source."""
    data = read_toml(path, "corpus spec")
    sources = data.pop("source", None)
    listed = isinstance(sources, list) and all(isinstance(source, dict) for source in sources)
    require(listed, f"the corpus spec '{path}' needs a [[source]] for each of its sources.")
    if isinstance(data.get("max_bytes"), str):
        data["max_bytes"] = read_size(data["max_bytes"])
    made = tuple(Source(**_checked(Source, source, path)) for source in sources)
    return Corpus(**({"name": path.stem} | _checked(Corpus, data, path)), sources=made)


_TYPES: dict[str, Any] = {"fields": tuple, "sample": (int, float), "max_bytes": int, "max_documents": int, "seed": int}


def _checked(kind: type, values: dict[str, Any], path: Path) -> dict[str, Any]:
    """The checked settings of a corpus or a source. A single field becomes a tuple of one."""
    names = {field.name for field in fields(kind)} - {"sources"}
    for key in values:
        require(key in names, f"the corpus spec '{path}' has an unknown key '{key}': {suggest(key, names)}")
    made = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    if isinstance(made.get("fields"), str):
        made["fields"] = (made["fields"],)
    for key, value in made.items():
        is_valid = isinstance(value, _TYPES.get(key, str)) and not isinstance(value, bool)
        is_valid = is_valid and (key != "fields" or (len(value) > 0 and all(isinstance(name, str) for name in value)))
        is_valid = is_valid and (key != "format" or value in FORMATS.values())
        require(is_valid, f"the corpus spec '{path}' has a wrong value for '{key}': {value!r}.")
    require(kind is not Source or "where" in made, f"a source of the corpus spec '{path}' has no 'where': add one.")
    return made
