"""Models that are part of the package, as checkpoint folders."""

from pathlib import Path

TINY = Path(__file__).parent / "tiny"
"""The embedded model: weights, tokenizer, tables, results, card."""
