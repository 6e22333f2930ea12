"""The walls: namespaces, by ourselves or through bubblewrap; else limits alone and a loud notice."""

from __future__ import annotations

import functools
import glob
import json
import os
import shutil
import subprocess
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ...core.errors import UncodeError, require, suggest

HERE = b"here\n"
"""What a role of the guest says first: its walls stand."""
GUEST = Path(__file__).parent / "guest"
HARNESS, PYTHON = "/harness", "/python"
"""Where a jail shows the guest's package, and an interpreter that is not in one of the system's own places."""
_START = "import sys; sys.path.insert(0, sys.argv[1]); from guest.{} import main; main()"
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/nix/store")
"""Where an interpreter's shared libraries may lie."""
_NEUTRAL = ("/usr", "/usr/local")
"""Places of an interpreter that say nothing about the host, as the store of Nix: it stays there."""


class NoJail(UserWarning):
    """Generated programs run without walls around them."""


@dataclass(frozen=True)
class View:
    """What a process in a jail sees."""

    python: str
    """The interpreter's path, as seen inside."""
    harness: str
    """The folder that holds the guest's package, as seen inside."""
    folders: list[list[str]] = field(default_factory=list)
    """What is shown, as [source, place]: the interpreter, its libraries and the system's, the guest's files."""
    hidden: list[str] = field(default_factory=list)
    """Places in them that are covered with an empty folder: installed packages."""
    environment: dict[str, str] = field(default_factory=dict)
    """What the interpreter needs to start; the guest forgets it at once."""


class Jail(ABC):
    """A way to start a bare Python interpreter that sees nothing but itself."""

    name: ClassVar[str]
    walled: ClassVar[bool] = True
    """Whether it sees a file system, processes and a network of its own."""
    own_files: ClassVar[bool] = False
    """Whether it may write: into a folder of its own, with a limit on bytes and on files."""

    def command(self, role: str, settings: Mapping[str, Any]) -> list[str]:
        """The command line that starts `role` of the guest inside the walls."""
        view = self.view()
        request = {**settings, "own_files": self.own_files}
        return [*self.walls(request), *_python(view.python, "boot"), view.harness, role, json.dumps(request)]

    def view(self) -> View:
        """What is seen inside."""
        return _view()

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
        complaint = done.stderr.decode(errors="replace").strip()
        return None if done.stdout == HERE and not complaint else complaint or f"exit code {done.returncode}"


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
        view = self.view()
        for source, place in view.folders:
            if os.path.islink(source):
                words += ["--symlink", os.readlink(source), place]
            else:
                words += ["--ro-bind", source, place]
        for place in view.hidden:
            words += ["--tmpfs", place, "--remount-ro", place]
        for device in ("/dev/null", "/dev/urandom"):
            words += ["--dev-bind", device, device]
        for name, value in view.environment.items():
            words += ["--setenv", name, value]
        words += ["--size", str(settings["limits"]["disk"]), "--tmpfs", "/box", "--remount-ro", "/", "--chdir", "/box"]
        return [*words, "--"]


class Namespaces(Jail):
    """By a first process of the guest's (`guest/enter.py`), which then becomes the one that is walled in."""

    name = "namespaces"
    own_files = True

    def walls(self, settings: Mapping[str, Any]) -> list[str]:
        view = self.view()
        walls = {
            "folders": view.folders,
            "hidden": view.hidden,
            "environment": view.environment,
            "disk": settings["limits"]["disk"],
            "descriptors": settings.get("pipe", []),
        }
        return [*_python(interpreter(), "enter"), str(GUEST.parent), json.dumps(walls)]


class Bare(Jail):
    """No walls: a process with limits and, on Linux, without the system calls that reach others or change files."""

    name = "bare"
    walled = False

    def walls(self, settings: Mapping[str, Any]) -> list[str]:
        return []

    def view(self) -> View:
        return View(interpreter(), str(GUEST.parent))


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


_BUILT = ("_sysconfig*.py", "_sysconfig*.json", "build-details.json", "__pycache__/_sysconfigdata*")
"""Files of the interpreter's that list the paths it was built with."""


def _python(program: str, module: str) -> list[str]:
    """A bare interpreter that runs a module of the guest's; the folder of its package is the next word."""
    return [program, "-I", "-S", "-B", "-X", "utf8", "-c", _START.format(module)]


@functools.cache
def _view() -> View:
    """The interpreter and its libraries, the system's, and the guest's files; no installed packages.

    An interpreter in a folder of the host's own, such as a user's home, is shown as /python: that path is not seen.
    """
    prefix, program = os.path.realpath(sys.base_prefix), interpreter()
    under = program.startswith(f"{prefix}/")
    stays = not under or prefix in _NEUTRAL or prefix.startswith("/nix/store/")
    homes = [prefix] if under else [prefix, os.path.dirname(os.path.dirname(program))]

    def place(path: str) -> str:
        return PYTHON + path.removeprefix(prefix) if not stays and path.startswith(f"{prefix}/") else path

    folders: list[str] = []
    for source in [program, *(f"{home}/{name}" for home in homes for name in ("lib", "lib64")), *_SYSTEM]:
        if os.path.lexists(source) and not any(f"{source}/".startswith(f"{other}/") for other in folders):
            folders.append(source)
    real = [folder for folder in folders if not os.path.islink(folder)]
    hidden = [found for folder in real for found in _found(folder, "python*/site-packages", "python*/dist-packages")]
    built: list[str] = []
    if not stays:
        hidden += _found(f"{prefix}/lib", "pkgconfig", "python*/config-*")
        built += _found(f"{prefix}/lib", *(f"python*/{name}" for name in _BUILT))
    return View(
        python=place(program),
        harness=HARNESS,
        folders=[
            *([source, place(source)] for source in folders),
            *([str(GUEST / "build_variables.py"), place(file)] for file in built),
            [str(GUEST), f"{HARNESS}/guest"],
        ],
        hidden=[place(folder) for folder in hidden],
        environment={} if stays else {"LD_LIBRARY_PATH": f"{PYTHON}/lib"},
    )


def _found(folder: str, *patterns: str) -> list[str]:
    """What is in a folder by those patterns; not by way of links, whose ends are found where they are."""
    found = (path for pattern in patterns for path in sorted(glob.glob(f"{glob.escape(folder)}/{pattern}")))
    return [path for path in found if os.path.realpath(path) == path]
