"""The referee's process: it runs the tests and forwards their function calls to the candidate's process.

The tests come from the benchmark and are trusted; returned values are not. They arrive as plain data, with limits of
size and time, and are compared in this process, which the candidate cannot reach.
"""

from __future__ import annotations

import builtins
import ctypes
import itertools
import json
import os
import random
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from types import CodeType

from .confine import drop_rights, hide, limit
from .pipe import Broken, Pipe, silence
from .plain import NotPlain, decode, encode

TYPE_CHECKING = False  # importing typing would take a tenth of the start of a guest
if TYPE_CHECKING:
    from typing import Any

OWN_LIMITS = {"memory": 1 << 30, "files": 64}
"""The referee's limits, independent of the candidate's, because it only compares."""
MIN_CPU_SECONDS = 5
"""The referee's minimum CPU time, even if the candidate has less."""
VERDICT_SECONDS = 0.5
"""Time after the wall-clock limit for the referee to report it."""


class CandidateError(Exception):
    """An exception of the candidate that is not built into Python."""


class Fault(Exception):
    """The tests themselves cannot be run, so there is no verdict."""


def main(settings: dict[str, Any]) -> None:
    hide()
    with open(0, "rb", closefd=False) as stream:
        job = json.load(stream)
    result = os.dup(1)
    os.write(result, b"here\n")  # errors before this message are the jail's
    silence(0, 1)
    limits = settings["limits"]
    limit(limits | OWN_LIMITS | {"cpu": max(limits["cpu"], MIN_CPU_SECONDS)})
    end_at_once(signal.SIGXCPU, signal.SIGALRM)
    signal.setitimer(signal.ITIMER_REAL, limits["wall"] + VERDICT_SECONDS)
    drop_rights()
    warnings.simplefilter("ignore")
    random.seed(0)  # some tests draw random cases; every candidate gets the same ones
    reading, writing = settings["pipe"]
    pipe = Pipe(reading, writing, limits["answer"], time.monotonic() + limits["wall"])
    with open(result, "w") as out:
        json.dump(judge(job, pipe), out)
    os._exit(0)


def end_at_once(*signals: int) -> None:
    """End the process at these signals, with the number of the signal as its exit code.

    A Python handler would run only after a comparison returns to the interpreter, which may take hours for a set of bad
    keys. The kernel ignores the default action for the first process of a namespace, which the referee is. So the
    handler is the C library's `_exit`, which receives the number of the signal.
    """
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    for number in signals:
        libc.signal(number, ctypes.cast(libc._exit, ctypes.c_void_p))


def judge(job: dict[str, Any], pipe: Pipe) -> dict[str, object]:
    chosen: int | None = None
    try:
        if pipe.receive() != "here":
            return {"fault": "the jail did not start"}
    except Broken:
        return {"fault": "the jail did not start"}
    try:
        pipe.send({"programs": job["programs"], "names": job["names"]})
        loaded = pipe.receive()
        chosen = loaded.get("loaded") if isinstance(loaded, dict) else None
        if type(chosen) is not int or not 0 <= chosen < len(job["programs"]):
            return {"passed": False, "why": f"the program does not load: {_load_error(loaded)}", "chosen": None}
        why = run(job, pipe)
    except Broken as error:
        why = str(error)
    except Fault as error:
        return {"fault": str(error)}
    return {"passed": why is None, "why": why or "all tests passed", "chosen": chosen}


def run(job: dict[str, Any], pipe: Pipe) -> str | None:
    """Run the tests. Returns None, or why the first failing test failed."""
    space: dict[str, Any] = {"__name__": "tests"}
    try:
        exec(compile(job["setup"], "<setup>", "exec", dont_inherit=True), space)
    except Exception as error:
        raise Fault(f"the set-up of the tests fails: {type(error).__name__}: {error}") from error
    candidate = RemoteFunctions(pipe)
    space |= {name: candidate.function(name) for name in job["names"]}
    for code in _compiled(job["tests"]):
        try:
            exec(code, space)
        except (Broken, Fault):
            raise
        except BaseException as error:
            if isinstance(error, (NameError, ImportError)) and error is not candidate.raised:
                raise Fault(f"a test fails by itself: {type(error).__name__}: {error}") from error
            return _failed(error, job["tests"], candidate)
    return None


