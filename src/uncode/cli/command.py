"""How a verb's help is laid out."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

_NO_WRAP = "\b"
"""Tells the parser's formatter to leave a paragraph as it is."""


class Command(TyperCommand):
    """A verb whose examples can be copied: each stays on one line, however narrow the terminal."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        about, title, examples = (self.help or "").partition("Examples:\n")
        if title:
            lines = [f"  {line.strip()}" for line in examples.splitlines() if line.strip()]
            self.help = "\n".join([about.rstrip(), "", title.rstrip(), "", _NO_WRAP, *lines])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Required arguments without the braces that newer versions of typer put around them."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]
