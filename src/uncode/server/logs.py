"""Structured logs: one JSON object per line on standard error. Prompts and answers only where they are asked for."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class Log(logging.Handler):
    """Writes events as JSON lines. As a handler, it writes the warnings of another package in the same form."""

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(logging.WARNING)
        self._stream = stream

    def write(self, event: str, **fields: object) -> None:
        """Write one line. A stream that is closed or full does not stop the server."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{int(time.time() * 1000) % 1000:03d}Z"
        line = json.dumps({"time": stamp, "event": event} | fields, default=str)
        stream = sys.stderr if self._stream is None else self._stream
        try:
            print(line, file=stream, flush=True)
        except (OSError, ValueError):
            return

    def emit(self, record: logging.LogRecord) -> None:
        trace = {} if not record.exc_info else {"traceback": logging.Formatter().formatException(record.exc_info)}
        self.write(record.levelname.lower(), message=record.getMessage().strip(), **trace)

    @contextmanager
    def taking(self, logger: str) -> Iterator[None]:
        """Write the warnings of another package's logger too, until the end of the block."""
        logging.getLogger(logger).addHandler(self)
        try:
            yield
        finally:
            logging.getLogger(logger).removeHandler(self)
