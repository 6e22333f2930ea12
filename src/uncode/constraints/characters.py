"""Sets of characters as ranges of code points, and their UTF-8 encodings as sequences of byte ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

Ranges = tuple[tuple[int, int], ...]
"""Sorted ranges of code points, both ends included, that do not touch."""
ByteRanges = tuple[tuple[int, int], ...]
"""One range for each byte of an encoding."""
LAST = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)
"""Halves of pairs: no text in UTF-8 has them."""
_ENDS = (0x7F, 0x7FF, 0xFFFF, LAST)
"""The last code point that takes 1, 2, 3 and 4 bytes."""


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Any ranges as sorted ones that do not touch, without surrogates."""
    found = list[tuple[int, int]]()
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    (first, last), parts = SURROGATES, list[tuple[int, int]]()
    for low, high in found:
        parts += [(a, b) for a, b in ((low, min(high, first - 1)), (max(low, last + 1), high)) if a <= b]
    return tuple(parts)


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    edges = [-1, *(edge for low, high in merged([*ranges, SURROGATES]) for edge in (low, high)), LAST + 1]
    return merged((low + 1, high - 1) for low, high in zip(edges[::2], edges[1::2], strict=True) if low + 1 < high)


@cache
def category(name: str, ascii_only: bool) -> Ranges:
    r"""The characters of `\d`, `\s` or `\w`, as Python's `re` has them for text."""
    tests: dict[str, Callable[[str], bool]] = {
        "digit": str.isdecimal,
        "space": str.isspace,
        "word": lambda c: c.isalnum() or c == "_",
    }
    known = tests[name]
    if ascii_only:
        spaces = " \t\n\r\f\v"
        return merged((c, c) for c in range(128) if (chr(c) in spaces if name == "space" else known(chr(c))))
    return merged((c, c) for c in range(LAST + 1) if known(chr(c)))


@cache
def utf8(ranges: Ranges) -> tuple[ByteRanges, ...]:
    """The encodings of a set: a byte string is one of its characters if each byte lies in its range, in one of them."""
    return tuple(sequence for low, high in merged(ranges) for sequence in _encodings(low, high))


def _encodings(low: int, high: int) -> Iterator[ByteRanges]:
    for end in _ENDS:  # encodings of one length
        if low <= end < high:
            yield from _encodings(low, end)
            yield from _encodings(end + 1, high)
            return
    if high < 128:
        yield ((low, high),)
        return
    for continued in (1, 2, 3):  # so that the last bytes run through whole ranges
        rest = (1 << 6 * continued) - 1
        if low & ~rest != high & ~rest:
            if low & rest:
                yield from _encodings(low, low | rest)
                yield from _encodings((low | rest) + 1, high)
                return
            if high & rest != rest:
                yield from _encodings(low, (high & ~rest) - 1)
                yield from _encodings(high & ~rest, high)
                return
    yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))
