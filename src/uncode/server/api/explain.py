"""Why a body is refused, in one sentence."""

from __future__ import annotations

from typing import Any

from fastapi.exceptions import RequestValidationError

from ...core.errors import nearest, shown
from ..errors import ApiError
from .bodies import ChatBody, CompletionBody, FimBody
from .fields import DecodeFields

NO_JSON = "the body is no JSON object: send one with the content type application/json."
BODIES: dict[str, type[DecodeFields]] = {
    "/v1/completions": CompletionBody,
    "/v1/chat/completions": ChatBody,
    "/v1/fim/completions": FimBody,
}


def explain(error: RequestValidationError, endpoint: str) -> ApiError:
    """The first thing that is wrong, with the near name for a field that is unknown."""
    problems = list(error.errors())
    unknown = [one for one in problems if one["type"] == "extra_forbidden"]
    first: dict[str, Any] = (unknown or problems)[0]
    path = [part for part in first["loc"] if part != "body"]
    name = str(path[0]) if path else None
    if first["type"] == "json_invalid" or not path:
        return ApiError(400, NO_JSON)
    if first["type"] == "extra_forbidden":
        return ApiError(400, _unknown(path, endpoint), param=_dotted(path), code="unknown_field")
    if first["type"] == "missing":
        return ApiError(400, f"{_dotted(path)} is missing.", param=name)
    if first["type"] == "too_short":
        return ApiError(400, f"{_dotted(path)} is empty: send at least one.", param=name)
    reason = str(first.get("msg", "is wrong")).removeprefix("Value error, ")
    if "cannot be honoured" in reason:
        return ApiError(400, f"{_dotted(path)} {reason}.", param=name, code="unsupported")
    given = first.get("input")
    return ApiError(400, f"{name} is wrong: {reason[:1].lower()}{reason[1:]}, not {_safe(given)}.", param=name)


def _unknown(path: list[Any], endpoint: str) -> str:
    field, where = str(path[-1]), _dotted(path[:-1])
    if where:
        return f"unknown field '{field[:60]}' in {where}."
    near = nearest(field, BODIES[endpoint].model_fields)
    return f"unknown field '{field[:60]}'" + (f": did you mean '{near}'?" if near else ": see /docs.")


def _dotted(path: list[Any]) -> str:
    """The path in the body, without the names of our types."""
    return ".".join(str(part)[:60] for part in path if not str(part)[:1].isupper() and "[" not in str(part))


def _safe(value: object) -> str:
    try:
        return shown(value)
    except RecursionError:
        return "that"
