"""Fingerprints, by which a table or a trace names its tokenizer."""

from __future__ import annotations

import hashlib
from typing import Any


def fingerprint(tokenizer: Any) -> str:
    """A hash of the vocabulary: of all tokens with their ids."""
    digest = hashlib.sha256()
    for token, number in sorted(tokenizer.get_vocab().items(), key=lambda pair: pair[1]):
        digest.update(f"{number}\t{token}\n".encode())
    return digest.hexdigest()[:16]


def special_ids(tokenizer: Any) -> tuple[int, ...]:
    """The ids of the special tokens: EOS, mask, chat roles and others."""
    ids = set(getattr(tokenizer, "all_special_ids", ()))
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(backend, "get_added_tokens_decoder"):
        ids |= {number for number, token in backend.get_added_tokens_decoder().items() if token.special}
    return tuple(sorted(ids))
