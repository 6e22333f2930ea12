"""From the bytes of a body to its fields, or to one sentence on why it is refused."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, get_type_hints

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ...core.errors import nearest, shown
from ..errors import ApiError, Json
from .fields import UNSUPPORTED, Body

LONG_BODY = 32_768
"""Bytes from which on a body is read in a thread, and its prompts are encoded there, so that others are not held up."""
MAX_CONTAINERS = 32_768
"""Lists and objects in a body. Python's garbage collector walks all of them again and again while they are made."""
NO_JSON = "the body is no JSON object: send one with the content type application/json."
MAX_SHOWN_ITEMS = 20
"""A list or an object with more items, or with lists or objects in it, is not shown in an error."""
T = TypeVar("T")


class BodyRoute(APIRoute):
    """A route whose endpoint takes `body` and `request`. FastAPI would read the body in the event loop."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        kind = get_type_hints(self.endpoint)["body"]

        async def handle(request: Request) -> Response:
            found: Response = await self.endpoint(body=await _read(request, kind), request=request)
            return found

        return handle


async def near_or_off_the_loop(request: Request, work: Callable[[], T]) -> T:
    """The result of work on a request's body: in a thread, if the body is long."""
    is_long = len(await request.body()) >= LONG_BODY
    return await asyncio.to_thread(work) if is_long else work()


async def _read(request: Request, kind: type[Body]) -> Body:
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not (media == "application/json" or (media.startswith("application/") and media.endswith("+json"))):
        raise ApiError(400, NO_JSON)
    content = await request.body()
    return await near_or_off_the_loop(request, lambda: _parsed(content, kind))


def _parsed(content: bytes, kind: type[Body]) -> Body:
    if containers(content) > MAX_CONTAINERS and containers(_outside_strings(content)) > MAX_CONTAINERS:
        raise ApiError(400, f"the body has too many lists and objects: send at most {MAX_CONTAINERS}.")
    try:
        data = json.loads(content.decode("utf-8-sig", "surrogatepass"))
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise ApiError(400, NO_JSON)
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise _explain(error, data, kind) from None


def _outside_strings(content: bytes) -> bytes:
    """JSON without its strings, in linear time for bytes that are no JSON too."""
    without_escapes = content.replace(rb"\\", b"").replace(rb"\"", b"")
    return b"".join(without_escapes.split(b'"')[::2])


def containers(content: bytes) -> int:
    """At most so many lists and objects are in JSON."""
    return content.count(b"[") + content.count(b"{")


def _explain(error: ValidationError, data: Json, kind: type[Body]) -> ApiError:
    """The first thing that is wrong in the body `data`, with the near name for a field that is unknown."""
    problems = error.errors(include_url=False)
    first = next((one for one in problems if one["type"] == "extra_forbidden"), problems[0])
    place = _place(first, data)
    if first["type"] == "extra_forbidden":
        return ApiError(400, _unknown(first["loc"], place, kind), param=place, code="unknown_field")
    reason = re.sub(r"a valid dictionary( or instance of \w+)?", "an object", str(first["msg"]))
    reason = reason.removeprefix("Value error, ")
    code = "unsupported" if UNSUPPORTED in reason else None
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


def _place(problem: ErrorDetails, data: object) -> str:
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


def _unknown(path: tuple[int | str, ...], place: str, kind: type[Body]) -> str:
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
