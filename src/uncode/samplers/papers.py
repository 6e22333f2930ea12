"""The index from paper to code, generated from the presets: `python -m uncode.samplers.papers`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import legacy
from .presets import PRESETS


@dataclass(frozen=True)
class Entry:
    """What a preset's docstring says."""

    name: str
    summary: str
    source: str
    defaults: str

    @property
    def citation(self) -> str:
        """The source, up to its first semicolon or sentence on the code."""
        return re.split(r"[;]|, generate", self.source)[0]


def describe(preset: Callable[..., Any]) -> Entry:
    """Read a preset's docstring: first line, `Source:` and the defaults that follow it."""
    text = inspect.getdoc(preset) or ""
    summary = text.splitlines()[0]
    _, _, rest = text.partition("Source:")
    body = re.sub(r"\s+", " ", rest).strip()
    source, start, defaults = re.match(r"(.*?)(\s(?=Defaults? ?)|$)(.*)", body).groups()  # type: ignore[union-attr]
    return Entry(preset.__name__, summary, source.rstrip("."), (start + defaults).strip())


def page() -> str:
    """docs/papers.md."""
    lines = [
        "# Papers",
        "",
        "Which published sampler is which expression, with each default quoted. This page is written by",
        "`python -m uncode.samplers.papers` from the docstrings in `samplers/presets.py` and `samplers/legacy.py`;",
        "a test holds it.",
        "",
        "## Presets",
    ]
    lines += [line for preset in PRESETS.values() for line in _section(describe(preset), "presets")]
    lines += ["", "## Published quirks"]
    lines += [line for quirk in legacy.QUIRKS.values() for line in _section(describe(quirk), "legacy")]
    return "\n".join(lines)


def _section(entry: Entry, module: str) -> list[str]:
    lines = ["", f"### `{module}.{entry.name}`", "", entry.summary, "", f"Source: {entry.source}."]
    if entry.defaults:
        lines += ["", entry.defaults]
    return lines


if __name__ == "__main__":
    print(page())
