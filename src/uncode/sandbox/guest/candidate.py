"""The candidate's process: it loads a program and answers calls of its functions with plain data.

Nothing in this process is secret or trusted. A program may rewrite this module at run time; it can still only send
plain data.
"""

from __future__ import annotations

import ast
import os
import signal
import sys
import types
import warnings

from .confine import confine
from .pipe import Broken, Pipe, silence
from .plain import decode, encode

TYPE_CHECKING = False  # importing typing would take a tenth of the start of a guest
if TYPE_CHECKING:
    from typing import Any


def main(settings: dict[str, Any]) -> None:
    pipe = Pipe(os.dup(0), os.dup(1), settings["limits"]["answer"])
    silence(0, 1, 2)
    confine(settings["limits"], settings["own_files"])
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGXCPU, _too_long)
    try:
        pipe.send("here")  # errors before this message are the jail's, errors after it the program's
        serve(pipe)
    except Broken:  # the referee has closed the pipe
        os._exit(0)


class TimeLimit(BaseException):
    """The CPU time is used up. One second later the kernel kills the process."""


def _too_long(*_: object) -> None:
    raise TimeLimit


def serve(pipe: Pipe) -> None:
    job = pipe.receive()
    space: dict[str, Any] = {}
    try:
        chosen, space = load(job["programs"], job["names"])
        pipe.send({"loaded": chosen})
    except BaseException as error:
        pipe.send({"raised": _described(error)})
    while True:
        call = pipe.receive()
        try:
            result = space[call["name"]](*decode(call["args"]), **decode(call["kwargs"]))
            answer = {"value": encode(result)}
        except BaseException as error:
            answer = {"raised": _described(error)}
        pipe.send(answer)


def load(programs: list[str], names: list[str]) -> tuple[int, dict[str, Any]]:
    """Run the first program that is Python, defines the functions and does not fail. Else raise the first error.

    A program that calls `sys.exit` ends the search; no other program is tried.
    """
    fault: Exception | None = None
    for number, source in enumerate(programs):
        try:
            tree = ast.parse(source)
            if names and not _defines(tree, names):
                raise NameError(f"no function named {' or '.join(names)}")
            module = types.ModuleType("solution")
            sys.modules["solution"] = module
            exec(
                compile(source, "<solution>", "exec", dont_inherit=True), module.__dict__
            )  # safe here, because this process is the jail
            return number, module.__dict__
        except (Exception, RecursionError, MemoryError) as error:
            fault = fault or error
    raise fault or NameError(f"no function named {' or '.join(names)}")


def _defines(tree: ast.Module, names: list[str]) -> bool:
    """Whether the names are bound at the top level, including in an `if` or a `try`. Methods do not count."""
    found: set[str] = set()
    open_nodes: list[ast.AST] = list(tree.body)
    for node in open_nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
        else:
            open_nodes += ast.iter_child_nodes(node)
    return found.issuperset(names)


def _described(error: BaseException) -> list[str]:
    try:
        return [type(error).__name__, str(error)[:500]]
    except BaseException:
        return ["Exception", ""]
