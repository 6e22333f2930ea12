"""Downloads with a checksum."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from ..core.errors import UncodeError, require

MAX_DOWNLOAD_BYTES = 1 << 28
RELEASE = "https://raw.githubusercontent.com/NEUIR/Uncode/f2e260237f1bbcf01a09fde0fd5b60fb3b79b494/data/"
"""The data of the paper's repository (MIT licence), at a fixed commit."""
OnProgress = Callable[[int, int], None]
"""Called during a download with the bytes so far and the total bytes (0 if the server does not say)."""


def cache_folder() -> Path:
    """The folder for downloads: $UNCODE_CACHE, or `uncode` in the user's cache folder."""
    chosen = os.environ.get("UNCODE_CACHE")
    try:
        return Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uncode"
    except RuntimeError:
        raise UncodeError("this user has no home folder for downloads: set UNCODE_CACHE to a folder.") from None


def fetch(url: str, sha256: str, instead: str, on_progress: OnProgress | None = None) -> bytes:
    """Download a file and check its sha256. `instead` ends the error message: it says what else a user can do."""
    content = _download(url, instead, on_progress or (lambda *_: None))
    found = hashlib.sha256(content).hexdigest()
    require(found == sha256, f"'{url}' is not the released file: its sha256 is {found}, not {sha256}.")
    return content


def _download(url: str, instead: str, on_progress: OnProgress) -> bytes:
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    parts, size = [], 0
    try:
        with urllib.request.urlopen(url, timeout=30) as response:
            total = int(response.headers.get("Content-Length") or 0)
            while part := response.read(1 << 16):
                parts.append(part)
                size += len(part)
                require(
                    size <= MAX_DOWNLOAD_BYTES,
                    f"'{url}' sends more than {MAX_DOWNLOAD_BYTES >> 20} MB: that is not a released file.",
                )
                on_progress(size, total)
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", None) if type(error) is urllib.error.URLError else error
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise UncodeError(f"'{url}' could not be fetched ({reason}): {instead}") from error
    return b"".join(parts)


def is_offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids requests to the hub, so that only the local cache is used."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def unreachable_hub(dataset: str) -> str | None:
    """The address of the hub if it does not answer, else None.

    This asks once. `datasets` itself would retry for half a minute and print a warning each time.
    """
    from huggingface_hub import constants, errors, get_hf_file_metadata, hf_hub_url

    if is_offline():
        return None
    try:
        get_hf_file_metadata(hf_hub_url(dataset, "README.md", repo_type="dataset"))
    except errors.HfHubHTTPError:
        return None  # it answers
    except Exception as error:  # the HTTP client has its own classes for: no route, no name, timeout
        return None if isinstance(error, (ValueError, TypeError)) else str(constants.ENDPOINT)
    return None
