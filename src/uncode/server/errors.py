"""Errors in the shape of the OpenAI API: `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

import json

from fastapi.responses import Response

from ..core.errors import BadLogits, UncodeError
from ..engine.recovery import ForwardFailed

Json = dict[str, object]
"""A JSON object."""

MAX_MESSAGE = 1000
"""Characters of a message: it may show what a client has sent."""
CLIENT_GONE = 499
"""The status in logs and metrics where a client left before its answer began."""
TYPES = {401: "authentication_error", 403: "permission_error", 408: "timeout_error", 429: "rate_limit_error"}
"""Other statuses below 500 are `invalid_request_error`, those from 500 on `server_error`."""


class ApiError(Exception):
    """An answer that is an error."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.param, self.code, self.retry_after = status, param, code, retry_after
        self.message = message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 3] + "..."

    @property
    def body(self) -> Json:
        kind = TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    @property
    def headers(self) -> dict[str, str]:
        found = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return found | ({"WWW-Authenticate": "Bearer"} if self.status == 401 else {})

    def response(self, close: bool = False) -> Response:
        """The answer; `close` ends the connection, whose body may not have been read."""
        return json_response(self.body, self.status, self.headers | ({"Connection": "close"} if close else {}))


def json_response(data: Json, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON in ASCII: a text with half a surrogate pair can be written too."""
    content = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return Response(content, status, headers, "application/json")


def of_row(error: UncodeError) -> ApiError:
    """The answer for a row that could not be decoded: the model's fault, or the request's."""
    if isinstance(error, ForwardFailed):
        return ApiError(500, str(error), code="forward_failed")
    if isinstance(error, BadLogits):
        return ApiError(500, str(error), code="bad_logits")
    return ApiError(400, str(error), code="cannot_decode")


def unexpected(error: Exception) -> ApiError:
    """The answer where the server itself has failed."""
    return ApiError(500, f"an unexpected {type(error).__name__}: this is a bug in uncode.", code="bug")


def shutting_down() -> ApiError:
    """The answer of a server that ends. Clients try again, and reach the next one."""
    return ApiError(503, "the server is shutting down: try again.", code="shutting_down", retry_after=5)
