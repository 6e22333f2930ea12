"""Connections: how many there may be, and how long one may send or read nothing.

uvicorn has a time limit for connections that are kept alive after an answer. It has none for a client that connects and
is silent, that sends its headers byte by byte, or that stops reading its answer. This class adds them.
"""

from __future__ import annotations

import asyncio
import sys
from http import HTTPStatus
from typing import Any, ClassVar

from h11 import RemoteProtocolError
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..core.support.reprs import counted
from .errors import ApiError
from .settings import ServerLimits

RETRY_SECONDS = 5


class Connection(H11Protocol):
    """One client's connection."""

    limits: ClassVar[ServerLimits]
    _first_byte_or_headers: asyncio.TimerHandle | None = None
    _write: asyncio.TimerHandle | None = None
    _has_sent = False

    def connection_made(self, transport: Any) -> None:
        most = self.limits.connections
        if len(self.connections) >= most:
            message = f"the server has {counted(most, 'connection')} already: try again later."
            refusal = ApiError(429, message, code="too_many_connections", retry_after=RETRY_SECONDS)
            transport.write(_raw(refusal))
            transport.close()
            self._refused = True
            return
        self._refused = False
        super().connection_made(transport)
        self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._refused:
            self._stop_waiting()
            self._stop_write_limit()
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._has_sent = True
        super().data_received(data)
        if self._is_busy:
            self._stop_waiting()
        elif self._first_byte_or_headers is None:
            self._wait_for_headers()

    def send_400_response(self, msg: str) -> None:
        """Uvicorn calls it where bytes are no HTTP. Its own answer is plain text."""
        problem = sys.exception()
        if not (self._is_busy and self.cycle.response_started):
            status = problem.error_status_hint if isinstance(problem, RemoteProtocolError) else 400
            error = ApiError(status, f"the request is not valid HTTP: {problem or msg}.", code="invalid_http")
            self.transport.write(_raw(error))
        self.transport.close()

    def on_response_complete(self) -> None:
        self._has_sent = False
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write = self.loop.call_later(self.limits.read_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_write_limit()
        super().resume_writing()

    @property
    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_headers(self) -> None:
        self._first_byte_or_headers = self.loop.call_later(self.limits.read_seconds, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._first_byte_or_headers is not None:
            self._first_byte_or_headers.cancel()
            self._first_byte_or_headers = None

    def _stop_write_limit(self) -> None:
        if self._write is not None:
            self._write.cancel()
            self._write = None

    def _too_slow(self) -> None:
        self._first_byte_or_headers = None
        if self._is_busy or self.transport.is_closing():
            return
        if self._has_sent:
            message = f"the headers were not complete within {self.limits.read_seconds:g} s."
            self.transport.write(_raw(ApiError(408, message, code="timeout")))
        self.transport.close()


def connection_class(limits: ServerLimits) -> type[Connection]:
    """The class of a server's connections, with its limits."""
    return type("Connection", (Connection,), {"limits": limits})


def _raw(error: ApiError) -> bytes:
    """An error as the bytes of an HTTP response, for a connection that has no request yet."""
    body = bytes(error.response().body)
    more = "".join(f"{name}: {value}\r\n" for name, value in error.headers.items())
    phrase = HTTPStatus(error.status).phrase
    head = f"HTTP/1.1 {error.status} {phrase}\r\nContent-Type: application/json\r\nConnection: close\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
