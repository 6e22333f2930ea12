"""A process that imports nothing again: a fork of this one, with its own streams and signals.

`import torch` takes seconds. What a test shows by a kill, a signal or an exit code does not depend on it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from threading import Thread
from typing import NoReturn

QUIET = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
"""Warnings that Python itself does not show; pytest makes errors of all."""
LIFE_SECONDS = 120
"""A process that hangs is ended after so long: a test that reads its lines would wait for ever."""


class Forked:
    """A running process, which `with` kills at its end. Its methods are those of `subprocess.Popen`."""

    def __init__(self, act: Callable[[], object], stdin: str = "") -> None:
        pipes = [os.pipe() for _ in range(3)]
        (given, to_it), (from_out, out), (from_err, err) = pipes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads, which here only wait
            self.pid = os.fork()
        if not self.pid:
            _become(act, (given, out, err), [end for pipe in pipes for end in pipe])
        for end in (given, out, err):
            os.close(end)
        with open(to_it, "wb") as stream:
            stream.write(stdin.encode(errors="surrogateescape"))
        self.stdout, self.stderr = (os.fdopen(end, encoding="utf-8") for end in (from_out, from_err))
        self.returncode: int | None = None

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
        self.wait()
        self.stdout.close()
        self.stderr.close()

    def poll(self) -> int | None:
        if self.returncode is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float = 60.0) -> int:
        until = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > until:
                self.send_signal(signal.SIGKILL)
                raise TimeoutError(f"the process did not end within {timeout:g} seconds")
            time.sleep(0.005)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float = 60.0) -> tuple[str, str]:
        """What it writes until it ends."""
        texts = dict.fromkeys(("stdout", "stderr"), "")

        def read(name: str) -> None:
            texts[name] = getattr(self, name).read()

        readers = [Thread(target=read, args=(name,)) for name in texts]
        for reader in readers:
            reader.start()
        try:
            self.wait(timeout)
        finally:
            for reader in readers:
                reader.join()
        return texts["stdout"], texts["stderr"]


def _become(act: Callable[[], object], streams: tuple[int, int, int], pipes: list[int]) -> NoReturn:
    """Do it as a program would, and end."""
    code = 1
    try:
        for number, end in enumerate(streams):
            os.dup2(end, number)
        for end in pipes:
            os.close(end)
        sys.stdin = os.fdopen(0, encoding="utf-8", errors="surrogateescape")
        sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8") for number in (1, 2))
        sys.settrace(None)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.alarm(LIFE_SECONDS)
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads are not in a fork, and it would warn of that
        warnings.resetwarnings()
        for kind in QUIET:
            warnings.simplefilter("ignore", kind)
        act()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
