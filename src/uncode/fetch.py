"""Fetching a file over the network, whole and checked."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from .core.errors import UncodeError, require

LARGEST = 1 << 28
RELEASE = "https://raw.githubusercontent.com/NEUIR/Uncode/f2e260237f1bbcf01a09fde0fd5b60fb3b79b494/data/"
"""The data of the paper's repository (MIT licence), at a commit."""
OnProgress = Callable[[int, int], None]
"""Told how far a download is: bytes so far, bytes in all (0 where the server does not say)."""


def cache() -> Path:
    """Where fetched things are kept: $UNCODE_CACHE, or uncode's folder in the user's cache."""
    named = os.environ.get("UNCODE_CACHE")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uncode"


def fetch(url: str, sha256: str, instead: str, on_progress: OnProgress | None = None) -> bytes:
    """The file at an address, if it is the one with that checksum; `instead` says what else a user can do."""
    content = _download(url, instead, on_progress or (lambda *_: None))
    found = hashlib.sha256(content).hexdigest()
    require(found == sha256, f"'{url}' is not the file that was released: its sha256 is {found}, not {sha256}.")
    return content


def _download(url: str, instead: str, on_progress: OnProgress) -> bytes:
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    parts, size = [], 0
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            whole = int(answer.headers.get("Content-Length") or 0)
            while part := answer.read(1 << 16):
                parts.append(part)
                size += len(part)
                require(size <= LARGEST, f"'{url}' sends more than {LARGEST >> 20} MB: that is not a released file.")
                on_progress(size, whole)
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", None) if type(error) is urllib.error.URLError else error
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise UncodeError(f"'{url}' could not be fetched ({reason}): {instead}") from error
    return b"".join(parts)


def is_offline() -> bool:
    """Whether the hub may not be asked (HF_HUB_OFFLINE): what is in the local cache has to do."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def silent_hub(dataset: str) -> str | None:
    """The hub's address if it does not answer; asked once, for `datasets` asks for half a minute, and aloud."""
    from huggingface_hub import constants, errors, get_hf_file_metadata, hf_hub_url

    if is_offline():
        return None
    try:
        get_hf_file_metadata(hf_hub_url(dataset, "README.md", repo_type="dataset"))
    except errors.HfHubHTTPError:
        return None  # it answers
    except Exception as error:  # the http client's own kinds: no route, no name, too slow
        return None if isinstance(error, (ValueError, TypeError)) else str(constants.ENDPOINT)
    return None
