"""The schema of a trace line: every field with its type, length and range.

:data:`FIELDS` and :data:`OPTIONAL` are the whole schema. A length or a bound may be the name of an earlier field: then
it is the length of that list, or that number. :func:`read_line` checks a line against it and returns its lists as
arrays. Types are checked with `set(map(type, ...))` and ranges on the arrays, so that checks cost little beside parsing
the JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from functools import partial
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
Check = Callable[[Any, str, Sizes], Any]
"""Takes a value, the name of its field and the sizes of earlier fields. Returns the value as a trace needs it, or
raises :class:`Damage`."""
Array = NDArray[Any]


class Damage(Exception):
    """A field that does not fit the schema, why, and what to do."""

    def __init__(self, field: str, problem: str, advice: str = "restore the file or decode again") -> None:
        super().__init__(f"field '{field}' {problem}; {advice}.")


def _text(value: Any, field: str, sizes: Sizes, choices: tuple[str, ...] = ()) -> str:
    """A string, one of `choices` if there are any."""
    if type(value) is not str or (choices and value not in choices):
        raise Damage(field, f"must be {' or '.join(choices) or 'text'}, not {_shown(value)}")
    return value


def _flag(value: Any, field: str, sizes: Sizes) -> bool:
    """True or false."""
    if type(value) is not bool:
        raise Damage(field, f"must be true or false, not {_shown(value)}")
    return value


def _whole(value: Any, field: str, sizes: Sizes, least: int = 0) -> int:
    """A whole number of 64 bits."""
    if type(value) is not int or not least <= value < INT64:
        raise Damage(field, f"must be a whole number {_range(least, INT64)}, not {_shown(value)}")
    sizes[field] = value
    return value


def _version(value: Any, field: str, sizes: Sizes) -> int:
    """The number of this schema."""
    if type(value) is int and value != SCHEMA:
        advice = "read it with the version of uncode that wrote it"
        raise Damage(field, f"is {shown(value)}, and this version of uncode reads schema {SCHEMA}", advice)
    return _whole(value, field, sizes)


def _list(value: Any, field: str, sizes: Sizes, length: Bound | None) -> list[Any]:
    """A list of any items."""
    if type(value) is not list:
        raise Damage(field, f"must be a list, not {_shown(value)}")
    wanted = len(value) if length is None else _sum(length, sizes)
    if len(value) != wanted:
        raise Damage(field, f"has {len(value)} items, expected {wanted}")
    sizes[field] = len(value)
    return value


def _texts(value: Any, field: str, sizes: Sizes, length: Bound) -> list[str]:
    """A list of strings."""
    for at, item in _misfits(_list(value, field, sizes, length), {str}):
        raise Damage(f"{field}[{at}]", f"must be text, not {_shown(item)}")
    return list(value)


def _wholes(
    value: Any, field: str, sizes: Sizes, length: Bound | None = None, least: int = 0, below: Bound = INT64
) -> Array:
    """A list of whole numbers in [least, below); int64 `[n]`."""
    return _int_array(_list(value, field, sizes, length), field, least, _sum(below, sizes))


def _canvas(value: Any, field: str, sizes: Sizes) -> Array:
    """A list of at least one whole number."""
    if value == []:
        raise Damage(field, "is empty")
    return _wholes(value, field, sizes)


def _table(
    value: Any, field: str, sizes: Sizes, length: Bound | None, width: Bound, least: int = 0, below: Bound = INT64
) -> Array:
    """A list of lists of `width` whole numbers in [least, below); int64 `[n, width]`."""
    columns = _sum(width, sizes)
    for at, row in enumerate(_list(value, field, sizes, length)):
        if type(row) is not list:
            raise Damage(f"{field}[{at}]", f"must be a list of {columns} whole numbers, not {_shown(row)}")
        if len(row) != columns:
            raise Damage(f"{field}[{at}]", f"has {len(row)} items, expected {columns}")
    flat = list(chain.from_iterable(value))
    return _int_array(flat, field, least, _sum(below, sizes), columns).reshape(len(value), columns)


def _numbers(value: Any, field: str, sizes: Sizes, length: Bound, below: Bound | None = None) -> Array:
    """A list of finite numbers and nulls; float64 `[n]`, NaN for null. Offsets also lie in [0, below)."""
    for at, item in _misfits(_list(value, field, sizes, length), {float, int, type(None)}):
        raise Damage(f"{field}[{at}]", f"must be a number or null, not {_shown(item)}")
    try:
        found = np.array(value, dtype=np.float64)
    except OverflowError:
        raise Damage(field, "has a number that does not fit into 64 bits") from None
    finite = np.isfinite(found)
    if int(finite.sum()) + value.count(None) != len(value):
        at = next(at for at, item in enumerate(value) if item is not None and not finite[at])
        raise Damage(f"{field}[{at}]", f"must be a finite number or null, not {value[at]}")
    if below is not None:
        end = _sum(below, sizes)
        wrong = finite & ((found < 0) | (found >= end) | (found != np.floor(found)))
        _refuse(wrong, field, f"must be a whole number {_range(0, end)}, not {found[wrong.argmax()]}")
    return found


def _named(value: Any, field: str, sizes: Sizes, each: Check | None = None) -> dict[str, Any]:
    """An object whose values all pass one check; without a check, any data."""
    if type(value) is not dict:
        raise Damage(field, f"must be an object with named values, not {_shown(value)}")
    if each is None:
        check_finite(value, field)
        return value
    return {name: each(item, f"{field}.{name}", sizes) for name, item in value.items()}


def _sampler(value: Any, field: str, sizes: Sizes) -> dict[str, Any]:
    """The data of a sampler with a name. Its pieces are checked where it is made."""
    found = _named(value, field, sizes)
    if "name" not in found:
        raise Damage(f"{field}.name", "is missing")
    _text(found["name"], f"{field}.name", sizes)
    return found


_OVER_OFFSETS = partial(_numbers, length=OFFSETS)

FIELDS: dict[str, Check] = {
    "schema": _version,
    "mask_id": _whole,
    "seed": partial(_whole, least=-INT64),
    "forwards": partial(_whole, least=1),
    "prompt_ids": _wholes,
    "canvas_ids": _canvas,
    "generated_ids": partial(_wholes, length=OFFSETS),
    "commit_step": partial(_wholes, length=OFFSETS, least=FILLED, below=STEPS),
    "logp": _OVER_OFFSETS,
    "entropy": _OVER_OFFSETS,
    "margin": _OVER_OFFSETS,
    "score": _OVER_OFFSETS,
    "runner_up": partial(_numbers, length=OFFSETS, below=OFFSETS),
    "terms": partial(_named, each=_OVER_OFFSETS),
    "committed": partial(_wholes, length=STEPS),
    "mean_entropy": partial(_numbers, length=STEPS),
    "window": partial(_table, length=STEPS, width=2, below=("prompt_ids", OFFSETS, 1)),
    "sampler": _sampler,
    "dtype": _text,
    "special_ids": _wholes,
    "observe": partial(_text, choices=("open", "span")),
    "versions": partial(_named, each=_text),
}
"""What every line has, in the order in which it is checked."""

OPTIONAL: dict[str, Check] = {
    "model": _text,
    "revision": _text,
    "tokenizer": _text,
    "weights": _text,
    "events": partial(_table, length=None, width=3, least=-1),
    "constraint": _named,
    "drafts": partial(_table, length=STEPS, width=OFFSETS, least=-1),
    "probes": partial(_wholes, length=STEPS),
    "prompt_text": _text,
    "generated_text": _text,
    "generated_texts": partial(_texts, length=OFFSETS),
    "event_texts": partial(_texts, length="events"),
    "draft_texts": partial(_named, each=_text),
    "answer_span": partial(_wholes, length=2),
    "correct": _flag,
}
"""What a line may have. Any other field is a note: any data without NaN."""

SHARED = ("dtype", "special_ids", "observe", "model", "revision", "tokenizer", "guidance", "weights")
"""What all lines of one trace have in common."""

OF_ROW = {*FIELDS, *OPTIONAL} - {*SHARED, "schema", "versions", "answer_span", "correct"}
"""Fields that differ from row to row; all others are the header."""


def read_line(data: Any, names: Collection[str] | None = None) -> dict[str, Any]:
    """The fields of a line, lists of numbers as arrays; raises :class:`Damage`.

    With `names` only those are read and checked. Fields whose sizes they need must be among them.
    """
    if type(data) is not dict:
        raise Damage("schema", f"is missing, because the line is {_shown(data)} and not an object")
    sizes: Sizes = {}
    found: dict[str, Any] = {}
    for name, check in (FIELDS | OPTIONAL).items():
        if names is not None and name not in names:
            continue
        if name in FIELDS and name not in data:
            raise Damage(name, "is missing")
        if name in FIELDS or data.get(name) is not None:
            if name == "event_texts" and "events" not in sizes:
                raise Damage("events", "is missing, because there are event_texts")
            found[name] = check(data[name], name, sizes)
        if name == "forwards":
            found[STEPS] = sizes[STEPS] = _steps(data)
    if names is None:
        for name in data.keys() - FIELDS.keys() - OPTIONAL.keys():
            check_finite(data[name], name)
    _check_story(found)
    return found


def _steps(data: dict[str, Any]) -> int:
    """The forwards of a line without its probes."""
    probes = data.get("probes")
    steps: int = data["forwards"] - (0 if probes is None else int(_wholes(probes, "probes", {}).sum()))
    if steps < 1:
        raise Damage("probes", "has as many probes as the row has forwards, or more")
    return steps


def _check_story(row: dict[str, Any]) -> None:
    """The fields that were read must tell one story: what was given, what was written, and when."""
    canvas, generated, steps = row["canvas_ids"], row["generated_ids"], row["commit_step"]
    given = canvas != row["mask_id"]
    _refuse(given & (generated != canvas), "generated_ids", "changes a given token")
    _refuse(generated == row["mask_id"], "generated_ids", "is still masked")
    _refuse((steps == GIVEN) != given, "commit_step", "disagrees with canvas_ids about what was given")
    written = steps[steps >= 0]
    if "events" in row and len(row["events"]):
        at, offset, token = row["events"].T
        _refuse((at < 0) | (at >= row[STEPS]), "events", "is at a step that the row did not take")
        _refuse((offset < 0) | (offset >= len(canvas)), "events", "is at an offset outside the row")
        written = at[token >= 0]
    if "window" in row:
        _refuse(row["window"][:, 0] > row["window"][:, 1], "window", "ends before it starts")
    if "committed" in row:
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


def _int_array(values: list[Any], field: str, least: int, below: int, width: int = 1) -> Array:
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
