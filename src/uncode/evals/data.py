"""The rows of a benchmark, from a file in a local folder, from the hub, or from the paper's repository."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import UncodeError, require
from ..core.support.json_lines import read_json_lines
from ..util.extras import needed
from ..util.fetch import RELEASE, cache_folder, fetch, unreachable_hub
from ..util.files import read_text
from ..util.paths import require_folder
from ..util.write import write_whole

Fields = Mapping[str, Any]
"""The fields of a row, by name."""
Row = tuple[str, Fields]
"""The position of a row, for errors ("line 2" of JSON lines, "row 2" of other files), and its fields."""


@dataclass(frozen=True)
class DataSource:
    """A benchmark's file in a data folder, and its download source."""

    file: str
    hub: str | None = None
    """A dataset id of the hub; None if the file is in the paper's repository."""
    config: str | None = None
    split: str = "test"
    sha256: str = ""
    """The checksum of the file in the paper's repository."""


def rows_of(source: DataSource, folder: Path | None) -> list[Row]:
    """The rows of a benchmark."""
    if folder is not None:
        require(folder.exists(), f"the data folder '{folder}' does not exist.")
        require_folder(folder)
        path = folder / source.file
        require(path.is_file(), f"the data folder '{folder}' has no {source.file}.")
        return parse(read_text(path), source.file)
    if source.hub is None:
        return parse(_released(source), source.file)
    datasets = needed("datasets", "eval", f"downloading '{source.hub}' from the hub (or `data=DIR`)")
    instead = f"give a folder with {source.file} as `data=`"
    if (hub := unreachable_hub(source.hub)) is not None:
        raise UncodeError(
            f"'{source.hub}' cannot be downloaded, because the hub ({hub}) cannot be reached: {instead}, or set "
            "HF_HUB_OFFLINE=1 to use the local cache."
        )
    try:
        return _numbered(datasets.load_dataset(source.hub, source.config, split=source.split))
    except Exception as error:  # the hub's errors have no common base class
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UncodeError(
            f"'{source.hub}' could not be downloaded from the hub ({reason.rstrip('.')}): {instead}."
        ) from error


def parse(text: str, name: str) -> list[Row]:
    """The rows in the text of a .csv file, of a .json file (one list), or of JSON lines."""
    text = text.removeprefix("\ufeff")
    if not name.endswith((".csv", ".json")):
        found = list[Row]()
        for number, value in read_json_lines(text, f"'{name}'"):
            is_object = isinstance(value, dict)
            require(is_object, f"line {number} of '{name}' is not a JSON object: write one object a line.")
            found.append((f"line {number}", value))
        return found
    try:
        rows: Any = list(csv.DictReader(io.StringIO(text))) if name.endswith(".csv") else json.loads(text)
    except (ValueError, csv.Error, RecursionError) as error:
        raise UncodeError(f"'{name}' cannot be read: {error}.") from error
    is_list = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    require(is_list, f"'{name}' is not a list of rows: write one JSON list of objects.")
    return _numbered(rows)


def _numbered(rows: Iterable[Fields]) -> list[Row]:
    return [(f"row {number}", row) for number, row in enumerate(rows, 1)]


def _released(source: DataSource) -> str:
    """The file of the paper's repository, from the user's cache or downloaded into it."""
    cached = cache_folder() / "data" / source.file
    if not cached.is_file() or hashlib.sha256(cached.read_bytes()).hexdigest() != source.sha256:
        instead = f"try again, or give a folder with {source.file} as `data=`."
        content = fetch(RELEASE + source.file, source.sha256, instead)
        cached.parent.mkdir(parents=True, exist_ok=True)
        write_whole(cached, content)
    return read_text(cached)
