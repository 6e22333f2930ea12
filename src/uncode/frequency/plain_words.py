"""Reasons why a text cannot be read, in plainer words than those of `json` and `codecs`."""

from __future__ import annotations

import json


def json_fault(error: ValueError | RecursionError, one_line: bool = False) -> str:
    """The line and column of a JSON syntax error (without the line if `one_line`), or why `json` refuses the text."""
    if isinstance(error, json.JSONDecodeError):
        return f"column {error.colno}" if one_line else f"line {error.lineno}, column {error.colno}"
    return "nested too deeply" if isinstance(error, RecursionError) else "a number has too many digits"


def not_text(encoding: str) -> str:
    """The reason for bytes that are invalid in an encoding."""
    return f"not {encoding.upper()} text"
