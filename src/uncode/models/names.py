"""Checks of model names without torch and without the hub, so that a wrong name is refused at once."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from ..core.errors import require
from ..util.paths import kind_at
from . import BUILT_IN, RELEASES, folder_of

INSTEAD = "give a local folder, or use the built-in model 'tiny'"
_MAX_ID_CHARACTERS, _MAX_SUGGESTIONS = 96, 3
_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)


def check_name(name: str) -> None:
    """Raise unless a name is a built-in model, a folder with a model, or possibly a hub id."""
    if name in BUILT_IN:
        return
    folder = folder_of(name)
    if folder is not None:
        check_folder(folder)
        return
    kind = kind_at(name) if name else ""
    require(not kind, f"'{name}' is {kind}: give its folder.")
    near = get_close_matches(name, BUILT_IN, n=1) or _published(name)
    require(not near, f"no model is named '{name}': did you mean {' or '.join(near)}?")
    require(looks_like_id(name), f"there is no folder '{name}', and it cannot be a hub id: {INSTEAD}.")


def check_folder(folder: Path) -> None:
    """Raise unless a folder has a config.json. The error suggests folders below it that have one."""
    if not (folder / "config.json").is_file():
        below = sorted(str(file.parent) for file in folder.glob("*/config.json"))
        meant = f"; did you mean {' or '.join(map(repr, below[:3]))}?" if below else "."
        require(False, f"'{folder}' is no model: it has no config.json{meant}")


def looks_like_id(name: str) -> bool:
    """Whether a name can be a hub id: `name` or `owner/name`, in the characters that the hub allows."""
    return len(name) <= _MAX_ID_CHARACTERS and _ID.fullmatch(name) is not None


def _published(name: str) -> list[str]:
    """The first published checkpoints that match a name without an owner."""
    found = [i for i in RELEASES if name.casefold() in i.casefold()] if len(name) > 2 and "/" not in name else []
    return found[:_MAX_SUGGESTIONS]
