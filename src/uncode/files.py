"""Files that are there whole or not at all, and work in files that only one process does, of only one job."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .core.errors import UncodeError, require
from .core.json_lines import read_json_lines
from .core.write import is_stream, write_whole

FLUSH_SECONDS = 0.5


@contextmanager
def only_one(lock: Path, out: Path, doing: str) -> Iterator[None]:
    """Hold a lock that ends with this process, however it ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    try:
        number = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        raise UncodeError(f"'{out}' cannot be written: {error.strerror}.") from error
    with open(number, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UncodeError(
                f"another process is {doing} into '{out}': wait for it, or choose another --out."
            ) from None
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def require_same_job(path: Path, what: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], instead: str) -> None:
    """Raise, naming what differs, unless the work that `path` holds is the work that is asked for now."""
    other = [name for name, value in ours.items() if theirs.get(name) != value]
    require(
        not other,
        f"'{path}' is {what} begun with other {' and other '.join(other)}: finish it as it was begun, choose another "
        f"--out, or {instead}.",
    )


class Journal:
    """JSON lines that are kept as they are made. What is interrupted, or killed, goes on where it stopped.

    Beside the lines lies a file (`NAME.job`) that says of which job they are: the lines themselves are all of one
    kind, for whoever reads them.
    """

    def __init__(self, out: Path, job: Mapping[str, Any]) -> None:
        self.out, self.job = out, job
        self.rows: list[dict[str, Any]] = []
        """What there is already, in the order it was made."""
        self._noted: list[dict[str, Any]] = []
        self._flushed = time.monotonic()

    @classmethod
    @contextmanager
    def open(cls, out: Path, job: Mapping[str, Any]) -> Iterator[Journal]:
        """That of a job: as it was left, or a new one. One process at a time."""
        require(not is_stream(out), f"'{out}' is no regular file: a run that is stopped goes on from its file.")
        out = out.resolve()  # a link stays a link
        beside, doing = out.with_name(out.name + ".job"), "writing"
        with only_one(out.with_name(out.name + ".lock"), out, doing):
            journal = cls(out, job)
            if out.exists():
                journal._read(beside)
            else:
                write_whole(beside, json.dumps(job, indent=2) + "\n")
            try:
                yield journal
            finally:
                journal._flush()

    def note(self, row: dict[str, Any]) -> None:
        """Append a line of many that come quickly; they are on the disk half a second later."""
        self._noted.append(row)
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._flush()

    def _flush(self) -> None:
        if self._noted:
            rows, self._noted = self._noted, []
            self.add(rows)
        self._flushed = time.monotonic()

    def add(self, rows: Sequence[dict[str, Any]]) -> None:
        """Append whole lines; they are on the disk when this returns."""
        with open(self.out, "ab") as file:
            file.write(_lines(rows))
            file.flush()
            os.fsync(file.fileno())
        self.rows += rows

    def arrange(self, rows: Sequence[dict[str, Any]]) -> None:
        """The same lines in another order."""
        if list(rows) != self.rows:
            write_whole(self.out, _lines(rows))
            self.rows = list(rows)

    def _read(self, beside: Path) -> None:
        require(beside.is_file(), f"'{self.out}' is there already, and of no job: choose another --out, or remove it.")
        content = self.out.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        try:
            theirs = json.loads(beside.read_text(encoding="utf-8"))
            rows = [row for _, row in read_json_lines(whole.decode(), f"'{self.out}'")]
        except ValueError as error:
            raise UncodeError(f"'{self.out}' cannot be read ({error}): choose another --out, or remove it.") from error
        whole_rows = all(isinstance(row, dict) for row in (theirs, *rows))
        require(whole_rows, f"'{self.out}' was changed: choose another --out, or remove it.")
        require_same_job(self.out, "a job", self.job, theirs, "remove the file")
        os.truncate(self.out, len(whole))  # a process that was killed may have left half a line
        self.rows = rows


def _lines(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
