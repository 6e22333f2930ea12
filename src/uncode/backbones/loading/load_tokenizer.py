"""A tokenizer alone, by name: the built-in model's, a local folder, a tokenizer.json or a hub id."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import UncodeError, require
from ...models import folder_of
from ...models.names import looks_like_id
from . import hub
from .tokenizer import FILES, tokenizer_of

INSTEAD = "give a model's folder or hub id, a tokenizer.json, or tiny"


class NamedTokenizer(NamedTuple):
    """A tokenizer, what it is called and, from the hub, of which commit it is."""

    tokenizer: Any
    name: str
    revision: str


def check_name(name: str) -> None:
    """Raise if a name cannot be a tokenizer's, as far as that is seen without a network, torch or transformers."""
    path = _path(name)
    if path.is_file():
        try:
            json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            raise UncodeError(f"'{name}' is no tokenizer.json, for it is not JSON: {INSTEAD}.") from None
    elif path.is_dir():
        has_one = any((path / file).is_file() for file in FILES)
        require(has_one, f"there is no tokenizer in '{name}' ({', '.join(FILES)}): {INSTEAD}.")
    else:
        require(name != "toy", f"the model 'toy' has no tokenizer to count or show tokens with: {INSTEAD}.")
        require(looks_like_id(name), f"there is no tokenizer at '{name}', and it cannot be a hub id: {INSTEAD}.")


def load_tokenizer(name: str, revision: str | None = None, token: str | None = None) -> NamedTokenizer:
    """The tokenizer of a model, without the model; no code from a checkpoint is run."""
    check_name(name)
    path = _path(name)
    if path.exists():
        require(revision is None, f"'{name}' is local and has no revisions.")
        found = _of_file(path) if path.is_file() else _of_folder(path)
        return NamedTokenizer(found, path.resolve().parent.name if path.is_file() else path.resolve().name, "")
    folder = hub.HubModel(name, revision, token).tokenizer()
    return NamedTokenizer(_of_folder(folder), name, folder.name)


def _path(name: str) -> Path:
    try:
        return folder_of(name) or Path(name).expanduser()
    except RuntimeError:  # the home of a user who does not exist
        return Path(name)


def _of_folder(folder: Path) -> Any:
    from ..dialects.registry import DIALECTS
    from .checkpoint import read_json

    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    remote = any(str(config.get("model_type")).casefold() == dialect.model_type.casefold() for dialect in DIALECTS)
    found = tokenizer_of(folder, general=not remote)
    require(found is not None, f"there is no tokenizer in '{folder}': {INSTEAD}.")
    return found


def _of_file(file: Path) -> Any:
    from transformers import PreTrainedTokenizerFast

    kind: Any = PreTrainedTokenizerFast
    try:
        return kind(tokenizer_file=str(file))
    except Exception as error:  # the tokenizers library raises plain Exception
        raise UncodeError(f"'{file}' is no tokenizer.json: {str(error).splitlines()[0]}.") from error
