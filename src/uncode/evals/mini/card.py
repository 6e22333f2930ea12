"""The card of the embedded model, written from the files that lie beside its weights."""

from __future__ import annotations

import json
from typing import Any

from ...models import TINY
from .results import Results


def own_results() -> Results:
    """What the mini-suite found for the shipped weights."""
    return Results.load(TINY / "results.json")


def card() -> str:
    """The card as Markdown."""
    record: dict[str, Any] = json.loads((TINY / "training.json").read_text())
    return f"# tiny\n\n{record['parameters']} parameters\n"
