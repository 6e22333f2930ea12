"""The sandbox: one process in the jail runs the program, another one runs the tests."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from ..core.errors import UncodeError, require
from .jail import READY, Jail, find_jail

_GRACE_SECONDS = 5.0
"""Seconds beyond the wall-clock limit, to start two interpreters and to receive the referee's verdict."""

_NICE = shutil.which("nice")
_LOW_PRIORITY = [] if _NICE is None else [_NICE, "-n", "10"]
"""The words before a guest's command line. A decode beside it needs the processor at every step; a grade may come
later. Without effect where the kernel gives each session its own share (autogroup)."""

_ENDED_BY: dict[int, str] = {
    signal.SIGALRM: "the program took too long",
    signal.SIGXCPU: "the answer could not be compared: it took too much processor time",
}
"""The reason for a verdict, by the exit code of a referee that a limit has ended."""


@dataclass(frozen=True)
class Limits:
    """Resource limits of a program."""

    cpu: int = 15
    """Seconds of CPU time, for the program and for the tests (at least five) each. MBPP's slowest takes five."""
    wall: float = 300.0
    """Seconds of wall-clock time for all tests. It is much larger, so that a busy machine changes no verdict: a program
    may have a twentieth of a processor."""
    memory: int = 1 << 30
    """Bytes of address space."""
    disk: int = 32 << 20
    """Bytes that the program may write, per file and in total."""
    files: int = 64
    """The number of open file descriptors."""
    answer: int = 8 << 20
    """Bytes of one returned value."""

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            number = isinstance(value, (int, float) if name == "wall" else int) and not isinstance(value, bool)
            kind = "a number" if name == "wall" else "a whole number"
            require(number, f"the limit '{name}' must be {kind}, not {value!r}.")
            require(value > 0, f"the limit '{name}' must be positive, not {value}.")
        least = 64 << 20
        require(
            self.memory >= least, f"the limit 'memory' must be {least:,} bytes or more, for the interpreter itself."
        )


@dataclass(frozen=True)
class Suite:
    """Tests of named functions. They run outside the jail, in the order given."""

    names: tuple[str, ...]
    tests: tuple[str, ...]
    setup: str = ""
    """Code that runs before the tests: their imports and helpers."""

    def __post_init__(self) -> None:
        for name, value in (("names", self.names), ("tests", self.tests)):
            listed = not isinstance(value, str) and len(value) > 0 and all(isinstance(item, str) for item in value)
            require(listed, f"a suite's {name} must be a list of at least one string, not {value!r}.")


