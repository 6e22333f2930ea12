"""Runs a command line and returns its exit code."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import typer

from ..core.errors import Advice, UncodeError
from .app import app
from .exit_codes import INTERRUPTED
from .usage import explain_usage, with_options
from .verbs.count import with_ray_address

# typer raises click's errors. Newer versions vendor click, so the class is found by its name.
_USAGE_ERROR: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def run(arguments: list[str]) -> int:
    """Run a verb. An error is printed to standard error as one sentence; `--debug`, anywhere, adds its traceback."""
    debug = "--debug" in arguments
    words = with_ray_address([word for word in arguments if word != "--debug"])
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # characters that the terminal lacks are replaced
    warnings.filterwarnings("ignore", message="mkldnn_matmul failed")  # a long warning, on CPUs without half precision
    try:
        _check_encodable(words)
        with _advice_as_notes():
            code = _parser()(words, standalone_mode=False, prog_name="uncode")
        sys.stdout.flush()
    except typer.Abort:
        raise KeyboardInterrupt from None  # older versions of typer
    except BrokenPipeError:
        _discard_output()  # the reader of the pipe has closed it
        return 0
    except Exception as error:
        if debug:
            traceback.print_exc()
        message, code = _explain(error)
        if isinstance(error, OSError) and error.filename is None:
            _discard_output()
        is_help = message.startswith("Usage: ")
        typer.echo(message if is_help else f"uncode: {message}", err=True)
        return code
    if code == INTERRUPTED:
        raise KeyboardInterrupt  # typer has turned it into an exit code
    return code if isinstance(code, int) else 0


@contextlib.contextmanager
def _advice_as_notes() -> Iterator[None]:
    """Print advice of the library as a note of one line, each once."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", Advice)
        usual, shown = warnings.showwarning, set[str]()

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, Advice):
                if str(message) not in shown:
                    typer.echo(f"note: {message}", err=True)
                shown.add(str(message))
            else:
                usual(message, category, *place, **more)

        warnings.showwarning = show
        yield


def _check_encodable(words: list[str]) -> None:
    """Raise for half a surrogate pair, which no path and no text can hold. The parser itself would crash on it."""
    for word in words:
        try:
            os.fsencode(word)
        except UnicodeEncodeError:
            raise UncodeError("an argument is not UTF-8 text: convert it first.") from None


def _discard_output() -> None:
    """Send the rest of standard output to /dev/null. Otherwise Python complains again at exit."""
    with contextlib.suppress(OSError, io.UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@cache
def _parser() -> Any:
    """The parser of all verbs, built once."""
    return typer.main.get_command(app)


def _explain(error: Exception) -> tuple[str, int]:
    """The message and the exit code of an error."""
    if isinstance(error, _USAGE_ERROR):
        return explain_usage(error), 2
    if isinstance(error, UncodeError):
        return with_options(str(error)), 2
    if isinstance(error, MemoryError):
        return "there is not enough memory: use a shorter --length, a smaller --batch or another model.", 2
    if isinstance(error, OSError):
        where = f"the system refused '{error.filename}'" if error.filename else "the output could not be written"
        return f"{where}: {error.strerror or error}.", 2
    message = " ".join(str(error).split()) or "no message"
    if place := _place_outside(error):
        return f"{place} raised {type(error).__name__} ({message[:200].rstrip('.')}): --debug shows its traceback.", 1
    return (
        f"an unexpected {type(error).__name__} ({message[:200].rstrip('.')}): this is a bug in uncode; run the "
        "command again with --debug and report its output.",
        1,
    )


def _place_outside(error: Exception) -> str:
    """The line of a piece from outside the package that raised an error; empty for an error of our own."""
    from importlib.metadata import entry_points

    from ..core.pieces.piece import ENTRY_POINTS

    modules = {entry.module.partition(".")[0] for entry in entry_points(group=ENTRY_POINTS)}
    places = [
        f"'{frame.f_code.co_filename}', line {line},"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").partition(".")[0] in modules
    ]
    return places[-1] if places else ""
