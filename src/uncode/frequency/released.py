"""Reading and downloading frequency tables in the JSON format of the paper's release."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

import numpy as np

from ..core.errors import UncodeError, require, suggest
from ..util.fetch import OnProgress, fetch
from ..version import __version__
from . import names
from .fingerprint import Tokenizer, fingerprint, special_ids
from .names import RELEASED
from .plain_words import json_fault
from .provenance import Provenance
from .table import FrequencyTable

ANSWER_SECONDS = 2.0
"""How long a model's loading waits for the first bytes of its table."""
COUNT_KEYS = ("p_baseline_dict", "token_frequency_dict")
"""The key of the counts in the released files, and in the files that the released script writes."""


def import_released(
    content: bytes,
    name: str,
    *,
    vocab_size: int | None = None,
    tokenizer: Tokenizer | None = None,
    file: str | Path | None = None,
) -> FrequencyTable:
    """Import a table in the release's JSON format: {"num_token": total, "p_baseline_dict": {id: count}}.

    The vocabulary size is the tokenizer's if one is given, else `vocab_size`. The sizes of the released files are known
    by their checksums. Otherwise the vocabulary ends with the largest id in the file. Errors name the `file`.
    """
    known = next((r for r in RELEASED.values() if r.sha256 == hashlib.sha256(content).hexdigest()), None)
    where = str(file or name)
    counts_by_id = _read(content, where)
    largest = max(counts_by_id, default=0)
    size = vocab_size or (known.vocab_size if known else largest + 1)
    if tokenizer is not None:
        size = max(size, 1 + max(tokenizer.get_vocab().values(), default=0))
    require(
        largest < size,
        f"'{where}' counts the id {largest}, outside a vocabulary of {size}: give a larger `vocab_size=`.",
    )
    counts = np.zeros(size, dtype=np.int64)
    counts[list(counts_by_id)] = list(counts_by_id.values())
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


def _read(content: bytes, where: str) -> dict[int, int]:
    try:
        data = json.loads(content)
    except UnicodeDecodeError:
        raise UncodeError(f"'{where}' is not UTF-8 text: a table of the release is a JSON file.") from None
    except (ValueError, RecursionError) as error:
        raise UncodeError(f"'{where}' is not valid JSON ({json_fault(error)}): repair the file.") from None
    found = next((data[key] for key in COUNT_KEYS if isinstance(data, dict) and isinstance(data.get(key), dict)), None)
    if found is None:
        raise UncodeError(f"'{where}' is not a table of the release: it has no {' or '.join(COUNT_KEYS)}.")
    try:
        counts_by_id = {int(token): count for token, count in found.items()}
    except ValueError:
        raise UncodeError(f"'{where}' is not a table of the release: a token id is not a number.") from None
    is_valid = all(isinstance(n, int) and n >= 0 for n in counts_by_id.values()) and min(counts_by_id, default=0) >= 0
    require(is_valid, f"'{where}' is not a table of the release: ids and counts must be whole numbers from 0 on.")
    total, stated = sum(counts_by_id.values()), data.get("num_token", data.get("num_tokens"))
    require(
        stated in (None, total), f"'{where}' is damaged: its total is {stated} tokens, but its counts sum to {total}."
    )
    return counts_by_id


def get(name: str, url: str | None = None, on_progress: OnProgress | None = None) -> Path:
    """Download a released table into the user's cache, check it and convert it. Returns the path of the table.

    `url` is another URL of the same file. `on_progress(bytes so far, total bytes)` is called during the download.
    """
    require(name in RELEASED, f"no table '{name}' was released: {suggest(name, RELEASED)}")
    known, target = RELEASED[name], names.folder() / f"{name}.safetensors"
    instead = "try again, give another URL as `url=`, or download the file by other means and run "
    content = fetch(url or known.url, known.sha256, f"{instead}`uncode table import FILE`.", on_progress)
    target.parent.mkdir(parents=True, exist_ok=True)
    import_released(content, name).save(target, force=True)
    return target


def find_released(name: str, fetches: bool) -> FrequencyTable | None:
    """A released table from the user's cache, fetched first if need be; None if that fails or nothing is sent soon."""
    target = names.folder() / f"{name}.safetensors"
    if fetches and not target.is_file():
        _fetch_once(name, RELEASED[name].url, target)
    return FrequencyTable.load(target) if target.is_file() else None


@functools.cache
def _fetch_once(name: str, url: str, target: Path) -> None:
    """Fetch a released table, if its server answers soon. A process waits once for a server that does not."""
    begun = Event()

    def fetch_quietly() -> None:
        with contextlib.suppress(UncodeError, OSError):
            get(name, url, on_progress=lambda *_: begun.set())
        begun.set()

    thread = Thread(target=fetch_quietly, daemon=True)  # a socket's own timeout counts for each of its addresses
    thread.start()
    if begun.wait(ANSWER_SECONDS):
        thread.join()
