"""Why a text cannot be read, in plain words instead of those of `json` and `codecs`."""

from __future__ import annotations

import json


def json_fault(error: ValueError | RecursionError, one_line: bool = False) -> str:
    """What is wrong with a JSON text: where (the text of `one_line` needs no line number), or what `json` refuses."""
    if isinstance(error, json.JSONDecodeError):
        return f"column {error.colno}" if one_line else f"line {error.lineno}, column {error.colno}"
    return "nested too deeply" if isinstance(error, RecursionError) else "a number has too many digits"


def not_text(encoding: str) -> str:
    """Of bytes that an encoding does not have."""
    return f"not {encoding.upper()} text"
