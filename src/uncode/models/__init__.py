"""Models that are part of the package."""

from __future__ import annotations

from pathlib import Path

TINY = Path(__file__).parent / "tiny"
"""Seven families of little problems, 7 M parameters; its README.md is the card."""
