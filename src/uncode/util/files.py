"""Files of work in progress: locks for one process, journals that can be resumed, and reading text."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from ..core.errors import UncodeError, require
from ..core.support.json_lines import read_json_lines
from .write import is_stream, write_whole

FLUSH_SECONDS = 0.5
LOCK_POLL_SECONDS = 0.05
MAX_LISTED_DIFFERENCES = 3
_DIGEST = re.compile(r"[0-9a-f]{16,}")


@contextmanager
def exclusive_lock(lock: Path, out: Path, doing: str, wait_seconds: float = 0.0) -> Iterator[None]:
    """Hold a lock file. The system releases the lock when the process ends, in whatever way.

    If another process holds it, wait up to `wait_seconds`, then raise.
    """
    try:
        import fcntl
    except ImportError:  # this system has no such locks
        yield
        return
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            number = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except OSError as error:
            raise UncodeError(f"'{out}' cannot be written: {error.strerror}.") from error
        file = open(number, "w")  # noqa: SIM115  # closed below
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.exists() and os.path.samestat(os.fstat(number), lock.stat()):
                break  # else its last holder has removed the file since we opened it
            file.close()
        except BlockingIOError:
            file.close()
            if time.monotonic() > deadline:
                raise UncodeError(
                    f"another process is {doing} into '{out}': wait for it, or choose another output."
                ) from None
            time.sleep(LOCK_POLL_SECONDS)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        file.close()


def require_same_job(path: Path, what: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], instead: str) -> None:
    """Raise if the unfinished work in `path` belongs to another job. The error names the settings that differ."""
    other = _differences(ours, {name: theirs.get(name) for name in ours})
    more = f"; and {len(other) - MAX_LISTED_DIFFERENCES} more" if len(other) > MAX_LISTED_DIFFERENCES else ""
    require(
        not other,
        f"'{path}' is {what} begun with {'; '.join(other[:MAX_LISTED_DIFFERENCES])}{more}: finish it with those "
        f"settings, choose another `out=`, or {instead}.",
    )


def _differences(ours: Mapping[str, Any], theirs: Mapping[str, Any], inside: str = "") -> list[str]:
    """The settings that differ, with both values if these are short: "length 64, now 96"."""
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
    """Whether a value is worth printing in a sentence. A digest is not."""
    if isinstance(value, str):
        return len(value) <= 40 and not _DIGEST.fullmatch(value)
    return value is None or isinstance(value, bool | int | float)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value).replace("null", "none")


class Journal:
    """A file of JSON lines to which one process appends while the work runs, so that interrupted work can be resumed.

    A line is with the operating system when `add` returns, so a kill loses no line. It is on the disk within about
    FLUSH_SECONDS, or when the file is closed.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._synced = path, time.monotonic()
        self.rows: list[dict[str, Any]] = []
        """The rows of earlier work on the same job, in the order in which they were written."""
        self._file = open(path, "a+b", buffering=0)  # noqa: SIM115  # closed by `open`
        self._file.seek(0)
        self._file.truncate(self._file.read().rfind(b"\n") + 1)

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Journal]:
        """Open a file, or make it. Half a line at its end, which a kill has left, is removed."""
        journal = cls(path)
        try:
            yield journal
        finally:
            os.fsync(journal._file.fileno())
            journal._file.close()

    @classmethod
    @contextmanager
    def of_job(
        cls, out: Path, job: Mapping[str, Any], command: Mapping[str, Any] | None = None, force: bool | None = None
    ) -> Iterator[Journal]:
        """Open the journal of a job with its rows so far, or create it. Only one process at a time can hold it open.

        A second file (`NAME.job`) describes the job. So the first file holds lines of one kind only, and other programs
        can read it. `command` is written next to the job and not compared with it. `force=True` replaces a file that is
        not a journal; None means that the caller has no such option.
        """
        require(not is_stream(out), f"'{out}' is not a regular file: give a file, from which the run can be resumed.")
        out = out.resolve()  # if `out` is a link, its target is replaced and the link stays
        with exclusive_lock(out.with_name(out.name + ".lock"), out, "writing"):
            rows = []
            has_rows = out.exists() and out.stat().st_size > 0
            if has_rows and not (force and not job_file(out).is_file()):
                require_same_job(out, "a job", job, read_job(out, force), "remove the file")
                rows = read_rows(out)
            else:
                out.unlink(missing_ok=True)
                about = job if command is None else {**job, "command": command}
                write_whole(job_file(out), json.dumps(about, indent=2) + "\n")
            with cls.open(out) as journal:
                journal.rows = rows
                yield journal

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row."""
        content = _lines([row])
        while content:
            content = content[self._file.write(content) :]
        if time.monotonic() - self._synced > FLUSH_SECONDS:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def arrange(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Rewrite the file with the same rows in another order, at the end of the work."""
        content = _lines(rows)
        if self.path.read_bytes() != content:
            write_whole(self.path, content)


def job_file(out: Path) -> Path:
    """The file that describes the job of the lines in `out`."""
    return out.with_name(out.name + ".job")


def read_job(out: Path, force: bool | None = None) -> dict[str, Any]:
    """The job of the lines in `out`; `force` as in :meth:`Journal.of_job`."""
    file = job_file(out)
    replace = "or remove it" if force is None else "remove it, or replace it with `force=True`"
    require(
        file.is_file(),
        f"'{out}' exists and was not written by this command (there is no '{file.name}' beside it): choose another "
        f"`out=`, {replace}.",
    )
    try:
        theirs = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        theirs = None
    if not isinstance(theirs, dict):
        raise UncodeError(
            f"'{file}' is damaged, and without it the lines in '{out.name}' cannot be resumed: restore it, or choose "
            f"another `out=`; '{out.name}' itself is unchanged."
        )
    return theirs


def read_finished(out: Path, command: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows in `out` if the same command wrote them, else none. This locks nothing and changes nothing."""
    if not out.is_file() or not job_file(out).is_file() or read_job(out).get("command") != command:
        return []
    content = out.read_bytes()
    return _read_rows(out, content) if content.endswith(b"\n") else []


def read_rows(out: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines. Half a line at its end, which a kill has left, is not read."""
    content = out.read_bytes()
    return _read_rows(out, content[: content.rfind(b"\n") + 1])


def _read_rows(out: Path, content: bytes) -> list[dict[str, Any]]:
    """The rows, or an error that is right for files to read and files to write: what to do with the wrong line."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UncodeError(f"line {line} of '{out}' is not UTF-8 text: correct or remove this line.") from error
    rows = []
    for line, row in read_json_lines(text, f"'{out}'"):
        require(isinstance(row, dict), f"line {line} of '{out}' is not a JSON object: correct or remove this line.")
        rows.append(row)
    return rows


def read_text(path: Path | Traversable) -> str:
    """The content of a UTF-8 text file. Other content is an UncodeError."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UncodeError(f"'{path}' is not UTF-8 text ({error}): convert it first.") from error


def _lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
