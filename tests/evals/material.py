"""The benchmark files, where they are: $UNCODE_DATA, or ../shared/data beside the checkout. None of them is ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("UNCODE_DATA") or Path(__file__).parents[2] / ".." / "shared" / "data").resolve()


def data(file: str) -> Path:
    """The data folder; the test is skipped where it does not hold the file."""
    if not (FOLDER / file).exists():
        pytest.skip(f"there is no {file} in $UNCODE_DATA or ../shared/data")
    return FOLDER
