"""The tables released with the paper: their addresses, their JSON format, and fetching them."""

from __future__ import annotations

import hashlib
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any

import torch

from ..core.errors import UncodeError, require, suggest
from ..version import __version__
from . import names
from .fingerprint import fingerprint, special_ids
from .provenance import Provenance
from .table import FrequencyTable

KEYS = ("p_baseline_dict", "token_frequency_dict")
"""Where the counts are: in the files that were released, and in those the released script writes."""
LARGEST = 1 << 28
_COMMIT = "f2e260237f1bbcf01a09fde0fd5b60fb3b79b494"
_ADDRESS = f"https://raw.githubusercontent.com/NEUIR/Uncode/{_COMMIT}/data/baseline/"


@dataclass(frozen=True)
class Released:
    """A file of the paper's repository (NEUIR/Uncode, MIT licence). Its ids are those of the model's vocabulary."""

    url: str
    sha256: str
    vocab_size: int
    corpus: str


RELEASED = {
    "llada": Released(
        f"{_ADDRESS}reference_corpus_llada.json",
        "d3added6fe3b1e470a5558d612cc1f52b521415260b76a582b4a367241984749",
        126464,
        "general text (as released; the paper says 16 GB of C4)",
    ),
    "dream": Released(
        f"{_ADDRESS}reference_corpus_dream.json",
        "910863033246e63dff61a6969909e65dbee877de195e45115494847522e13201",
        152064,
        "mathematics in LaTeX, by its most frequent tokens (as released; the paper says 16 GB of C4)",
    ),
}
"""By the name `uncode table get` takes. What the files really hold: docs/frequency.md."""


def import_released(
    content: bytes, name: str, *, vocab_size: int | None = None, tokenizer: Any = None
) -> FrequencyTable:
    """The table in a JSON file of the release's format: {"num_token": total, "p_baseline_dict": {id: count}}.

    Its vocabulary is the tokenizer's if there is one, else `vocab_size`; the files that were released are known
    by their checksum. Without any of these it reaches to the largest id in the file.
    """
    known = next((r for r in RELEASED.values() if r.sha256 == hashlib.sha256(content).hexdigest()), None)
    counted = _read(content, name)
    largest = max(counted, default=0)
    size = vocab_size or (known.vocab_size if known else largest + 1)
    if tokenizer is not None:
        size = max(size, 1 + max(tokenizer.get_vocab().values(), default=0))
    require(largest < size, f"'{name}' counts the id {largest}, outside a vocabulary of {size}: give a larger one.")
    counts = torch.zeros(size, dtype=torch.int64)
    counts[list(counted)] = torch.tensor(list(counted.values()))
    made = Provenance(
        corpus=known.corpus if known else name,
        files=(known.url,) if known else (),
        tokens=int(counts.sum()),
        date=datetime.now(UTC).date().isoformat(),
        version=__version__,
    )
    if tokenizer is not None:
        made = replace(made, fingerprint=fingerprint(tokenizer))
    special = () if tokenizer is None else special_ids(tokenizer)
    return FrequencyTable(counts, name, special, made)


def _read(content: bytes, name: str) -> dict[int, int]:
    try:
        data = json.loads(content)
    except ValueError as error:
        raise UncodeError(f"'{name}' is not JSON: {error}.") from None
    found = next((data[key] for key in KEYS if isinstance(data, dict) and isinstance(data.get(key), dict)), None)
    if found is None:
        raise UncodeError(f"'{name}' is not a table of the release: it has no {' or '.join(KEYS)}.")
    try:
        counted = {int(token): count for token, count in found.items()}
    except ValueError:
        raise UncodeError(f"'{name}' is not a table of the release: a token id is not a number.") from None
    whole = all(isinstance(count, int) and count >= 0 for count in counted.values()) and min(counted, default=0) >= 0
    require(whole, f"'{name}' is not a table of the release: ids and counts must be whole numbers from 0 on.")
    total, said = sum(counted.values()), data.get("num_token", data.get("num_tokens"))
    require(said in (None, total), f"'{name}' is damaged: it says {said} tokens, and its counts sum to {total}.")
    return counted


def get(name: str, url: str | None = None, watch: Callable[[int, int], None] | None = None) -> Path:
    """Fetch a released table into the user's cache, check it and convert it; the path of the table.

    `url` is another address of the same file; `watch(bytes so far, bytes in all)` is told how far it is.
    """
    require(name in RELEASED, f"no table '{name}' was released: {suggest(name, RELEASED)}")
    known, target = RELEASED[name], names.folder() / f"{name}.safetensors"
    content = _download(url or known.url, watch or (lambda *_: None))
    found = hashlib.sha256(content).hexdigest()
    require(
        found == known.sha256,
        f"'{url or known.url}' is not the file that was released: its sha256 is {found}, not {known.sha256}.",
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    import_released(content, name).save(target)
    return target


def _download(url: str, watch: Callable[[int, int], None]) -> bytes:
    parts, size = [], 0
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            whole = int(answer.headers.get("Content-Length") or 0)
            while part := answer.read(1 << 16):
                parts.append(part)
                size += len(part)
                require(size <= LARGEST, f"'{url}' sends more than {LARGEST >> 20} MB: that is not a released table.")
                watch(size, whole)
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", None) if type(error) is urllib.error.URLError else error
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise UncodeError(
            f"'{url}' could not be fetched ({reason}): try again, give another address with --url, or fetch the file "
            "by other means and run `uncode table import FILE`."
        ) from error
    return b"".join(parts)