@dataclass(frozen=True)
class Judgement:
    passed: bool
    why: str
    program: int | None = None
    """The number of the judged program: the first one that is Python, defines the functions and loads."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Sandbox:
    """Runs generated programs. It may be shared between threads; each verdict has its own processes."""

    limits: Limits = field(default_factory=Limits)
    jail: Jail = field(default_factory=find_jail)

    def judge(self, suite: Suite, *programs: str) -> Judgement:
        """Test the first program that defines the functions."""
        require(len(programs) > 0, "there is no program to judge: give at least one.")
        start = time.monotonic()
        job = {"programs": programs, "names": suite.names, "tests": suite.tests, "setup": suite.setup}
        verdict = self._referee(json.dumps(job).encode())
        if "fault" in verdict:
            raise UncodeError(f"these tests cannot be run: {verdict['fault']}.")
        return Judgement(verdict["passed"], _visible(verdict["why"]), verdict["chosen"], time.monotonic() - start)

    def silent(self, script: str, wall: float = 10.0) -> Judgement:
        """Run a script. It passes if it ends in time without output on standard error, which is the released rule.

        Its limit is wall-clock time, so it has normal priority.
        """
        start = time.monotonic()
        pipe = subprocess.PIPE
        with self._process("script", {}, [], stdin=pipe, stdout=pipe, stderr=pipe) as process:
            why = _script_error(process, script.encode(errors="replace"), wall)
        return Judgement(why is None, _visible(why or "nothing on standard error"), 0, time.monotonic() - start)

    def _referee(self, job: bytes) -> dict[str, Any]:
        with contextlib.ExitStack() as stack:
            questions, answers = _pipe(stack), _pipe(stack)
            stack.enter_context(
                self._process(
                    "candidate", {}, _LOW_PRIORITY, stdin=questions[0], stdout=answers[1], stderr=subprocess.DEVNULL
                )
            )
            referee = stack.enter_context(
                self._process(
                    "referee",
                    {"pipe": [answers[0].fileno(), questions[1].fileno()]},
                    _LOW_PRIORITY,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=(answers[0].fileno(), questions[1].fileno()),
                )
            )
            for end in (*questions, *answers):
                end.close()
            try:
                out, err = referee.communicate(job, timeout=self.limits.wall + _GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                return {"passed": False, "why": "the program took too long", "chosen": None}
        if not out.startswith(READY):
            raise UncodeError(f"the referee's jail did not start: {_visible(err.decode(errors='replace'))[-300:]}.")
        try:
            return dict(json.loads(out.removeprefix(READY)))
        except ValueError:
            # A limit has ended the referee itself: a test or a comparison took too much memory or time.
            lines = err.decode(errors="replace").strip().splitlines()
            why = f"the answer could not be compared: {lines[-1] if lines else 'it took too much'}"
            return {"passed": False, "why": _ENDED_BY.get(referee.returncode, why), "chosen": None}

    @contextlib.contextmanager
    def _process(
        self, role: str, settings: dict[str, Any], before: list[str], **streams: Any
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A guest process, which is killed with all its children at the end. `before`: words before its command."""
        command = [*before, *self.jail.command(role, settings | {"limits": dataclasses.asdict(self.limits)})]
        with _folder(self.jail.walled) as folder:
            options = {"stdout": subprocess.DEVNULL, "env": {}, "cwd": folder, "start_new_session": True} | streams
            process: subprocess.Popen[bytes] = subprocess.Popen(command, **options)  # type: ignore[call-overload]
            try:
                yield process
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()
                for stream in (process.stdin, process.stdout, process.stderr):
                    if stream is not None:
                        with contextlib.suppress(BrokenPipeError):
                            stream.close()
                process.wait()


@contextlib.contextmanager
def _folder(walled: bool) -> Iterator[str]:
    """The working folder of a process: the jail's own, or an empty temporary one without a jail."""
    if walled:
        yield "/"
        return
    with tempfile.TemporaryDirectory(prefix="uncode-") as folder:
        yield folder


def _visible(text: str) -> str:
    """The text on one line, without control characters, because a part of it comes from the program."""
    return "".join(c if c.isprintable() else " " for c in text)


def _pipe(stack: contextlib.ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return stack.enter_context(open(reading, "rb", 0)), stack.enter_context(open(writing, "wb", 0))


def _script_error(process: subprocess.Popen[bytes], script: bytes, wall: float) -> str | None:
    """The last line that a script wrote to standard error, or a timeout; None if it ended without output."""
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(script)
        process.stdin.close()
    if process.stdout.readline() != READY:
        complaint = process.stderr.read(2000).decode(errors="replace")
        raise UncodeError(f"the jail did not start: {_visible(complaint)[-300:]}.")
    output, until, poll = b"", time.monotonic() + wall, select.poll()
    poll.register(process.stderr, select.POLLIN)
    while len(output) < 1 << 16 and poll.poll(max(0.0, until - time.monotonic()) * 1000):
        part = os.read(process.stderr.fileno(), 1 << 16)
        if not part:
            break
        output += part
        until = min(until, time.monotonic() + 1.0)  # it has failed; wait one second for the rest of its message
    if output:
        lines = output.decode(errors="replace").strip().splitlines()
        return f"on standard error: {lines[-1][:200] if lines else 'blanks'}"
    try:
        process.wait(max(0.1, until - time.monotonic()))  # it may have closed standard error and continue
    except subprocess.TimeoutExpired:
        return "the script took too long"
    return None
