"""The walls: namespaces, by ourselves or through bubblewrap; else limits alone and a loud notice."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from ...core.errors import UncodeError, require, suggest

HERE = b"here\n"
"""What a role of the guest says first: its walls stand."""
GUEST = Path(__file__).parent / "guest"
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from guest.boot import main; main()"
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/nix/store")
"""Where an interpreter's shared libraries may lie."""


class NoJail(UserWarning):
    """Generated programs run without walls around them."""


class Jail(ABC):
    """A way to start a bare Python interpreter that sees nothing but itself."""

    name: ClassVar[str]
    walled: ClassVar[bool] = True
    """Whether it sees a file system, processes and a network of its own."""
    own_files: ClassVar[bool] = False
    """Whether it may write: into a folder of its own, with a limit on bytes and on files."""

    def command(self, role: str, settings: Mapping[str, Any]) -> list[str]:
        """The command line that starts `role` of the guest inside the walls."""
        harness = self.harness()
        told = dict(settings) | {"harness": harness, "own_files": self.own_files, "enter": False} | self.extra()
        python = [interpreter(), "-I", "-S", "-B", "-X", "utf8", "-c", _BOOT, harness, role, json.dumps(told)]
        return [*self.walls(told), *python]

    def harness(self) -> str:
        """The folder that holds the guest's package, as the interpreter sees it."""
        return str(GUEST.parent)

    def extra(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def walls(self, settings: Mapping[str, Any]) -> list[str]:
        """What stands before the interpreter on the command line."""

    def works(self) -> bool:
        """Whether a program can be started in it here."""
        try:
            return self.fault() is None
        except (OSError, UncodeError, subprocess.TimeoutExpired):
            return False

    def fault(self) -> str | None:
        """None, or what a program that should end at once says instead."""
        limits = {"cpu": 10, "memory": 1 << 30, "disk": 1 << 20, "files": 64, "answer": 1 << 20, "wall": 10}
        command = self.command("script", {"limits": limits})
        done = subprocess.run(command, input=b"pass", capture_output=True, timeout=30, env={}, cwd="/", check=False)
        told = done.stderr.decode(errors="replace").strip()
        return None if done.stdout == HERE and not told else told or f"exit code {done.returncode}"


class Bubblewrap(Jail):
    """By the program that Flatpak uses, for systems that let it, but not others, make user namespaces.

    It bounds the bytes of its folder, but not the number of files, which cost the kernel memory: so none may be made.
    """

    name = "bubblewrap"

    def walls(self, settings: Mapping[str, Any]) -> list[str]:
        found = shutil.which("bwrap")
        if found is None:
            raise UncodeError("bubblewrap (bwrap) is not installed.")
        words = [found, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
        words += ["--uid", "65534", "--gid", "65534", "--hostname", "jail", "--clearenv", "--cap-drop", "ALL"]
        for source, place in _folders():
            if os.path.islink(source):
                words += ["--symlink", os.readlink(source), place]
            else:
                words += ["--ro-bind", source, place]
        for device in ("/dev/null", "/dev/urandom"):
            words += ["--dev-bind", device, device]
        words += ["--size", str(settings["limits"]["disk"]), "--tmpfs", "/box", "--remount-ro", "/", "--chdir", "/box"]
        return [*words, "--"]

    def harness(self) -> str:
        return "/harness"


class Namespaces(Jail):
    """By the guest itself (`guest/enter.py`)."""

    name = "namespaces"
    own_files = True

    def walls(self, settings: Mapping[str, Any]) -> list[str]:
        return []

    def extra(self) -> dict[str, Any]:
        return {"enter": True, "folders": _folders()}


class Bare(Jail):
    """No walls: a process with limits and, on Linux, without the system calls that reach others or change files."""

    name = "bare"
    walled = False

    def walls(self, settings: Mapping[str, Any]) -> list[str]:
        return []


JAILS: dict[str, type[Jail]] = {jail.name: jail for jail in (Namespaces, Bubblewrap, Bare)}
"""From best to worst."""


def interpreter() -> str:
    """The interpreter itself, not the virtual environment's link to it."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable) or sys.executable)


@functools.cache
def find_jail(name: str | None = None) -> Jail:
    """The jail of that name, or the best that works here; a loud notice where there is none."""
    if name is not None:
        require(name in JAILS, f"there is no jail named '{name}': {suggest(name, JAILS)}")
        jail = JAILS[name]()
        require(jail.works(), f"the jail '{name}' does not work here: leave it out to take the best that does.")
        return jail
    for kind in JAILS.values():
        jail = kind()
        if jail.works():
            if not jail.walled:
                warnings.warn(_NOTICE, NoJail, stacklevel=2)
            return jail
    raise UncodeError(f"programs cannot be run here: {Bare().fault()}.")


_NOTICE = (
    "GENERATED PROGRAMS RUN WITHOUT WALLS: neither user namespaces nor bubblewrap work here, so a program can read "
    "every file this user can read, the tests among them: do not trust its verdict. Limits of time and memory hold; "
    "on Linux it can neither write nor reach others. Install bubblewrap (bwrap), or use a machine without secrets."
)


def _folders() -> list[list[str]]:
    """What the interpreter needs to see, as [source, place]: itself, the system's libraries, the guest's files."""
    prefix = os.path.realpath(sys.base_prefix)
    home = os.path.dirname(os.path.dirname(interpreter()))
    found = [prefix] + [home] * (not interpreter().startswith(prefix + "/"))
    for folder in _SYSTEM:
        inside = any(folder.startswith(f"{other}/") for other in found)
        if os.path.lexists(folder) and not inside:
            found.append(folder)
    return [[folder, folder] for folder in found] + [[str(GUEST), "/harness/guest"]]
