"""The referee's process: runs the tests, and asks the candidate's process for every call of its functions.

The tests are the benchmark's own and are trusted; the answers are not. They arrive as plain data, within limits of
size and time, and are compared here, where the candidate cannot reach.
"""

from __future__ import annotations

import builtins
import json
import os
import random
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from .candidate import silence
from .confine import drop_rights, hide, limit
from .pipe import Broken, Pipe
from .plain import NotPlain, decode, encode


class CandidateError(Exception):
    """What the candidate raised, where it is no exception of Python's own."""


class Fault(Exception):
    """The tests themselves cannot be run: nobody's answer is judged."""


def main(settings: dict[str, Any]) -> None:
    hide()
    with open(0, "rb", closefd=False) as stream:
        job = json.load(stream)
    result = os.dup(1)
    os.write(result, b"here\n")  # what fails before this is the jail's fault
    silence(0, 1)
    limit(settings["limits"])
    drop_rights()
    warnings.simplefilter("ignore")
    random.seed(0)  # some tests draw their cases: every candidate gets the same
    reading, writing = settings["pipe"]
    limits = settings["limits"]
    pipe = Pipe(reading, writing, limits["answer"], time.monotonic() + limits["wall"])
    with open(result, "w") as out:
        json.dump(judge(job, pipe), out)
    os._exit(0)


def judge(job: dict[str, Any], pipe: Pipe) -> dict[str, Any]:
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
            return {"passed": False, "why": f"the program does not load: {_shown(loaded)}", "chosen": None}
        why = run(job, pipe)
    except Broken as error:
        why = str(error)
    except Fault as error:
        return {"fault": str(error)}
    return {"passed": why is None, "why": why or "all tests passed", "chosen": chosen}


def run(job: dict[str, Any], pipe: Pipe) -> str | None:
    """Run the tests; None, or why the first one failed."""
    space: dict[str, Any] = {"__name__": "tests"}
    try:
        exec(compile(job["setup"], "<setup>", "exec"), space)
    except Exception as error:
        raise Fault(f"the set-up of the tests fails: {type(error).__name__}: {error}") from error
    space |= {name: _asking(pipe, name) for name in job["names"]}
    for number, test in enumerate(job["tests"], 1):
        name = f"<test {number}>"
        try:
            exec(compile(test, name, "exec"), space)
        except (Broken, Fault):
            raise
        except BaseException as error:
            return _failed(error, job["tests"])
    return None


def _asking(pipe: Pipe, name: str) -> Callable[..., Any]:
    """A function that has the candidate's function of that name called, and gives what it gave."""

    def ask(*args: Any, **kwargs: Any) -> Any:
        try:
            pipe.send({"name": name, "args": encode(args), "kwargs": encode(kwargs)})
        except NotPlain as error:  # the arguments are the tests' own, or answers they hand back
            raise Broken(f"it was to be called with {error}") from error
        told = pipe.receive()
        if isinstance(told, dict) and "value" in told:
            try:
                return decode(told["value"])
            except NotPlain as error:
                raise Broken("the program wrote something that is no answer") from error
        raise _raised(told)

    ask.__name__ = name
    return ask


def _raised(told: Any) -> Exception:
    """The exception the candidate says it raised: Python's own by that name, so that tests may expect it."""
    try:
        name, message = (str(part) for part in told["raised"])
    except (KeyError, TypeError, ValueError) as error:
        raise Broken("the program wrote something that is no answer") from error
    kind = getattr(builtins, name, None)
    loops = name in ("StopIteration", "StopAsyncIteration")  # would end a loop of the tests in silence
    if isinstance(kind, type) and issubclass(kind, Exception) and not loops:
        try:
            return kind(message)
        except TypeError:
            pass
    return CandidateError(f"{name}: {message}" if message else name)


def _shown(loaded: Any) -> str:
    try:
        return ": ".join(part for part in loaded["raised"] if part)[:300]
    except (KeyError, TypeError):
        return "it wrote something that is no answer"


def _failed(error: BaseException, tests: list[str]) -> str:
    """The line of the tests that failed, and how."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith("<test ")]
    line = ""
    if frames:
        source = tests[int(frames[-1].filename[6:-1]) - 1].splitlines()
        line = source[(frames[-1].lineno or 1) - 1].strip() if source else ""
    told = "" if isinstance(error, AssertionError) else f" ({type(error).__name__}: {str(error)[:200]})"
    return f"failed: {line[:200]}{told}"


if __name__ == "__main__":
    sys.exit("this is run by uncode.evals.sandbox")
