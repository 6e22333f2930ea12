"""Errors of the engine's own."""

from __future__ import annotations

from ..core.errors import UncodeError


class ForwardFailed(UncodeError):
    """The forward that a row took part in failed, or the row does not fit into memory: no fault of the request."""


def first_line(error: BaseException) -> str:
    """What an error says, without the pages that follow."""
    return (str(error).splitlines() or [type(error).__name__])[0]
