"""What a model's folder holds, by the names that transformers gives its files. No torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...core.errors import UncodeError, require

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
PICKLED_INDEX, PICKLED = "pytorch_model.bin.index.json", "pytorch_model.bin"


def read_json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UncodeError(f"'{file}' cannot be read as JSON ({error}): download it again.") from error
    require(isinstance(found, dict), f"'{file}' should hold one JSON object.")
    return dict(found)


def has_pickle(folder: Path) -> bool:
    """Whether a folder has pickled weights by the names that transformers gave them."""
    return any((folder / name).is_file() for name in (PICKLED, PICKLED_INDEX))


def is_whole(folder: Path) -> bool:
    """Whether a folder has weights, and all the shards that its index names."""
    if not (folder / INDEX).is_file():
        return (folder / SINGLE).is_file()
    try:
        shards = set(read_json(folder / INDEX)["weight_map"].values())
        return len(shards) > 0 and all((folder / shard).is_file() for shard in shards)
    except (UncodeError, KeyError, AttributeError, TypeError):  # no index at all
        return False
