"""Plain data as JSON, and back: what may cross between the candidate and the tests.

A value that arrives is built anew from numbers, strings and containers, so nothing of the sender's classes comes
with it: an object that calls itself equal to everything is, on this side, a `NoPlainData` that equals nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

MOST_ITEMS = 200_000
"""Of one message, over all its containers."""


class NotPlain(ValueError):
    """A value, or a message, that is not plain data."""


class NoPlainData:
    """Stands for an object that may not cross, such as a match: true or false, and equal to nothing else."""

    def __init__(self, name: str, truth: bool) -> None:
        self.name, self.truth = name, truth

    def __bool__(self) -> bool:
        return self.truth

    def __repr__(self) -> str:
        return f"<{self.name}>"


def encode(value: Any) -> Any:
    """A value as JSON: scalars as they are, the rest as {tag: contents}."""
    return _Encoder().encode(value)


class _Encoder:
    def __init__(self) -> None:
        self.left = MOST_ITEMS

    def encode(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, str)):
            return value if value is None or isinstance(value, bool) else str.__str__(value)
        if isinstance(value, int):
            number = int(value)
            return number if abs(number) < 1 << 53 else {"int": hex(number)}
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"float": repr(float(value))}
        if isinstance(value, list):
            return self._all(value)
        if isinstance(value, dict):
            return {"dict": [[self.encode(k), self.encode(v)] for k, v in self._counted(value.items())]}
        for kind, tag in _SERIES:
            if isinstance(value, kind):
                return {tag: self._all(value)}
        if isinstance(value, (bytes, bytearray)):
            return {"bytes": bytes(value).hex()}
        if isinstance(value, range):
            return {"range": [self.encode(n) for n in (value.start, value.stop, value.step)]}
        if isinstance(value, complex):
            return {"complex": [self.encode(value.real), self.encode(value.imag)]}
        if isinstance(value, (Decimal, Fraction)):
            return {type(value).__name__.lower(): str(value)}
        if isinstance(value, Iterator):
            return {"iterator": self._all(value)}
        return {"opaque": [type(value).__name__, bool(value)]}

    def _all(self, values: Any) -> list[Any]:
        return [self.encode(v) for v in self._counted(values)]

    def _counted(self, values: Any) -> Any:
        for value in values:
            self.left -= 1
            if self.left < 0:
                raise NotPlain(f"a value of more than {MOST_ITEMS} items")
            yield value


_SERIES: tuple[tuple[Any, str], ...] = (
    (tuple, "tuple"),
    (set, "set"),
    (frozenset, "frozenset"),
    (deque, "deque"),
    (type({}.keys()), "set"),
)

_MADE_OF_TEXT: dict[str, Any] = {
    "int": lambda text: int(text, 16),
    "float": lambda text: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text],
    "bytes": bytes.fromhex,
    "decimal": Decimal,
    "fraction": Fraction,
    "opaque": lambda told: NoPlainData(str(told[0]), bool(told[1])),
}
_MADE_OF_ITEMS: dict[str, Any] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": deque,
    "range": lambda numbers: range(*numbers),
    "complex": lambda parts: complex(*parts),
    "iterator": iter,
    "dict": dict,
}


def decode(told: Any) -> Any:
    """The value that `encode` told of; anything else is an error."""
    try:
        return _Decoder().decode(told)
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise NotPlain("a message that is no plain data") from error


class _Decoder:
    def __init__(self) -> None:
        self.left = 2 * MOST_ITEMS  # a dictionary's keys and values are counted one by one here

    def decode(self, told: Any) -> Any:
        if told is None or isinstance(told, (bool, int, float, str)):
            return told
        if isinstance(told, list):
            self.left -= len(told)
            if self.left < 0:
                raise NotPlain("a message of too many items")
            return [self.decode(item) for item in told]
        ((tag, contents),) = told.items()
        if tag in _MADE_OF_TEXT:
            return _MADE_OF_TEXT[tag](contents)
        return _MADE_OF_ITEMS[tag](self.decode(contents))
