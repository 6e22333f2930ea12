"""Structured logs: one JSON object per line on standard error. Prompts and answers only where they are asked for."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO


class Log:
    """Writes events as JSON lines."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def write(self, event: str, **fields: Any) -> None:
        """Write one line. A stream that is closed or full does not stop the server."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{int(time.time() * 1000) % 1000:03d}Z"
        line = json.dumps({"time": stamp, "event": event} | fields, default=str)
        stream = sys.stderr if self._stream is None else self._stream
        try:
            print(line, file=stream, flush=True)
        except (OSError, ValueError):
            return

    @contextmanager
    def taking(self, logger: str) -> Iterator[None]:
        """Write the warnings of another package's logger too, until the end of the block."""
        handler = _JsonHandler(self)
        logging.getLogger(logger).addHandler(handler)
        try:
            yield
        finally:
            logging.getLogger(logger).removeHandler(handler)


class _JsonHandler(logging.Handler):
    """Messages of another package in the same form."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        trace = {} if not record.exc_info else {"traceback": logging.Formatter().formatException(record.exc_info)}
        self._log.write(record.levelname.lower(), message=record.getMessage().strip(), **trace)
