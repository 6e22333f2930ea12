"""Which tokenizer a table or a trace belongs to."""

from __future__ import annotations

import hashlib
from typing import Any


def fingerprint(tokenizer: Any) -> str:
    """A hash of the vocabulary: which token has which id."""
    digest = hashlib.sha256()
    for token, number in sorted(tokenizer.get_vocab().items(), key=lambda pair: pair[1]):
        digest.update(f"{number}\t{token}\n".encode())
    return digest.hexdigest()[:16]