def _compiled(tests: list[str]) -> list[CodeType]:
    try:
        names = (f"<test {number}>" for number in itertools.count(1))
        return [compile(test, name, "exec", dont_inherit=True) for test, name in zip(tests, names, strict=False)]
    except SyntaxError as error:
        raise Fault(f"a test is no Python: {error}") from error


class RemoteFunctions:
    """Proxies of the candidate's functions for the tests, with the result of the last call."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.returned = ""
        self.raised: Exception | None = None

    def function(self, name: str) -> Callable[..., object]:
        """A proxy that calls the candidate's function of that name and returns its result."""

        def proxy(*args: object, **kwargs: object) -> object:
            return self.call(name, args, kwargs)

        proxy.__name__ = name
        return proxy

    def call(self, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        try:
            self.pipe.send({"name": name, "args": encode(args), "kwargs": encode(kwargs)})
        except NotPlain as error:  # the arguments come from the tests, or are earlier results
            raise Broken(f"it was to be called with {error}") from error
        reply = self.pipe.receive()
        if isinstance(reply, dict) and "value" in reply:
            try:
                value = decode(reply["value"])
            except NotPlain as error:
                raise Broken("the program wrote something that is no answer") from error
            self.returned = f", and it returned {_brief(value)}"
            return value
        self.returned = ""
        self.raised = _raised(reply)
        raise self.raised


def _brief(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # too many digits, or a list nested too deeply
        return f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _raised(reply: Any) -> Exception:
    """The exception that the candidate raised. Built-in exceptions keep their class, because tests may expect it."""
    try:
        name, message = (str(part) for part in reply["raised"])
    except (KeyError, TypeError, ValueError) as error:
        raise Broken("the program wrote something that is no answer") from error
    kind = vars(builtins).get(name)
    loops = name in ("StopIteration", "StopAsyncIteration")  # would silently end a loop of the tests
    if isinstance(kind, type) and issubclass(kind, Exception) and not loops:
        try:
            return kind(message)
        except TypeError:
            pass
    return CandidateError(f"{name}: {message}" if message else name)


def _load_error(loaded: Any) -> str:
    try:
        return ": ".join(part for part in loaded["raised"] if part)[:300]
    except (KeyError, TypeError):
        return "it wrote something that is no answer"


def _failed(error: BaseException, tests: list[str], candidate: RemoteFunctions) -> str:
    """The line of the tests that failed, and the error."""
    line = ""
    for number, line_number in _test_lines(error):  # the last one is where the error was raised
        source = tests[number - 1].splitlines()
        line = source[line_number - 1].strip() if source else ""
    if error is candidate.raised:
        return f"failed: {line[:200]}, and it raised {_error_text(error)}"
    reason = "" if isinstance(error, AssertionError) else f" ({_error_text(error)})"
    return f"failed: {line[:200]}{candidate.returned}{reason}"


def _test_lines(error: BaseException) -> Iterator[tuple[int, int]]:
    """The test and its line, both from one, of every frame of the error's traceback that is in a test.

    Without the module `traceback`, whose import would be a twentieth of a verdict.
    """
    frame = error.__traceback__
    while frame is not None:
        name = frame.tb_frame.f_code.co_filename
        if name.startswith("<test "):
            yield int(name[6:-1]), frame.tb_lineno or 1
        frame = frame.tb_next


def _error_text(error: BaseException) -> str:
    if isinstance(error, CandidateError):
        return str(error)[:200]
    return f"{type(error).__name__}: {str(error)[:200]}"
