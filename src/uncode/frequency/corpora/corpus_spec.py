"""Corpus specs: a corpus as a TOML file, of the package or of the user."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from ...core.errors import UncodeError, nearest, require, suggest
from ...toml_file import read_toml
from .corpus import Corpus, Source, read_size
from .shards import FORMATS


def package_specs() -> dict[str, Path]:
    """Corpus specs of the package by name: the paper's corpora."""
    return {file.stem: file for file in sorted((Path(__file__).parent / "specs").glob("*.toml"))}


def find_spec(source: str) -> Path | None:
    """The corpus spec that a name or a path means: one of the package's (c4-16gb), or a TOML file."""
    if source.endswith(".toml"):
        return Path(source)
    own = package_specs()
    near = nearest(source, own)
    if source not in own and near is not None and "/" not in source and not os.path.lexists(source):
        raise UncodeError(f"there is no file, folder or corpus spec '{source}': did you mean '{near}'?")
    return own.get(source)


def read_spec(path: Path) -> Corpus:
    """A corpus from a TOML file: name, limits, and one [[source]] for each source."""
    data = read_toml(path, "corpus spec")
    sources = data.pop("source", None)
    listed = isinstance(sources, list) and all(isinstance(source, dict) for source in sources)
    require(listed, f"the corpus spec '{path}' needs a [[source]] for each of its sources.")
    if isinstance(data.get("max_bytes"), str):
        data["max_bytes"] = read_size(data["max_bytes"])
    made = tuple(Source(**_known(Source, source, path)) for source in sources)
    return Corpus(**({"name": path.stem} | _known(Corpus, data, path)), sources=made)


_TYPES: dict[str, Any] = {"fields": tuple, "sample": (int, float), "max_bytes": int, "max_documents": int, "seed": int}


def _known(kind: type, values: dict[str, Any], path: Path) -> dict[str, Any]:
    """What a corpus spec says of a corpus or a source, checked; a field by itself is a list of one."""
    names = {field.name for field in fields(kind)} - {"sources"}
    for key in values:
        require(key in names, f"the corpus spec '{path}' has an unknown key '{key}': {suggest(key, names)}")
    made = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    if isinstance(made.get("fields"), str):
        made["fields"] = (made["fields"],)
    for key, value in made.items():
        fits = isinstance(value, _TYPES.get(key, str)) and not isinstance(value, bool)
        fits = fits and (key != "fields" or (len(value) > 0 and all(isinstance(name, str) for name in value)))
        fits = fits and (key != "format" or value in FORMATS.values())
        require(fits, f"the corpus spec '{path}' has a wrong value for '{key}': {value!r}.")
    require(kind is not Source or "where" in made, f"a source of the corpus spec '{path}' does not say 'where' it is.")
    return made
