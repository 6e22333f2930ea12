"""Arguments of the public functions: a misspelt or missing one is an error of one sentence, with the near name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from functools import wraps
from operator import index
from typing import Any, ParamSpec, TypeVar

from ..errors import UncodeError, shown, suggest

P = ParamSpec("P")
R = TypeVar("R")
_MISSING = re.compile(r"missing a required (?:[\w-]+ )?argument: '(\w+)'")


class ArgumentError(UncodeError, TypeError):
    """A call that does not fit the signature. It is a TypeError too, as for any function of Python."""


def checks_arguments(
    what: str = "", rest: Iterable[inspect.Parameter] = ()
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: a call that does not fit the signature raises :class:`ArgumentError`.

    `what` names the function in errors. `rest` are the parameters that `**options` stands for; they become part of the
    signature that `inspect` and editors show.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        whole = _expanded(inspect.signature(function), rest)
        name = what or function.__qualname__.removesuffix(".__init__")
        known = [each for each in whole.parameters if each not in ("self", "cls")]

        @wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            for option in options:
                if option not in known:
                    raise ArgumentError(f"{name} has no option '{option}': {suggest(option, known)}")
            try:
                whole.bind(*args, **options)
            except TypeError as error:
                raise ArgumentError(f"{name} {_misfit(str(error))}: it takes {', '.join(known)}.") from None
            return function(*args, **options)

        checked.__signature__ = whole  # type: ignore[attr-defined]
        return checked

    return decorate


def _misfit(error: str) -> str:
    """What is wrong with a call, from what `inspect` says of it."""
    if found := _MISSING.match(error):
        return f"needs a value for {found[1]}"
    return "got too many values without a name" if error.startswith("too many") else f"got a wrong value ({error})"


def _expanded(signature: inspect.Signature, rest: Iterable[inspect.Parameter]) -> inspect.Signature:
    """The signature with the parameters that `**options` stands for, by keyword only."""
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    spread = len(own) < len(signature.parameters)
    added = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in rest] if spread else []
    return signature.replace(parameters=[*own, *added])


def whole_number(value: Any, what: str, least: int = 0, below: int = 2**63) -> int:
    """`value` as an int: Python's, numpy's or a tensor of one; no bool."""
    try:
        found = None if isinstance(value, bool) else index(value)
    except TypeError:
        found = None
    if found is None or not least <= found < below:
        bits = " and of 64 bits" if found is not None and found >= least else ""
        raise UncodeError(f"{what} must be a whole number of at least {least}{bits}, not {shown(value)}.")
    return found
