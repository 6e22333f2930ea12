"""The layout of a verb's help."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

_NO_WRAP = "\b"
"""Makes the help formatter leave a paragraph unwrapped."""


class Command(TyperCommand):
    """A verb whose help shows each example on one line, so that it can be copied from a narrow terminal."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        about, title, examples = (self.help or "").partition("Examples:\n")
        if title:
            lines = [f"  {line.strip()}" for line in examples.splitlines() if line.strip()]
            self.help = "\n".join([about.rstrip(), "", title.rstrip(), "", _NO_WRAP, *lines])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line, without the braces that newer versions of typer put around required arguments."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]
