"""From the bytes of a body to its fields."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, get_type_hints

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import ValidationError

from ..errors import ApiError
from .explain import explain
from .fields import DecodeFields

LONG_BODY = 32_768
"""Bytes from which on a body is read in a thread, and its prompts are encoded there, so that others are not held up."""
MAX_CONTAINERS = 32_768
"""Lists and objects in a body. Python's garbage collector walks all of them again and again while they are made."""
NO_JSON = "the body is no JSON object: send one with the content type application/json."
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


async def _read(request: Request, kind: type[DecodeFields]) -> DecodeFields:
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not (media == "application/json" or (media.startswith("application/") and media.endswith("+json"))):
        raise ApiError(400, NO_JSON)
    content = await request.body()
    return await near_or_off_the_loop(request, lambda: _parsed(content, kind))


def _parsed(content: bytes, kind: type[DecodeFields]) -> DecodeFields:
    if _containers(content) > MAX_CONTAINERS and _containers(_outside_strings(content)) > MAX_CONTAINERS:
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
        raise explain(error, data, kind) from None


def _outside_strings(content: bytes) -> bytes:
    """JSON without its strings, in linear time for bytes that are no JSON too."""
    without_escapes = content.replace(rb"\\", b"").replace(rb"\"", b"")
    return b"".join(without_escapes.split(b'"')[::2])


def _containers(content: bytes) -> int:
    return content.count(b"[") + content.count(b"{")
