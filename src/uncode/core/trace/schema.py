"""The schema of a trace line: every field with its type, length and range.

:data:`FIELDS` is the whole schema. A length or a bound may be the name of an earlier field: then it is the length of
that list, or that number. :func:`read_row` checks a line against it and returns its lists as arrays. Types are
checked with `set(map(type, ...))` and ranges on the arrays, so that checks cost little beside parsing the JSON.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import shown
from .row_record import FILLED, GIVEN

SCHEMA = 1
INT64 = 2**63
OFFSETS = "canvas_ids"
"""Lists over offsets are as long as this field."""
STEPS = "steps"
"""Lists over steps are as long as the forwards of the row without its probes."""
FLOATS = ("logp", "entropy", "margin", "score", "runner_up")

Bound = int | str | tuple[int | str, ...]
"""A number, the size of an earlier field, or a sum of these."""
Sizes = dict[str, int]
Array = NDArray[Any]


RESTORE = "restore the file or decode again"


class Damage(Exception):
    """A field that does not fit the schema, why, and what to do."""

    def __init__(self, field: str, problem: str, advice: str = RESTORE) -> None:
        super().__init__(f"field '{field}' {problem}; {advice}.")


@dataclass(frozen=True)
class Check:
    """What a field must be. `read` returns it in the form that a trace needs, or raises :class:`Damage`."""

    def read(self, value: Any, field: str, sizes: Sizes) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Text(Check):
    """A string, one of `choices` if there are any."""

    choices: tuple[str, ...] = ()

    def read(self, value: Any, field: str, sizes: Sizes) -> str:
        if type(value) is not str or (self.choices and value not in self.choices):
            raise Damage(field, f"must be {' or '.join(self.choices) or 'text'}, not {_shown(value)}")
        return value


@dataclass(frozen=True)
class Flag(Check):
    """True or false."""

    def read(self, value: Any, field: str, sizes: Sizes) -> bool:
        if type(value) is not bool:
            raise Damage(field, f"must be true or false, not {_shown(value)}")
        return value


@dataclass(frozen=True)
class Whole(Check):
    """A whole number in [least, below)."""

    least: int = 0
    below: int = INT64

    def read(self, value: Any, field: str, sizes: Sizes) -> int:
        if type(value) is not int or not self.least <= value < self.below:
            raise Damage(field, f"must be a whole number {_range(self.least, self.below)}, not {_shown(value)}")
        sizes[field] = value
        return value


@dataclass(frozen=True)
class Version(Check):
    """The number of this schema."""

    def read(self, value: Any, field: str, sizes: Sizes) -> int:
        if type(value) is int and value != SCHEMA:
            advice = "read it with the version of uncode that wrote it"
            raise Damage(field, f"is {shown(value)}, and this version of uncode reads schema {SCHEMA}", advice)
        return Whole().read(value, field, sizes)


@dataclass(frozen=True)
class Items(Check):
    """A list of `length` items; any number of them where `length` is None."""

    length: Bound | None = None

    def check_length(self, value: Any, field: str, sizes: Sizes) -> None:
        if type(value) is not list:
            raise Damage(field, f"must be a list, not {_shown(value)}")
        wanted = len(value) if self.length is None else _sum(self.length, sizes)
        if len(value) != wanted:
            raise Damage(field, f"has {len(value)} items, expected {wanted}")
        sizes[field] = len(value)


@dataclass(frozen=True)
class Wholes(Items):
    """A list of whole numbers in [least, below); int64 `[n]`."""

    least: int = 0
    below: Bound = INT64
    empty: bool = True

    def read(self, value: Any, field: str, sizes: Sizes) -> Array:
        self.check_length(value, field, sizes)
        if not value and not self.empty:
            raise Damage(field, "is empty")
        return _wholes(value, field, self.least, _sum(self.below, sizes))


@dataclass(frozen=True)
class IntTable(Items):
    """A list of lists of `width` whole numbers in [least, below); int64 `[n, width]`."""

    width: Bound = 2
    least: int = 0
    below: Bound = INT64

    def read(self, value: Any, field: str, sizes: Sizes) -> Array:
        self.check_length(value, field, sizes)
        width = _sum(self.width, sizes)
        for at, row in _misfits(value, {list}):
            raise Damage(f"{field}[{at}]", f"must be a list of {width} whole numbers, not {_shown(row)}")
        if set(map(len, value)) - {width}:
            at = next(at for at, row in enumerate(value) if len(row) != width)
            raise Damage(f"{field}[{at}]", f"has {len(value[at])} items, expected {width}")
        flat = list(chain.from_iterable(value))
        return _wholes(flat, field, self.least, _sum(self.below, sizes), width).reshape(len(value), width)


@dataclass(frozen=True)
class Numbers(Items):
    """A list of finite numbers and nulls; float64 `[n]`, NaN for null. Offsets also lie in [0, below)."""

    below: Bound | None = None

    def read(self, value: Any, field: str, sizes: Sizes) -> Array:
        self.check_length(value, field, sizes)
        for at, item in _misfits(value, {float, int, type(None)}):
            raise Damage(f"{field}[{at}]", f"must be a number or null, not {_shown(item)}")
        try:
            found = np.array(value, dtype=np.float64)
        except OverflowError:
            raise Damage(field, "has a number that does not fit into 64 bits") from None
        finite = np.isfinite(found)
        if int(finite.sum()) + value.count(None) != len(value):
            at = next(at for at, item in enumerate(value) if item is not None and not finite[at])
            raise Damage(f"{field}[{at}]", f"must be a finite number or null, not {value[at]}")
        if self.below is not None:
            below = _sum(self.below, sizes)
            wrong = finite & ((found < 0) | (found >= below) | (found != np.floor(found)))
            if wrong.any():
                at = int(wrong.argmax())
                raise Damage(f"{field}[{at}]", f"must be a whole number {_range(0, below)}, not {found[at]}")
        return found


@dataclass(frozen=True)
class Texts(Items):
    """A list of strings."""

    def read(self, value: Any, field: str, sizes: Sizes) -> list[str]:
        self.check_length(value, field, sizes)
        for at, item in _misfits(value, {str}):
            raise Damage(f"{field}[{at}]", f"must be text, not {_shown(item)}")
        return list(value)


@dataclass(frozen=True)
class Named(Check):
    """An object whose values all pass one check; without a check, any data."""

    each: Check | None = None

    def read(self, value: Any, field: str, sizes: Sizes) -> dict[str, Any]:
        if type(value) is not dict:
            raise Damage(field, f"must be an object with named values, not {_shown(value)}")
        if self.each is None:
            check_finite(value, field)
            return value
        return {name: self.each.read(item, f"{field}.{name}", sizes) for name, item in value.items()}


FIELDS: dict[str, Check] = {
    "schema": Version(),
    "mask_id": Whole(),
    "seed": Whole(-INT64),
    "forwards": Whole(1),
    "prompt_ids": Wholes(),
    "canvas_ids": Wholes(empty=False),
    "generated_ids": Wholes(OFFSETS),
    "commit_step": Wholes(OFFSETS, FILLED, STEPS),
    "logp": Numbers(OFFSETS),
    "entropy": Numbers(OFFSETS),
    "margin": Numbers(OFFSETS),
    "score": Numbers(OFFSETS),
    "runner_up": Numbers(OFFSETS, OFFSETS),
    "terms": Named(Numbers(OFFSETS)),
    "committed": Wholes(STEPS),
    "mean_entropy": Numbers(STEPS),
    "window": IntTable(STEPS, 2, 0, ("prompt_ids", OFFSETS, 1)),
    "sampler": Named(),
    "dtype": Text(),
    "special_ids": Wholes(),
    "observe": Text(("open", "span")),
    "versions": Named(Text()),
}
"""What every line has, in the order in which it is checked."""

OPTIONAL: dict[str, Check] = {
    "model": Text(),
    "revision": Text(),
    "tokenizer": Text(),
    "events": IntTable(None, 3, -1),
    "drafts": IntTable(STEPS, OFFSETS, -1),
    "probes": Wholes(STEPS),
    "prompt_text": Text(),
    "generated_text": Text(),
    "generated_texts": Texts(OFFSETS),
    "event_texts": Texts("events"),
    "draft_texts": Named(Text()),
    "answer_span": Wholes(2),
    "correct": Flag(),
}
"""What a line may have. Any other field is a note: any data without NaN."""

SHARED = ("dtype", "special_ids", "observe", "model", "revision", "tokenizer", "guidance")
"""What all lines of one trace have in common."""

OF_ROW = frozenset(FIELDS) - {"schema", "dtype", "special_ids", "observe", "versions"} | frozenset(
    {"events", "drafts", "probes", "prompt_text", "generated_text", "generated_texts", "event_texts", "draft_texts"}
)
"""Fields that differ from row to row; all others are the header."""


def read_row(data: Any) -> dict[str, Any]:
    """The fields of a line, lists of numbers as arrays; raises :class:`Damage`."""
    if type(data) is not dict:
        raise Damage("schema", f"is missing, because the line is {_shown(data)} and not an object")
    sizes: Sizes = {}
    found = {}
    for name, check in FIELDS.items():
        if name not in data:
            raise Damage(name, "is missing")
        found[name] = check.read(data[name], name, sizes)
        if name == "forwards":
            found[STEPS] = sizes[STEPS] = _steps(data)
    for name in data:
        if name in OPTIONAL and data[name] is not None:
            if name == "event_texts" and "events" not in sizes:
                raise Damage("events", "is missing, because there are event_texts")
            found[name] = OPTIONAL[name].read(data[name], name, sizes)
        elif name not in FIELDS:
            check_finite(data[name], name)
    _check_commits(found)
    return found


def read_fields(data: Any, names: Collection[str]) -> dict[str, Any]:
    """Some fields of a line, each checked as in :func:`read_row`. Fields whose sizes they need must be among them."""
    if type(data) is not dict:
        raise Damage("schema", f"is missing, because the line is {_shown(data)} and not an object")
    sizes: Sizes = {}
    found = {}
    for name, check in (FIELDS | OPTIONAL).items():
        if name in names and data.get(name) is not None:
            found[name] = check.read(data[name], name, sizes)
            if name == "forwards":
                found[STEPS] = sizes[STEPS] = _steps(data)
        elif name in names and name in FIELDS:
            raise Damage(name, "is missing")
    _check_tokens(found)
    return found


def _steps(data: dict[str, Any]) -> int:
    """The forwards of a line without its probes."""
    probes = data.get("probes")
    steps: int = data["forwards"] - (0 if probes is None else int(Wholes().read(probes, "probes", {}).sum()))
    if steps < 1:
        raise Damage("probes", "has as many probes as the row has forwards, or more")
    return steps


def _check_tokens(row: dict[str, Any]) -> None:
    """What was given stays, and every mask is filled."""
    canvas, generated, steps = row["canvas_ids"], row["generated_ids"], row["commit_step"]
    given = canvas != row["mask_id"]
    _refuse(given & (generated != canvas), "generated_ids", "changes a given token")
    _refuse(generated == row["mask_id"], "generated_ids", "is still masked")
    _refuse((steps == GIVEN) != given, "commit_step", "disagrees with canvas_ids about what was given")


def _check_commits(row: dict[str, Any]) -> None:
    """The fields must tell one story: what was given, what was written, and when."""
    _check_tokens(row)
    canvas, steps = row["canvas_ids"], row["commit_step"]
    _refuse(row["window"][:, 0] > row["window"][:, 1], "window", "ends before it starts")
    written = steps[steps >= 0]
    if "events" in row and len(row["events"]):
        at, offset, token = row["events"].T
        _refuse((at < 0) | (at >= row[STEPS]), "events", "is at a step that the row did not take")
        _refuse((offset < 0) | (offset >= len(canvas)), "events", "is at an offset outside the row")
        written = at[token >= 0]
    counts = np.bincount(written, minlength=row[STEPS])
    _refuse(counts != row["committed"], "committed", "disagrees with commit_step or events")


def _refuse(wrong: NDArray[np.bool_], field: str, problem: str) -> None:
    if wrong.any():
        raise Damage(f"{field}[{int(wrong.argmax())}]", problem)


def check_finite(value: Any, field: str) -> None:
    """Raise if data holds NaN or infinity, which Python's parser accepts and JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        raise Damage(field, f"must be a finite number, not {value}")
    if isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else ((str(at), item) for at, item in enumerate(value))
        for name, item in inside:
            check_finite(item, f"{field}.{name}")


