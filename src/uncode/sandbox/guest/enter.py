"""The namespaces jail: user, mount, PID, network, IPC and UTS namespaces, without bubblewrap.

The process unshares and forks. The child is the first process of its PID namespace. It builds a root from an empty
tmpfs, with the interpreter's folders bound read-only and without /proc. Then it executes the interpreter inside, so
that nothing from outside, such as a path of the host, stays in memory.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

from .parent import die_with_parent
from .syscalls import ARCHITECTURES, SET_UP

_USER, _MOUNT, _PROCESS, _NETWORK, _IPC, _HOST = 0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_DETACH = 2
_NOBODY = 65534
_HERE, _ALL_BELOW = -100, 0x8000


def main() -> None:
    """`argv`: the folder of this package (already used), bytes of the working folder, four lists, each after its
    length (descriptors, folders as source and place in turn, hidden places, variables), the command to run inside.

    Plain words, because importing json would double the time of this process.
    """
    disk, words = int(sys.argv[2]), sys.argv[3:]
    descriptors, folders, hidden, variables = (_take_list(words) for _ in range(4))
    die_with_parent()
    enter([int(descriptor) for descriptor in descriptors])
    _call("sethostname", b"jail", 4)
    _build(list(zip(folders[::2], folders[1::2], strict=True)), hidden, disk)
    os.execve(words[0], words, dict(variable.split("=", 1) for variable in variables))


def _take_list(words: list[str]) -> list[str]:
    """Remove a list and its length from the front."""
    end = 1 + int(words[0])
    taken = words[1:end]
    del words[:end]
    return taken


def enter(descriptors: list[int]) -> None:
    """Enter the namespaces. The child returns; the parent waits for it and exits with its code."""
    user, group = os.getuid(), os.getgid()
    _call("unshare", _USER | _MOUNT | _PROCESS | _NETWORK | _IPC | _HOST)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{_NOBODY} {user} 1"),
        ("gid_map", f"{_NOBODY} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    child = os.fork()
    if child:
        for descriptor in {0, 1, 2, *descriptors}:  # so that the other side sees when the child ends
            os.close(descriptor)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(code if code >= 0 else 128 - code)
    die_with_parent()


def _build(folders: list[tuple[str, str]], hidden: list[str], disk: int) -> None:
    """Build the root: [source, place] folders, hidden places, /dev/null, and an empty working folder."""
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    _mount("tmpfs", "/tmp", "tmpfs", _NO_SUID | _NO_DEVICES)  # a temporary root to build in
    os.makedirs("/tmp/old")
    _call("pivot_root", b"/tmp", b"/tmp/old")
    os.mkdir("/new")
    _mount("tmpfs", "/new", "tmpfs", _NO_SUID | _NO_DEVICES, "size=1m,mode=755")
    for source, place in [*folders, *((device, device) for device in ("/dev/null", "/dev/urandom"))]:
        _bind(f"/old{source}", f"/new{place}")
    for place in hidden:
        _mount("tmpfs", f"/new{place}", "tmpfs", _READ_ONLY | _NO_SUID | _NO_DEVICES, "size=4k,mode=555")
    os.mkdir("/new/box")
    _mount("tmpfs", "/new/box", "tmpfs", _NO_SUID | _NO_DEVICES, f"size={disk},mode=700,nr_inodes=1000")
    os.chdir("/new")
    _call("pivot_root", b".", b".")
    _call("umount2", b".", _DETACH)  # the old root and the temporary root
    _mount(None, "/", None, _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEVICES)
    os.chdir("/box")


def _bind(source: str, place: str) -> None:
    if os.path.islink(source):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.symlink(os.readlink(source), place)
        return
    if os.path.isdir(source):
        os.makedirs(place, exist_ok=True)
    elif not os.path.exists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o444))
    _mount(source, place, None, _BIND | _RECURSIVE)  # recursive: mounts below the source must be included
    flags = _READ_ONLY | _NO_SUID | (0 if source.startswith("/old/dev/") else _NO_DEVICES)
    settings = struct.pack("=QQQQ", flags, 0, 0, 0)  # devices stay writable; their mode and times do not
    _call("mount_setattr", _HERE, place.encode(), _ALL_BELOW, settings, len(settings))


def _mount(source: str | None, place: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = (None if text is None else text.encode() for text in (source, place, kind, data))
    a, b, c, d = texts
    _call("mount", a, b, c, ctypes.c_ulong(flags), d)


def _call(name: str, *args: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if name in SET_UP:
        failed = libc.syscall(SET_UP[name][ARCHITECTURES[os.uname().machine][1]], *args)
    else:
        failed = getattr(libc, name)(*args)
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
