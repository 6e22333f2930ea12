"""Runs lm-eval's own command line with our model, our tasks and our sandbox.

lm-eval has no entry points for models, so the model is registered in the process that runs it. Three names of other
packages are replaced while it runs, and restored afterwards: `evaluate.load` and `lm_eval.evaluator.evaluate` (see
`code_eval`), and `lm_eval.tasks.TaskManager`, which finds our task files too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...core.errors import UncodeError, require
from ...util.extras import check_installed
from .requests import NO_CACHE

EXTRA = "lm-eval"


def run(arguments: Sequence[str]) -> None:
    """Run `lm-eval ARGUMENTS...`."""
    check_installed("lm_eval", EXTRA, "`uncode lm-eval`")
    _check_cache(arguments)
    from .tasks import task_files

    with ExitStack() as stack:
        stack.enter_context(_errors_as_sentences())
        stack.enter_context(prepared(stack.enter_context(task_files())))
        stack.enter_context(_argv(["lm-eval", *arguments]))
        from lm_eval.__main__ import cli_evaluate

        cli_evaluate()


@contextmanager
def prepared(tasks: Path) -> Iterator[None]:
    """While this is open, lm-eval knows our model and the task files in a folder, and runs code in our sandbox."""
    import lm_eval.tasks

    from . import model  # noqa: F401  # registers it
    from .code_eval import code_eval_in_sandbox

    manager: Any = lm_eval.tasks.TaskManager

    class OurTaskManager(manager):  # type: ignore[misc]  # lm-eval has no types
        """A task manager that also reads our task files. Files of the user come later, and override ours."""

        def __init__(self, verbosity: str | None = None, include_path: Any = None, *args: Any, **options: Any) -> None:
            theirs = list(include_path) if isinstance(include_path, list | tuple) else [include_path]
            super().__init__(verbosity, [tasks, *filter(None, theirs)], *args, **options)

    with code_eval_in_sandbox():
        lm_eval.tasks.TaskManager = OurTaskManager
        try:
            yield
        finally:
            lm_eval.tasks.TaskManager = manager


def _check_cache(arguments: Sequence[str]) -> None:
    """Refuse lm-eval's response cache for our model, before anything is imported.

    A config file can ask for it too. It is read later, so `UncodeLM.set_cache_hook` refuses it then.
    """
    words = [part for word in arguments for part in word.split("=", 1)]
    ours = any(first in ("--model", "-M") and second == "uncode" for first, second in pairwise(words))
    require(not (ours and any(word == "-c" or word.startswith("--use_c") for word in words)), NO_CACHE)


@contextmanager
def _argv(words: list[str]) -> Iterator[None]:
    """lm-eval reads the words of its command line from sys.argv, and changes them."""
    before = sys.argv
    sys.argv = words
    try:
        yield
    finally:
        sys.argv = before


@contextmanager
def _errors_as_sentences() -> Iterator[None]:
    """An error of lm-eval is one sentence, as ours are; `--debug` shows where it was raised."""
    try:
        yield
    except (UncodeError, BrokenPipeError, MemoryError):
        raise
    except Exception as error:
        message = " ".join(str(error).split())[:500].rstrip(".")
        raise UncodeError(f"lm-eval stopped with {type(error).__name__}: {message}.") from error