def _wholes(values: list[Any], field: str, least: int, below: int, width: int = 1) -> Array:
    """A list of whole numbers as an array. `width` is that of a table's rows, to name the right one."""
    wrong = next(_misfits(values, {int}), None)
    try:
        found = np.array(values if wrong is None else [], dtype=np.int64)
    except OverflowError:
        wrong = next((at, item) for at, item in enumerate(values) if not -INT64 <= item < INT64)
    else:
        if wrong is None and len(found) and not least <= found.min() <= found.max() < below:
            at = int(((found < least) | (found >= below)).argmax())
            wrong = at, values[at]
    if wrong is not None:
        at, item = wrong
        raise Damage(f"{field}[{at // width}]", f"must be a whole number {_range(least, below)}, not {_shown(item)}")
    return found


def _misfits(values: list[Any], kinds: set[type]) -> Iterator[tuple[int, Any]]:
    """Items of another type, with their indices. One pass in C where there are none."""
    if set(map(type, values)) <= kinds:
        return iter(())
    return ((at, item) for at, item in enumerate(values) if type(item) not in kinds)


def _sum(bound: Bound, sizes: Sizes) -> int:
    if isinstance(bound, tuple):
        return sum(_sum(part, sizes) for part in bound)
    return bound if isinstance(bound, int) else sizes[bound]


def _range(least: int, below: int) -> str:
    if below == INT64:
        return f"of at least {least}" if least > -INT64 else "of 64 bits"
    return f"from {least} to {below - 1}"


def _shown(value: Any) -> str:
    """A value in an error, in JSON's words."""
    names = {type(None): "null", dict: "an object", list: "a list", bool: str(value).lower()}
    return names[type(value)] if type(value) in names else shown(value)
