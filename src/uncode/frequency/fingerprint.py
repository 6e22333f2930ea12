"""Fingerprints, by which a table or a trace names its tokenizer."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend


class Tokenizer(Protocol):
    """What frequency tables need of a tokenizer, of whatever library. The fast ones also have a `backend_tokenizer`."""

    def get_vocab(self) -> dict[str, int]: ...
    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]: ...
    def decode(self, token_ids: list[int]) -> str: ...
    def convert_ids_to_tokens(self, ids: int) -> str | None: ...


def fingerprint(tokenizer: Tokenizer) -> str:
    """A hash of the vocabulary: of all tokens with their ids."""
    digest = hashlib.sha256()
    for token, number in sorted(tokenizer.get_vocab().items(), key=lambda pair: pair[1]):
        digest.update(f"{number}\t{token}\n".encode())
    return digest.hexdigest()[:16]


def backend_of(tokenizer: object) -> Backend | None:
    """The tokenizer of the `tokenizers` library: this one, or the one inside. None for a tokenizer without one."""
    from tokenizers import Tokenizer as Backend

    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    return backend if isinstance(backend, Backend) else None


def special_ids(tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids of the special tokens: EOS, mask, chat roles and others."""
    ids, backend = set(getattr(tokenizer, "all_special_ids", ())), backend_of(tokenizer)
    if backend is not None:
        ids |= {number for number, token in backend.get_added_tokens_decoder().items() if token.special}
    return tuple(sorted(ids))


def unknown_id(tokenizer: Tokenizer) -> int | None:
    """The id of the token that stands for text that no other token covers; None if the tokenizer has none."""
    backend = backend_of(tokenizer)
    if backend is None:
        return getattr(tokenizer, "unk_token_id", None)
    model = json.loads(backend.to_str())["model"]  # a tokenizer.json alone does not set `unk_token`
    token = model.get("unk_token")
    found: int | None = backend.token_to_id(token) if token else model.get("unk_id")
    return found
