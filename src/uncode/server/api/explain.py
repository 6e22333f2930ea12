"""Why a body is refused, in one sentence."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ...core.errors import nearest, shown
from ..errors import ApiError
from .fields import DecodeFields

MAX_SHOWN_ITEMS = 20
"""A list or an object with more items, or with lists or objects in it, is not shown in an error."""


def explain(error: ValidationError, data: dict[str, Any], kind: type[DecodeFields]) -> ApiError:
    """The first thing that is wrong in the body `data`, with the near name for a field that is unknown."""
    problems = error.errors(include_url=False)
    first = next((one for one in problems if one["type"] == "extra_forbidden"), problems[0])
    place = _place(first, data)
    if first["type"] == "extra_forbidden":
        return ApiError(400, _unknown(first["loc"], place, kind), param=place, code="unknown_field")
    reason = str(first["msg"]).removeprefix("Value error, ")
    code = "unsupported" if "cannot be honoured" in reason else None
    most = first.get("ctx", {}).get("max_length")
    sentences = {
        "missing": f"{place} is missing.",
        "too_short": f"{place} is empty: send at least one.",
        "too_long": f"{place} has too many items: send at most {most}.",
        "string_too_long": f"{place} is too long: send at most {most} characters.",
    }
    wrong = f"{place} is wrong: {reason[:1].lower()}{reason[1:]}, not {_safe(first['input'])}."
    message = sentences.get(first["type"], wrong if code is None else f"{place} {reason}.")
    return ApiError(400, message, param=place, code=code)


def _place(problem: ErrorDetails, data: Any) -> str:
    """Where in a body it is, as in `messages[3].content`. pydantic's path has names of types too, which are no keys:
    they are not in the body, or they follow the value that is wrong."""
    found, is_missing = "", problem["type"] == "missing"
    for part in problem["loc"]:
        if data is problem["input"] and not is_missing:
            break
        if isinstance(data, list) and isinstance(part, int):
            data, found = data[part], f"{found}[{part}]"
        elif isinstance(data, dict) and (part in data or is_missing):
            data, found = data.get(part), f"{found}.{str(part)[:60]}"
    return found.removeprefix(".")


def _unknown(path: tuple[int | str, ...], place: str, kind: type[DecodeFields]) -> str:
    field = str(path[-1])[:60]
    where = place.removesuffix(field).removesuffix(".")
    if where:
        return f"unknown field '{field}' in {where}."
    near = nearest(field, kind.model_fields)
    return f"unknown field '{field}'" + (f": did you mean '{near}'?" if near else ": see /docs.")


def _safe(value: object) -> str:
    if not isinstance(value, list | dict):
        return shown(value)
    items = value if isinstance(value, list) else value.values()
    is_short = len(value) <= MAX_SHOWN_ITEMS and not any(isinstance(one, list | dict) for one in items)
    return shown(value) if is_short else f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
