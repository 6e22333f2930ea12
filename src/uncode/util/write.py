"""Writing files: whole or not at all, and never over a path that is not ours to replace.

A regular file is written beside its target and renamed over it, so that a kill at any moment leaves the old file or
the new one. Links are resolved first, so the link stays. A terminal, a pipe or `/dev/stdout` cannot be renamed over:
it is opened and written through. A disk is refused.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ..core.errors import UncodeError, require
from .paths import kind_at, require_folder

_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})")
_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_PARTIAL = (".uncode-", ".partial")
"""How the name of a file that is being written begins and ends."""


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write `content` to `path`: atomically to a regular file, through a device or a pipe."""
    data = content.encode() if isinstance(content, str) else content
    with _one_sentence(path):
        require(kind_at(path) != "a folder", f"'{path}' is a folder: give the name of a file.")
        if not is_stream(path):
            require_folder(Path(path).resolve().parent)
            with new_file(path) as file:
                file.write(data)
            return
        with _open_stream(path) as stream:
            stream.write(data)


def check_writable(path: str | Path, option: str = "") -> None:
    """Raise unless :func:`write_whole` can write there; nothing is left behind. For use before long work."""
    with _one_sentence(path):
        takes = f"{option} takes a file" if option else "give the name of a file"
        require(kind_at(path) != "a folder", f"'{path}' is a folder: {takes}.")
        if is_stream(path):
            _check_stream(path)
            return
        target = Path(path).resolve()
        require_folder(target.parent)
        with suppress(FileNotFoundError):
            target.lstat()  # an error where the name is too long
            require(os.access(target, os.W_OK), f"'{path}' is read-only: choose another name.")
        number, probe = _new_file_beside(target)
        os.close(number)
        os.unlink(probe)


def is_partial(path: Path) -> bool:
    """Whether a file is being written by :func:`write_whole`, or was when its process was killed."""
    return path.name.startswith(_PARTIAL[0]) and path.name.endswith(_PARTIAL[1])


def is_stream(path: str | Path) -> bool:
    """Whether a path is written through: an open descriptor, a device, a pipe."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError, RuntimeError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def new_file(path: str | Path) -> Iterator[IO[bytes]]:
    """A new file that takes the place of a regular file, or of none, once it is whole. After an error it is removed."""
    target = Path(path).resolve()
    number, name = _new_file_beside(target)
    try:
        with open(number, "wb") as file:
            yield file
            file.flush()
            os.fsync(number)
        os.chmod(name, _mode_of(target))
        os.replace(name, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _new_file_beside(target: Path) -> tuple[int, str]:
    """A new, empty file in the target's folder under a new name, so that no planted link is followed."""
    return tempfile.mkstemp(_PARTIAL[1], _PARTIAL[0], target.parent)


def _mode_of(target: Path) -> int:
    """The permissions of the file that is replaced, or those of a new file here."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _descriptor(path: str | Path) -> int | None:
    """The open descriptor that a path such as `/dev/stdout` or `/dev/fd/63` names. It is shared, not opened again:
    a second file offset would write over what the first one wrote."""
    name = os.path.normpath(path)
    found = _DESCRIPTOR.fullmatch(name)
    return int(found[1]) if found else _STREAMS.get(name)


def _open_stream(path: str | Path) -> IO[bytes]:
    number = _descriptor(path)
    if number is None:
        _check_stream(path)
        return open(path, "wb")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return open(os.dup(number), "wb")


def _check_stream(path: str | Path) -> None:
    number = _descriptor(path)
    if number is not None:
        os.write(number, b"")  # an error where it is closed or open for reading alone
        return
    mode = Path(path).stat().st_mode
    require(not stat.S_ISBLK(mode), f"'{path}' is a disk: give the name of a file.")
    require(not stat.S_ISSOCK(mode), f"'{path}' is a socket: give the name of a file.")
    require(os.access(path, os.W_OK), f"'{path}' is read-only: choose another name.")


@contextmanager
def _one_sentence(path: str | Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has seen enough
    except OSError as error:
        raise UncodeError(f"'{path}' cannot be written: {error.strerror or error}.") from error
    except (ValueError, RuntimeError) as error:  # a NUL in the name, a loop of links
        raise UncodeError(f"{str(path)!r} cannot be the name of a file: {error}.") from error
