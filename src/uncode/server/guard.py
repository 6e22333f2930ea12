"""What stands before the routes: keys, host names, sizes and times. It also counts and logs every request."""

from __future__ import annotations

import asyncio
import hmac
import re
import time
import uuid

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import CLIENT_GONE, ApiError, Json
from .service import Service

PUBLIC = frozenset({"/", "/health", "/ready", "/docs", "/openapi.json"})
"""Paths that need no key: they say nothing of requests."""
REQUEST_ID = b"x-request-id"
MAX_ID_BYTES = 64
"""Of a request's id that a proxy has given it: the log shows no more."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:/?#@\s]*))(?::[0-9]*)?")
"""The header: a name or an address, and a port."""


class Guard:
    """Wraps the application. The body of a request is read here, whole, within its limits of size and time."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service
        settings = service.settings
        self._key = None if settings.api_key is None else settings.api_key.encode()
        self._hosts = LOOPBACK | {name.lower() for name in (settings.host, *settings.hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, name, method = time.monotonic(), self._name_of(scope), scope["method"]
        facts: Json = {}
        # HEAD is a GET: uvicorn leaves out the body
        scope = {**scope, "uncode": facts, "method": "GET" if method == "HEAD" else method}
        status = CLIENT_GONE

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._service.names_requests:
                    message["headers"] = [*message.get("headers", []), (REQUEST_ID, name.encode())]
            await send(message)

        try:
            await self._guarded(scope, receive, answer)
        except Exception:
            status = 500
            raise
        finally:
            self._note(scope, name, status, time.monotonic() - began, facts | {"method": method})

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._check(scope)
            body = await self._read(scope, receive)
        except ApiError as error:
            await error.response(close=True)(scope, receive, send)
            return
        if body is None:  # the client has left
            return
        waiting = [body]

        async def replay() -> Message:
            if waiting:
                return {"type": "http.request", "body": waiting.pop(), "more_body": False}
            return await receive()

        await self._app(scope, replay, send)

    def _name_of(self, scope: Scope) -> str:
        """The id of a request: new, or that of a proxy which writes it into the answer too."""
        given = b"" if self._service.names_requests else dict(scope["headers"]).get(REQUEST_ID, b"")
        return given[:MAX_ID_BYTES].decode("latin-1") or uuid.uuid4().hex[:16]

    def _check(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        if self._key is None:
            if self._service.settings.is_loopback:
                self._check_host(headers.get(b"host", b"").decode("latin-1"))
            return
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        fits = hmac.compare_digest(given.strip(), self._key) and kind.lower() == b"bearer"
        if not fits and scope["path"] not in PUBLIC:
            raise ApiError(401, "the key is missing or wrong: send it as a bearer token.", code="invalid_api_key")

    def _check_host(self, host: str) -> None:
        """A server without a key answers to loopback names alone, so that no web page can reach it under its own."""
        parts = HOST.fullmatch(host)
        name = host if parts is None else parts[1] or parts[2]
        if name and name.lower() not in self._hosts:
            raise ApiError(
                403,
                f"the host name '{name[:60]}' is not allowed: start the server with --allow-host or --api-key.",
                code="host_not_allowed",
            )

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """The body, or None if the client leaves before it is complete."""
        limits = self._service.settings.limits
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > limits.body_bytes:
            raise self._too_large()
        parts, size, more = list[bytes](), 0, True
        try:
            async with asyncio.timeout(limits.read_seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    parts.append(message.get("body", b""))
                    size, more = size + len(parts[-1]), message.get("more_body", False)
                    if size > limits.body_bytes:
                        raise self._too_large()
        except TimeoutError:
            reason = f"the body was not complete within {limits.read_seconds:g} s."
            raise ApiError(408, reason, code="timeout") from None
        return b"".join(parts)

    def _too_large(self) -> ApiError:
        limit = self._service.settings.limits.body_bytes
        return ApiError(413, f"the body is too large: this server takes at most {limit} bytes.", code="body_too_large")

    def _note(self, scope: Scope, name: str, status: int, seconds: float, facts: Json) -> None:
        route = scope.get("route")
        endpoint = getattr(route, "path", "other")
        metrics = self._service.metrics
        metrics.requests.labels(endpoint, str(status)).inc()
        metrics.request_seconds.labels(endpoint).observe(seconds)
        if endpoint not in ("/health", "/ready", "/metrics") or status >= 400:
            known = {"id": name, "client": (scope.get("client") or ("", 0))[0], "endpoint": endpoint, "status": status}
            self._service.log.write("request", **known, seconds=round(seconds, 4), **facts)
