"""JSON lines: one value per line, each with its line number in the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..errors import UncodeError


def read_json_lines(text: str, source: str) -> Iterator[tuple[int, Any]]:
    """Every value of `text` with its line number, from 1. `source` names the file in errors.

    A byte order mark, CRLF and blank lines are accepted; blank lines count. Only a line feed ends a line: a JSON
    string may hold U+2028 and other characters at which `str.splitlines` splits.
    """
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if line.strip():
            yield number, read_json(line, f"line {number} of {source}")


def read_json(line: str, where: str) -> Any:
    """The value of one line, or an error that starts with `where`.

    The message of `json` counts lines inside the string that it was given, so it says "line 1" for any line of a
    file. Only its column is passed on.
    """
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        reason = f"{error.msg.removesuffix(' at')} at column {error.colno}"
    except ValueError as error:  # a number with thousands of digits
        reason = str(error)
    except RecursionError:
        reason = "it is nested too deeply"
    raise UncodeError(f"{where} is not JSON ({reason}): correct or remove this line.")
