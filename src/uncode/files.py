"""Files that are there whole or not at all, and work in files that only one process does, of only one job."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .core.errors import UncodeError, require
from .core.support.json_lines import read_json_lines
from .core.support.write import is_stream, write_whole

FLUSH_SECONDS = 0.5
SHOWN_DIFFERENCES = 3
_DIGEST = re.compile(r"[0-9a-f]{16,}")


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
                f"another process is {doing} into '{out}': wait for it, or choose another output."
            ) from None
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def require_same_job(path: Path, what: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], instead: str) -> None:
    """Raise, naming what differs, unless the work that `path` holds is the work that is asked for now."""
    other = _differences(ours, {name: theirs.get(name) for name in ours})
    more = f"; and {len(other) - SHOWN_DIFFERENCES} more" if len(other) > SHOWN_DIFFERENCES else ""
    require(
        not other,
        f"'{path}' is {what} begun with {'; '.join(other[:SHOWN_DIFFERENCES])}{more}: finish it as it was begun, "
        f"choose another --out, or {instead}.",
    )


def _differences(ours: Mapping[str, Any], theirs: Mapping[str, Any], inside: str = "") -> list[str]:
    """Each setting that differs, with both values where these are short, as "length 64, now 96"."""
    found = []
    for name in dict.fromkeys((*ours, *theirs)):
        now, then, whole = ours.get(name), theirs.get(name), f"{inside}{name}"
        if now == then:
            continue
        if isinstance(now, Mapping) and isinstance(then, Mapping):
            found += _differences(now, then, f"{whole}.")
        elif _is_short(now) and _is_short(then):
            found.append(f"{whole} {_plain(then)}, now {_plain(now)}")
        else:
            found.append(f"other {whole}")
    return found


def _is_short(value: Any) -> bool:
    """Whether a value tells a reader something in a sentence; a digest does not."""
    if isinstance(value, str):
        return len(value) <= 40 and not _DIGEST.fullmatch(value)
    return value is None or isinstance(value, bool | int | float)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value).replace("null", "none")


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
    def open(
        cls, out: Path, job: Mapping[str, Any], command: Mapping[str, Any] | None = None, force: bool | None = None
    ) -> Iterator[Journal]:
        """That of a job: as it was left, or a new one. One process at a time.

        `command` is noted beside the job and not compared with it. `force` replaces a file that is no journal; None
        is that of a verb without such an option.
        """
        require(not is_stream(out), f"'{out}' is no regular file: a run that is stopped goes on from its file.")
        out = out.resolve()  # a link stays a link
        with only_one(out.with_name(out.name + ".lock"), out, "writing"):
            journal = cls(out, job)
            if out.exists() and not (force and not job_file(out).is_file()):
                journal._read(force)
            else:
                out.unlink(missing_ok=True)
                about = job if command is None else {**job, "command": command}
                write_whole(job_file(out), json.dumps(about, indent=2) + "\n")
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

    def _read(self, force: bool | None) -> None:
        theirs = read_job(self.out, force)
        require_same_job(self.out, "a job", self.job, theirs, "remove the file")
        content = self.out.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        self.rows = _read_rows(self.out, whole)
        os.truncate(self.out, len(whole))  # a process that was killed may have left half a line


def job_file(out: Path) -> Path:
    """The file that says of which job the lines in `out` are."""
    return out.with_name(out.name + ".job")


def read_job(out: Path, force: bool | None = None) -> dict[str, Any]:
    """The job that the lines in `out` are of; `force` as in :meth:`Journal.open`."""
    file = job_file(out)
    replace = "or remove it" if force is None else "remove it, or replace it with --force"
    require(
        file.is_file(),
        f"'{out}' exists and was not written by this command (there is no '{file.name}' beside it): choose another "
        f"--out, {replace}.",
    )
    try:
        theirs = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        theirs = None
    if not isinstance(theirs, dict):
        raise UncodeError(
            f"'{file}' is damaged, and only it says how the lines in '{out.name}' were made: restore it, or choose "
            f"another --out; '{out.name}' itself is unchanged."
        )
    return theirs


def read_finished(out: Path, command: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The whole lines in `out` if they were made by the same command, else none. Nothing is locked or changed."""
    if not out.is_file() or not job_file(out).is_file() or read_job(out).get("command") != command:
        return []
    content = out.read_bytes()
    return _read_rows(out, content) if content.endswith(b"\n") else []


def _read_rows(out: Path, content: bytes) -> list[dict[str, Any]]:
    try:
        rows = [row for _, row in read_json_lines(content.decode(), f"'{out}'")]
    except UnicodeDecodeError as error:
        raise UncodeError(f"'{out}' is not text in UTF-8: choose another --out, or remove it.") from error
    require(all(isinstance(row, dict) for row in rows), f"'{out}' was changed: choose another --out, or remove it.")
    return rows


def _lines(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
