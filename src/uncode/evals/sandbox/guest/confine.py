"""The walls a process puts around itself before it reads a line of the candidate: limits, no rights, refused calls."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import signal
import struct
from typing import Any

from . import syscalls

_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER, _DUMPABLE, _DEATH_SIGNAL = 38, 22, 2, 4, 1


def limit(limits: dict[str, Any]) -> None:
    """Bound processor time, memory, files; soft and hard alike, so that they cannot be raised again.

    But for processor time: a second before the end there is a signal, so that an honest program can say why it ends.
    """
    for what, most in (
        (resource.RLIMIT_CPU, limits["cpu"] + 1),
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_FSIZE, limits["disk"]),
        (resource.RLIMIT_NOFILE, limits["files"]),
        (resource.RLIMIT_NPROC, 1),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (bound - (what == resource.RLIMIT_CPU), bound))


def confine(limits: dict[str, Any], own_files: bool) -> None:
    """All walls at once. `own_files`: what is written here is thrown away, so that writing may be allowed."""
    limit(limits)
    if platform.system() == "Linux":
        drop_rights()
        refuse_calls(own_files)


def die_with_parent() -> None:
    """Where the process that started this one ends, however it ends, this one is killed."""
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)


def hide() -> None:
    """Others of the same user may not look into this process's memory."""
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(_DUMPABLE, 0)


def drop_rights() -> None:
    """No rights of root, not even inside, and no way to new ones."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel does not promise to give no new rights")
    version_3 = struct.pack("=Ii", 0x20080522, 0)
    if libc.capset(version_3, bytes(24)):
        raise OSError(ctypes.get_errno(), "rights cannot be given up")


def refuse_calls(own_files: bool) -> None:
    """Install a seccomp filter. On machines whose numbers are not known there is none; the jail's walls stand alone."""
    known = syscalls.ARCHITECTURES.get(platform.machine())
    if known is None:
        return
    program = _filter(*known, own_files)
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(program)
    told = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    if libc.prctl(_SECCOMP, _FILTER, told, 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")


def _filter(architecture: int, column: int, own_files: bool) -> bytes:
    """The filter as the kernel's small machine code, eight bytes an instruction."""
    lines: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, 0x40000000),  # x86's second set of numbers
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),
        (_AT_LEAST, 0, 1, syscalls.NEWEST + 1),
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
    ]
    refused = [syscalls.PROCESSES, syscalls.KERNEL, syscalls.NETWORK, syscalls.MEMORY]
    if not own_files:
        refused.append(syscalls.WRITING)
    for name, numbers in ((n, v) for table in refused for n, v in table.items()):
        if (number := numbers[column]) is not None:
            # clone3 is "not there", so that the library asks with clone, whose refusal it understands
            code = errno.ENOSYS if name == "clone3" else errno.EAGAIN if name == "clone" else errno.EPERM
            lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE | code)]
    for numbers in syscalls.SIGNALS.values():
        if (number := numbers[column]) is not None:
            lines += _only_oneself(number)
    rules = syscalls.BY_ARGUMENT if own_files else syscalls.BY_ARGUMENT | syscalls.OPENING
    for numbers, argument, how, values in rules.values():
        if (number := numbers[column]) is not None:
            lines += _unless(number, argument, how, values)
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _only_oneself(number: int) -> list[tuple[int, int, int, int]]:
    """Allow a call whose first argument is this process, or 0 for prlimit; refuse it for others."""
    zero = number in syscalls.SIGNALS["prlimit64"]
    return [
        (_EQUAL, 0, 5, number),
        (_LOAD, 0, 0, 16),
        (_EQUAL, 2, 0, os.getpid()),
        (_EQUAL, 1, 0, 0 if zero else os.getpid()),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _unless(number: int, argument: int, how: str, values: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """Refuse a call by the value of an argument."""
    test = _ANY_BIT if how == syscalls.ANY_BIT else _EQUAL
    return [
        (_EQUAL, 0, len(values) + 3, number),
        (_LOAD, 0, 0, 16 + 8 * argument),
        *((test, len(values) - k, 0, value) for k, value in enumerate(values)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE | errno.EACCES),
    ]
