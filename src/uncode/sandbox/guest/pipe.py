"""Messages as lines of JSON over two file descriptors, with limits on size and waiting time."""

from __future__ import annotations

import json
import os
import select
import time

TYPE_CHECKING = False  # importing typing would take a tenth of the start of a guest
if TYPE_CHECKING:
    from typing import Any


def silence(*descriptors: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(nothing, descriptor)


class Broken(Exception):
    """The other side has closed the pipe, timed out or sent an invalid message."""


class Pipe:
    def __init__(self, reading: int, writing: int, most: int, until: float | None = None) -> None:
        """A message has at most `most` bytes. Waiting stops at the time `until`, by `time.monotonic`."""
        self.reading, self.writing, self.most, self.until = reading, writing, most, until
        self.buffer = bytearray()  # grows in place, because a program may send single bytes

    def send(self, message: object) -> None:
        data = memoryview(json.dumps(message).encode() + b"\n")
        while data:
            self._wait(self.writing, select.POLLOUT)
            try:
                data = data[
                    os.write(self.writing, data[:4096]) :
                ]  # a ready pipe accepts this many bytes without blocking
            except OSError as error:
                raise Broken("the program ended before it answered") from error

    def receive(self) -> Any:
        at = 0
        while (end := self.buffer.find(b"\n", at)) < 0:
            at = len(self.buffer)
            if at > self.most:
                raise Broken(f"an answer of more than {self.most:,} bytes")
            self._wait(self.reading, select.POLLIN)
            part = os.read(self.reading, 1 << 20)
            if not part:
                raise Broken("the program ended before it answered")
            self.buffer += part
        line = bytes(self.buffer[:end])
        del self.buffer[: end + 1]
        if len(line) > self.most:
            raise Broken(f"an answer of more than {self.most:,} bytes")
        try:
            return json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Broken("the program wrote something that is no answer") from error

    def _wait(self, descriptor: int, event: int) -> None:
        if self.until is None:
            return
        poll = select.poll()  # select() fails for descriptors above 1023
        poll.register(descriptor, event)
        left = self.until - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):  # the deadline also ends a side that is always ready
            raise Broken("the program took too long")
