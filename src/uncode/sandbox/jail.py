"""Jails: namespaces of our own, bubblewrap, or only resource limits with a warning."""

from __future__ import annotations

import compileall
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

from ..core.errors import UncodeError, require, suggest

READY = b"here\n"
"""The first message of every guest process. It means that the jail is set up."""
GUEST = Path(__file__).parent / "guest"
HARNESS, PYTHON = "/harness", "/python"
"""The paths inside a jail of the guest's package, and of an interpreter outside the system's folders."""
_START = "import sys; sys.path.insert(0, sys.argv[1]); from guest.{} import main; main()"
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/nix/store")
"""Folders that may hold the interpreter's shared libraries."""
_NEUTRAL = ("/usr", "/usr/local")
"""Prefixes of an interpreter that reveal nothing about the host. They keep their path inside, as the Nix store does."""


class NoJail(UserWarning):
    """Warns that generated programs run without a jail."""


@dataclass(frozen=True)
class JailView:
    """The file system and the environment of a process in a jail."""

    python: str
    """The path of the interpreter inside the jail."""
    harness: str
    """The folder of the guest's package inside the jail."""
    folders: list[list[str]] = field(default_factory=list)
    """Mounted folders as [source, place]: the interpreter, its libraries, the system's libraries, the guest's files."""
    hidden: list[str] = field(default_factory=list)
    """Folders in them that are covered by an empty folder: installed packages."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables that the interpreter needs to start. The guest clears them at once."""


class Jail(ABC):
    """Starts a bare Python interpreter that is isolated from the host."""

    name: ClassVar[str]
    walled: ClassVar[bool] = True
    """Whether the process has its own file system, process and network namespaces."""
    own_files: ClassVar[bool] = False
    """Whether the process may write files, to its own folder, with limits on bytes and on the number of files."""

    def command(self, role: str, settings: Mapping[str, Any]) -> list[str]:
        """The command line that starts a guest process with this role inside the jail."""
        view = self.view()
        request = {**settings, "own_files": self.own_files}
        return [*self.walls(request), *_python(view.python, "boot"), view.harness, role, json.dumps(request)]

    def view(self) -> JailView:
        """The view of a process in this jail."""
        return _view()

    @abstractmethod
    def walls(self, settings: Mapping[str, Any]) -> list[str]:
        """The words before the interpreter on the command line."""

    def works(self) -> bool:
        """Whether a program can be started in this jail on this machine."""
        try:
            return self.fault() is None
        except (OSError, UncodeError, subprocess.TimeoutExpired):
            return False

    def fault(self) -> str | None:
        """The error of a trivial program in this jail; None if it runs."""
        limits = {"cpu": 10, "memory": 1 << 30, "disk": 1 << 20, "files": 64, "answer": 1 << 20, "wall": 10}
        command = self.command("script", {"limits": limits})
        done = subprocess.run(command, input=b"pass", capture_output=True, timeout=30, env={}, cwd="/", check=False)
        complaint = done.stderr.decode(errors="replace").strip()
        return None if done.stdout == READY and not complaint else complaint or f"exit code {done.returncode}"


class Bubblewrap(Jail):
    """bubblewrap, the program that Flatpak uses. Some systems let only it create user namespaces.

    It limits the bytes in its folder, but not the number of files, which take kernel memory. So writing is forbidden.
    """

    name = "bubblewrap"

    def walls(self, settings: Mapping[str, Any]) -> list[str]:
        found = shutil.which("bwrap")
        if found is None:
            raise UncodeError("bubblewrap (bwrap) is not installed: install it, or choose another jail.")
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
    """Namespaces that a first guest process (`guest/enter.py`) creates before it executes the interpreter inside."""

    name = "namespaces"
    own_files = True

    def walls(self, settings: Mapping[str, Any]) -> list[str]:
        view = self.view()
        lists = (
            [str(descriptor) for descriptor in settings.get("pipe", [])],
            [path for folder in view.folders for path in folder],
            view.hidden,
            [f"{name}={value}" for name, value in view.environment.items()],
        )
        words = [word for each in lists for word in (str(len(each)), *each)]
        return [*_python(interpreter(), "enter"), str(GUEST.parent), str(settings["limits"]["disk"]), *words]


class Bare(Jail):
    """No jail: a process with resource limits and, on Linux, a seccomp filter against writing and reaching others."""

    name = "bare"
    walled = False

    def walls(self, settings: Mapping[str, Any]) -> list[str]:
        return []

    def view(self) -> JailView:
        return JailView(interpreter(), str(GUEST.parent))


JAILS: dict[str, type[Jail]] = {jail.name: jail for jail in (Namespaces, Bubblewrap, Bare)}
"""The jails, from best to worst."""


def interpreter() -> str:
    """The path of the interpreter itself, not of a virtual environment's link."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable) or sys.executable)


@functools.cache
def find_jail(name: str | None = None) -> Jail:
    """The jail of that name, or the best one that works here. Warns if that is `bare`."""
    if not sys.dont_write_bytecode:  # a guest cannot write it, and would compile its modules at every start
        compileall.compile_dir(GUEST, quiet=2)
    if name is not None:
        require(name in JAILS, f"there is no jail named '{name}': {suggest(name, JAILS)}")
        jail = JAILS[name]()
        require(
            jail.works(), f"the jail '{name}' does not work here: leave the name out to use the best one that does."
        )
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
"""Files of the interpreter that list its build paths."""


def _python(program: str, module: str) -> list[str]:
    """The command of a bare interpreter that runs a guest module. The next word must be the package's folder."""
    return [program, "-I", "-S", "-B", "-X", "utf8", "-c", _START.format(module)]


@functools.cache
def _view() -> JailView:
    """A view of the interpreter, its libraries, the system's libraries and the guest's files, without packages.

    An interpreter in a folder such as a user's home appears as /python, so that its path is not visible.
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
    hidden = [
        found for folder in real for found in _matching_paths(folder, "python*/site-packages", "python*/dist-packages")
    ]
    built: list[str] = []
    if not stays:
        hidden += _matching_paths(f"{prefix}/lib", "pkgconfig", "python*/config-*")
        built += _matching_paths(f"{prefix}/lib", *(f"python*/{name}" for name in _BUILT))
    return JailView(
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


def _matching_paths(folder: str, *patterns: str) -> list[str]:
    """The paths in a folder that match the patterns, without those behind links."""
    found = (path for pattern in patterns for path in sorted(glob.glob(f"{glob.escape(folder)}/{pattern}")))
    return [path for path in found if os.path.realpath(path) == path]
