"""Tokenizers of checkpoint folders, without remote code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...core.errors import UncodeError, require

FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt", "tokenizer.model", "spiece.model")


def tokenizer_of(folder: Path, general: bool = True) -> Any:
    """The tokenizer of a folder, or None where it has none.

    `general` asks transformers which class it is; models whose tokenizer class is remote code are read
    as what they really are, a byte-level BPE in `tokenizer.json` or in `vocab.json` and `merges.txt`.
    """
    if not any((folder / name).is_file() for name in FILES):
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
