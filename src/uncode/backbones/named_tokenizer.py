"""A tokenizer alone, by name: the built-in model's, a local folder, a tokenizer.json or a hub id."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ..core.errors import UncodeError, require
from ..models import folder_of
from . import hub
from .checkpoint import read_json
from .families import DIALECTS
from .tokenizer import tokenizer_of


class Named(NamedTuple):
    """A tokenizer, what it is called and, from the hub, of which commit it is."""

    tokenizer: Any
    name: str
    revision: str


def load_tokenizer(name: str, revision: str | None = None, token: str | None = None) -> Named:
    """The tokenizer of a model, without the model; no code from a checkpoint is run."""
    path = folder_of(name) or Path(name).expanduser()
    if path.exists():
        require(revision is None, f"'{name}' is local and has no revisions.")
        found = _of_file(path) if path.is_file() else _of_folder(path)
        return Named(found, path.resolve().parent.name if path.is_file() else path.resolve().name, "")
    require(
        hub.looks_like_id(name),
        f"there is no tokenizer at '{name}', and it cannot be a hub id: give a folder, a tokenizer.json or an id.",
    )
    folder = hub.HubModel(name, revision, token).tokenizer()
    return Named(_of_folder(folder), name, folder.name)


def _of_folder(folder: Path) -> Any:
    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    remote = any(str(config.get("model_type")).casefold() == dialect.family.casefold() for dialect in DIALECTS)
    found = tokenizer_of(folder, general=not remote)
    require(found is not None, f"there is no tokenizer in '{folder}'.")
    return found


def _of_file(file: Path) -> Any:
    from transformers import PreTrainedTokenizerFast

    kind: Any = PreTrainedTokenizerFast
    try:
        return kind(tokenizer_file=str(file))
    except Exception as error:  # the tokenizers library raises plain Exception
        raise UncodeError(f"'{file}' is no tokenizer.json: {str(error).splitlines()[0]}.") from error
