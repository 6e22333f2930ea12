"""Plain data as JSON and back. Only plain data passes between the candidate and the tests.

A received value is rebuilt from numbers, strings and containers, without the sender's classes. An object that claims to
equal everything arrives as a `NoPlainData`, which equals nothing.

Values are bounded before they are built, because a few bytes can cause much work: a fraction written `1e99999999`, a
range of 10^18 numbers, a set of integers with equal hashes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import groupby

TYPE_CHECKING = False  # importing typing would take a tenth of the start of a guest
if TYPE_CHECKING:
    from typing import Any

MAX_ITEMS = 200_000
"""The items of one message, in all its containers."""
MAX_INT_BITS = 1 << 20
"""The bits of an integer, about 315,000 digits."""
MAX_FRACTION_BITS = 1 << 16
"""The bits of a fraction's numerator and denominator, and of a decimal. Reducing a fraction takes quadratic time."""
MAX_EXPONENT = 10_000
"""The exponent of a decimal. As an integer it would have as many digits."""
MAX_COLLISIONS = 1_000_000
"""Pairs of keys with equal hashes, in all sets and dictionaries of a message. Each such pair is compared."""


class NotPlain(ValueError):
    """A value or a message is not plain data."""


class NoPlainData:
    """A placeholder for an object that cannot be sent, such as a match. It is true or false, and equals only itself."""

    def __init__(self, name: str, truth: bool) -> None:
        self.name, self.truth = name, truth

    def __bool__(self) -> bool:
        return self.truth

    def __repr__(self) -> str:
        return f"<{self.name}>"


def encode(value: object) -> object:
    """A value as JSON: scalars unchanged, other values as {tag: contents}."""
    return _Encoder().encode(value)


class _Encoder:
    def __init__(self) -> None:
        self.left = MAX_ITEMS

    def encode(self, value: object) -> object:
        if value is None or isinstance(value, (bool, str)):
            return value if value is None or isinstance(value, bool) else str.__str__(value)
        if isinstance(value, int):
            number = int(value)
            return number if abs(number) < 1 << 53 else {"int": _hex(number, MAX_INT_BITS)}
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
            return {"range": [self.encode(n) for n in (value.start, value.stop, _bounded(value).step)]}
        if isinstance(value, complex):
            return {"complex": [self.encode(value.real), self.encode(value.imag)]}
        if isinstance(value, Fraction):
            return {"fraction": [_hex(part, MAX_FRACTION_BITS) for part in (value.numerator, value.denominator)]}
        if isinstance(value, Decimal):
            return {"decimal": str(_bounded_decimal(value))}
        if isinstance(value, Iterator):
            return {"iterator": self._all(value)}
        return {"opaque": [type(value).__name__, bool(value)]}

    def _all(self, values: Iterable[object]) -> list[object]:
        return [self.encode(v) for v in self._counted(values)]

    def _counted(self, values: Any) -> Any:
        for value in values:
            self.left -= 1
            if self.left < 0:
                raise NotPlain(f"a value of more than {MAX_ITEMS} items")
            yield value


_SERIES: tuple[tuple[Any, str], ...] = (
    (tuple, "tuple"),
    (set, "set"),
    (frozenset, "frozenset"),
    (deque, "deque"),
    (type({}.keys()), "set"),
)


def _hex(number: int, most: int) -> str:
    if number.bit_length() > most:
        raise NotPlain(f"a number of more than {most:,} bits")
    return hex(number)


def _unhex(text: str, most: int) -> int:
    if len(text) > most // 4 + len("-0x"):
        raise NotPlain(f"a number of more than {most:,} bits")
    return int(text, 16)


def _bounded(numbers: range) -> range:
    if numbers[MAX_ITEMS:]:
        raise NotPlain(f"a range of more than {MAX_ITEMS} items")
    return numbers


def _bounded_decimal(number: Decimal) -> Decimal:
    if number.is_finite() and abs(number.adjusted()) > MAX_EXPONENT:
        raise NotPlain(f"a decimal with an exponent above {MAX_EXPONENT:,}")
    return number


def _decimal(text: str) -> Decimal:
    if len(text) > MAX_FRACTION_BITS // 4:
        raise NotPlain("a decimal of too many digits")
    return _bounded_decimal(Decimal(text))


_MADE_OF_TEXT: dict[str, Callable[[str], Any]] = {
    "int": lambda text: _unhex(text, MAX_INT_BITS),
    "float": lambda text: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text],
    "bytes": bytes.fromhex,
    "decimal": _decimal,
}
_MADE_OF_SCALARS: dict[str, Callable[..., Any]] = {
    "fraction": lambda over, under: Fraction(_unhex(over, MAX_FRACTION_BITS), _unhex(under, MAX_FRACTION_BITS)),
    "range": lambda start, stop, step: _bounded(range(start, stop, step)),
    "complex": complex,
    "opaque": lambda name, truth: NoPlainData(str(name), bool(truth)),
}
_MADE_OF_ITEMS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "deque": deque,
    "iterator": iter,
}
_MADE_OF_KEYS: dict[str, Callable[[list[Any]], Any]] = {"set": set, "frozenset": frozenset, "dict": dict}


def decode(encoded: Any) -> Any:
    """The value that `encode` wrote. Anything else is an error."""
    try:
        return _Decoder().decode(encoded)
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise NotPlain("a message that is no plain data") from error


class _Decoder:
    def __init__(self) -> None:
        self.left = 2 * MAX_ITEMS  # here the keys and the values of a dictionary count separately
        self.collisions_left = MAX_COLLISIONS

    def decode(self, encoded: Any) -> Any:
        if encoded is None or isinstance(encoded, (bool, int, float, str)):
            return encoded
        if isinstance(encoded, list):
            self.left -= len(encoded)
            if self.left < 0:
                raise NotPlain("a message of too many items")
            return [self.decode(item) for item in encoded]
        ((tag, contents),) = encoded.items()
        if isinstance(contents, str):  # a string is iterable too, so it must not be taken for a list of items
            return _MADE_OF_TEXT[tag](contents)
        if not isinstance(contents, list):
            raise NotPlain("a message that is no plain data")
        items = self.decode(contents)
        if tag in _MADE_OF_SCALARS:
            return _MADE_OF_SCALARS[tag](*items)
        if tag in _MADE_OF_KEYS:
            self._count_collisions((key for key, _ in items) if tag == "dict" else items)
            return _MADE_OF_KEYS[tag](items)
        return _MADE_OF_ITEMS[tag](items)

    def _count_collisions(self, keys: Iterable[Any]) -> None:
        """Refuse keys with equal hashes before they enter a hash table, which compares each with all others.

        The hash of an integer is its remainder by a fixed prime, so a program can construct collisions.
        """
        for _, same in groupby(sorted(map(hash, keys))):  # sorted, because a Counter could be attacked the same way
            number = sum(1 for _ in same)
            self.collisions_left -= number * (number - 1)
        if self.collisions_left < 0:
            raise NotPlain("a message whose keys have the same hash")
