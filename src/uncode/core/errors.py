"""The errors a user can cause, each one sentence that says what was wrong and what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


class UncodeError(Exception):
    """An error that the caller can fix. The command line prints it as one sentence."""


class Advice(UserWarning):
    """Something works otherwise than the caller may expect. The command line prints it as a note of one line."""


class SettingError(UncodeError):
    """A setting that cannot be read; `path` leads to it from the top of the data."""

    def __init__(self, message: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.path = path


class OptionError(UncodeError):
    """A sampler has no such option, or the option cannot have that value."""

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option
        """The name of the option."""


class NoSuchName(UncodeError, AttributeError):
    """A name that a module does not have. It is an AttributeError too, as for any module of Python."""

    def __init__(self, module: str, name: str, known: Iterable[str]) -> None:
        near = nearest(name, known)
        super().__init__(f"{module} has no '{name}'" + (f": did you mean '{near}'?" if near else "."))


class RowError(UncodeError):
    """A row cannot be decoded; the other rows of its batch could be."""

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row
        """The id of the row; None where no single row is to blame."""


class Stalled(RowError):
    """Decoding can make no further progress; the message names the piece that refuses."""


class BadLogits(RowError):
    """The model returned logits that no sampler can use; the message names the model."""


def require(condition: bool, message: str) -> None:
    """Raise :class:`UncodeError` with `message` unless `condition` holds."""
    if not condition:
        raise UncodeError(message)


def check_probability(value: float, name: str) -> None:
    """Raise :class:`UncodeError` unless `value` lies in (0, 1]."""
    require(0 < value <= 1, f"{name} is a probability, so it must be in (0, 1], not {value}.")


MAX_LISTED = 16
"""Names that an error lists; of more, it lists the nearest."""


def suggest(name: str, known: Iterable[str]) -> str:
    """A clause to end an error with: the near name if there is one, else all of them, or the nearest of many."""
    names = sorted(known)
    near = nearest(name, names)
    if near is not None:
        return f"did you mean '{near}'?"
    if len(names) <= MAX_LISTED:
        return f"known: {', '.join(names)}."
    return f"the nearest of {len(names)} are {', '.join(difflib.get_close_matches(name, names, n=3, cutoff=0.0))}."


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant: spelt nearly so, in any case, or with `name` as one of its words."""
    by_lower = {one.lower(): one for one in sorted(known, reverse=True)}
    near = difflib.get_close_matches(name.lower(), sorted(by_lower), n=1, cutoff=0.7)
    near += [one for one in sorted(by_lower) if name.lower() in re.split(r"[_.\-]", one)]
    return by_lower[near[0]] if near else None


def shown(value: object) -> str:
    """A value for an error message: its repr on one line, at most 60 characters."""
    if isinstance(value, int) and abs(value) >= 2**64:
        return f"a number of {value.bit_length()} bits"  # Python refuses to print thousands of digits
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
