"""Confinement of a process by itself, before it reads any candidate code: limits, no privileges, a seccomp filter."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import struct
import sys

from . import syscalls

_LOAD, _AND, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x45, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER, _DUMPABLE, _NO_HUGE_PAGES = 38, 22, 2, 4, 41
_PENDING_SIGNALS = 64

Line = tuple[int, int, int, int]
"""A BPF instruction of the filter: the opcode, the jump if true, the jump if false, and a number."""


_LINUX_LIMITS = {"RLIMIT_SIGPENDING": _PENDING_SIGNALS, "RLIMIT_MSGQUEUE": 0}
"""Limits of kernel memory: pending signals and message queues."""


def limit(limits: dict[str, int]) -> None:
    """Limit CPU time, memory and files. Soft and hard limits are equal, so that they cannot be raised again.

    CPU time is the exception: a signal arrives one second before the hard limit, so that the process can report it.
    """
    for what, most in (
        (resource.RLIMIT_CPU, limits["cpu"] + 1),
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_FSIZE, limits["disk"]),
        (resource.RLIMIT_NOFILE, limits["files"]),
        (resource.RLIMIT_NPROC, 1),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        *((getattr(resource, name), most) for name, most in _LINUX_LIMITS.items() if hasattr(resource, name)),
    ):
        hard = resource.getrlimit(what)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (bound - (what == resource.RLIMIT_CPU), bound))


def confine(limits: dict[str, int], own_files: bool) -> None:
    """Apply the whole confinement. With `own_files`, writing is allowed, because the files are discarded."""
    limit(limits)
    if sys.platform == "linux":
        drop_rights()
        use_small_pages()
        refuse_calls(own_files)


def confine_to(seconds: int, room: int) -> None:
    """Confine this process to `seconds` of CPU time, and to `room` bytes of memory beside those that it has."""
    with open("/proc/self/statm" if sys.platform == "linux" else os.devnull) as counts:
        pages = int((counts.read().split() or ["0"])[0])
    memory = pages * os.sysconf("SC_PAGE_SIZE") + room
    confine({"cpu": seconds, "memory": memory, "disk": room, "files": 64}, own_files=False)


def hide() -> None:
    """Forbid other processes of the same user to read this process's memory."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DUMPABLE, 0)


def use_small_pages() -> None:
    """Disable transparent huge pages. One 4 KB page in use keeps all 2 MB of a huge page in memory, but the limit on
    address space counts only 4 KB. Kernels without huge pages refuse the call and do not need it.
    """
    ctypes.CDLL(None).prctl(_NO_HUGE_PAGES, 1, 0, 0, 0)


def drop_rights() -> None:
    """Drop all capabilities, and the ability to gain new privileges."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel does not promise to give no new rights")
    version_3 = struct.pack("=Ii", 0x20080522, 0)
    if libc.capset(version_3, bytes(24)):
        raise OSError(ctypes.get_errno(), "rights cannot be given up")


def refuse_calls(own_files: bool) -> None:
    """Install a seccomp filter. On unknown architectures there is none, and the jail alone protects the host."""
    known = syscalls.ARCHITECTURES.get(os.uname().machine)
    if known is None:
        return
    program = _filter(*known, own_files)
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(program)
    filter_program = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    if libc.prctl(_SECCOMP, _FILTER, filter_program, 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")


def _filter(architecture: int, column: int, own_files: bool) -> bytes:
    """The filter as BPF code, eight bytes per instruction."""
    lines: list[Line] = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, architecture),
        _refuse(errno.EPERM),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, 0x40000000),  # the x32 system calls
        _refuse(errno.EPERM),
        (_AT_LEAST, 0, 1, syscalls.NEWEST + 1),
        _refuse(errno.ENOSYS),
    ]
    rules = syscalls.BY_ARGUMENT if own_files else syscalls.BY_ARGUMENT | syscalls.WITHOUT_FILES
    for numbers, tests in rules.values():
        lines += _when(numbers[column], [*(line for test in tests for line in _test(*test, errno.EACCES)), _ALLOWED])
    for name, numbers in syscalls.TO_ONESELF.items():
        oneself = (0, os.getpid()) if name == "prlimit64" else (os.getpid(),)
        lines += _when(numbers[column], [*_test(0, syscalls.NOT_ONE_OF, oneself, errno.EPERM), _ALLOWED])
    for numbers in (syscalls.ALLOWED | (syscalls.CHANGING if own_files else {})).values():
        lines += _when(numbers[column], [_ALLOWED])
    for numbers in syscalls.PRETENDED.values():
        lines += _when(numbers[column], [_refuse(0)])
    # clone3 returns ENOSYS, so that the C library falls back to clone, whose error it understands
    lines += _when(syscalls.THREADS["clone3"][column], [_refuse(errno.ENOSYS)])
    lines += _when(syscalls.THREADS["clone"][column], [_refuse(errno.EAGAIN)])
    lines.append(_refuse(errno.EPERM))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


_ALLOWED: Line = (_RETURN, 0, 0, _ALLOW)


def _refuse(code: int) -> Line:
    """Do not make the call; return the error `code`, or success for 0."""
    return (_RETURN, 0, 0, _REFUSE | code)


def _when(number: int | None, lines: list[Line]) -> list[Line]:
    """Run the lines, which end with a decision, for the system call with this number; no lines if it is None."""
    return [] if number is None else [(_EQUAL, 0, len(lines), number), *lines]


def _test(argument: int, how: str, values: tuple[int, ...], code: int) -> list[Line]:
    """Refuse the call by an argument's lower 32 bits; else continue."""
    load, refuse = (_LOAD, 0, 0, 16 + 8 * argument), _refuse(code)
    if how == syscalls.ANY_BIT:
        return [load, (_ANY_BIT, 0, 1, values[0]), refuse]
    if how == syscalls.ALL_BITS:
        return [load, (_AND, 0, 0, values[0]), (_EQUAL, 0, 1, values[0]), refuse]
    return [load, *((_EQUAL, len(values) - k, 0, value) for k, value in enumerate(values)), refuse]
