"""Tokenizers, without remote code: of a checkpoint's folder, or alone by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import UncodeError, require
from ...models import folder_of
from ...models.names import looks_like_id
from .hub import TOKENIZER_FILES, HubModel

INSTEAD = "give a model's folder or hub id, a tokenizer.json, or tiny"


def tokenizer_of(folder: Path, general: bool = True) -> Any:
    """The tokenizer of a folder, or None where it has none.

    `general` asks transformers which class it is; models whose tokenizer class is remote code are read
    as what they really are, a byte-level BPE in `tokenizer.json` or in `vocab.json` and `merges.txt`.
    """
    if not any((folder / name).is_file() for name in TOKENIZER_FILES):
        return None
    from transformers import AutoTokenizer, PreTrainedTokenizerFast, Qwen2Tokenizer

    whole, parts = (folder / "tokenizer.json").is_file(), ("vocab.json", "merges.txt")
    require(
        general or whole or all((folder / part).is_file() for part in parts),
        f"the tokenizer in '{folder}' is not complete: it has neither tokenizer.json nor {' and '.join(parts)}.",
    )
    plain = PreTrainedTokenizerFast if whole else Qwen2Tokenizer
    kind: Any = AutoTokenizer if general else plain
    try:
        return kind.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)  # None would ask
    except Exception as error:  # transformers raises many kinds
        reason = str(error).strip().splitlines()
        raise UncodeError(f"the tokenizer in '{folder}' cannot be read: {reason[0] if reason else error!r}.") from error


def check_vocab(tokenizer: Any, vocab_size: int, where: object) -> None:
    """Raise if the tokenizer knows ids that the model does not have."""
    largest = max(tokenizer.get_vocab().values(), default=0)
    require(
        largest < vocab_size,
        f"the tokenizer in '{where}' has ids up to {largest}, the model a vocabulary of {vocab_size}: "
        "they do not belong together.",
    )


def id_of(tokenizer: Any, token: str) -> int | None:
    """The id of a token, if the tokenizer has it."""
    found = tokenizer.get_vocab().get(token)
    return None if found is None else int(found)


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
        has_one = any((path / file).is_file() for file in TOKENIZER_FILES)
        require(has_one, f"there is no tokenizer in '{name}' ({', '.join(TOKENIZER_FILES)}): {INSTEAD}.")
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
    folder = HubModel(name, revision, token).tokenizer()
    return NamedTokenizer(_of_folder(folder), name, folder.name)


def _path(name: str) -> Path:
    try:
        return folder_of(name) or Path(name).expanduser()
    except RuntimeError:  # the home of a user who does not exist
        return Path(name)


def _of_folder(folder: Path) -> Any:
    from ..dialects.registry import is_dialect
    from .folder import read_json

    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    found = tokenizer_of(folder, general=not is_dialect(config))
    require(found is not None, f"there is no tokenizer in '{folder}': {INSTEAD}.")
    return found


def _of_file(file: Path) -> Any:
    from transformers import PreTrainedTokenizerFast

    kind: Any = PreTrainedTokenizerFast
    try:
        return kind(tokenizer_file=str(file))
    except Exception as error:  # the tokenizers library raises plain Exception
        raise UncodeError(f"'{file}' is no tokenizer.json: {str(error).splitlines()[0]}.") from error
