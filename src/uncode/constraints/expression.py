"""Regular expressions in Python's syntax as nondeterministic automata over bytes.

The standard library parses the expression; this module builds an automaton of its tree. So an expression means here
what it means to `re.fullmatch`. What has no automaton, or a very large one, is refused by its name.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from re import _parser  # type: ignore[attr-defined]  # the tree has no public name
from typing import Any

from ..core.errors import UncodeError, require, shown
from .characters import LAST, Ranges, category, complement, merged, utf8

MAX_NFA_STATES = 50_000
"""States of an expression before it is made deterministic."""
MAX_CHARACTERS = 1_000_000
"""Of an expression: the standard library reads it in about a second."""
_REFUSED = {
    "ASSERT": "look-ahead or look-behind",
    "ASSERT_NOT": "negative look-ahead or look-behind",
    "GROUPREF": "a back-reference",
    "GROUPREF_EXISTS": "a condition on a group",
    "ATOMIC_GROUP": "an atomic group",
    "POSSESSIVE_REPEAT": "a possessive repeat",
}


LEAD = "_lead"
"""The name of a group that stands before the text that an expression is about: anchors may follow it."""
_ENDS_OF_LINES, _NO_BREAK_SPACE = [(0x2028, 0x2029)], [(0xFEFF, 0xFEFF)]
"""What ECMAScript, and not Python, takes for an end of a line and for a space."""


class Nfa:
    """States are numbers. An edge is a byte range, both ends included; an empty edge takes no byte."""

    def __init__(self) -> None:
        self.edges = list[list[tuple[int, int, int]]]()
        """Of each state: the range's ends, and the state it leads to."""
        self.empty = list[list[int]]()

    def state(self) -> int:
        require(
            len(self.edges) < MAX_NFA_STATES,
            f"the expression has more than {MAX_NFA_STATES:,} states: repeat less, or nest fewer repeats.",
        )
        self.edges.append([])
        self.empty.append([])
        return len(self.edges) - 1

    def characters(self, ranges: Ranges, start: int) -> int:
        """One character of a set, from a state on; returns the state behind it."""
        end = self.state()
        for sequence in utf8(ranges):
            at = start
            for low, high in sequence[:-1]:
                self.edges[at].append((low, high, following := self.state()))
                at = following
            self.edges[at].append((*sequence[-1], end))
        return end


def parse(pattern: str) -> tuple[Nfa, int, int]:
    """The automaton of an expression, its first state and its accepting one."""
    is_short = len(pattern) <= MAX_CHARACTERS
    require(is_short, f"the regular expression has more than {MAX_CHARACTERS:,} characters: write a shorter one.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = _parser.parse(pattern)
    except (re.error, OverflowError) as error:
        raise UncodeError(f"the regular expression {shown(pattern)} cannot be read: {error}.") from None
    except RecursionError:
        raise UncodeError("the regular expression is nested too deeply: nest fewer groups.") from None
    builder = _Builder(pattern, tree.state.groupdict.get(LEAD))
    start = builder.nfa.state()
    try:
        end = builder.sequence(list(tree), start, tree.state.flags, True, True)
    except RecursionError:
        raise UncodeError("the regular expression is nested too deeply: nest fewer groups.") from None
    return builder.nfa, start, end


class _Builder:
    """Thompson's construction, over the tree of the standard library's parser."""

    def __init__(self, pattern: str, lead: int | None) -> None:
        self.nfa, self._pattern, self._lead = Nfa(), pattern, lead

    def sequence(self, items: Sequence[Any], start: int, flags: int, first: bool, last: bool) -> int:
        """Items one after the other. `first` and `last` say whether the text begins or ends with them."""
        self._check_flags(flags)
        for at, (kind, value) in enumerate(items):
            is_first = first and all(_is_anchor(one) or self._is_lead(one) for one in items[:at])
            is_last = last and all(_is_anchor(one) for one in items[at + 1 :])
            start = self._item(str(kind), value, start, flags, is_first, is_last)
        return start

    def _is_lead(self, item: Any) -> bool:
        return str(item[0]) == "SUBPATTERN" and item[1][0] is not None and item[1][0] == self._lead

    def _check_flags(self, flags: int) -> None:
        for flag, name in ((re.IGNORECASE, "(?i)"), (re.MULTILINE, "(?m)"), (re.LOCALE, "(?L)")):
            if flags & flag:
                self._refuse(f"the flag {name}")

    def _item(self, kind: str, value: Any, start: int, flags: int, first: bool, last: bool) -> int:
        if kind in _REFUSED:
            self._refuse(_REFUSED[kind])
        if kind == "AT":
            self._check_anchor(str(value), first, last)
            return start
        if kind == "SUBPATTERN":
            _, more, less, items = value
            return self.sequence(list(items), start, (flags | more) & ~less, first, last)
        if kind == "BRANCH":
            ends, end = [self.sequence(list(one), self._after(start), flags, first, last) for one in value[1]], 0
            end = self.nfa.state()
            for one in ends:
                self.nfa.empty[one].append(end)
            return end
        if kind in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, items = value
            return self._repeat(least, most, items, start, flags)
        return self.nfa.characters(_characters(kind, value, flags), start)

    def _after(self, start: int) -> int:
        state = self.nfa.state()
        self.nfa.empty[start].append(state)
        return state

    def _repeat(self, least: int, most: Any, items: Any, start: int, flags: int) -> int:
        inner, unbounded = list(items), str(most) == "MAXREPEAT"
        for _ in range(least):
            before, start = start, self.sequence(inner, start, flags, False, False)
            if start == before:  # the repeated part is empty
                return start
        if unbounded:
            begin = self._after(start)
            end = self.sequence(inner, begin, flags, False, False)
            self.nfa.empty[end].append(begin)
            return self._after(begin)
        skipped = [start]
        for _ in range(int(most) - least):
            start = self.sequence(inner, self._after(start), flags, False, False)
            skipped.append(start)
        end = self.nfa.state()
        for one in skipped:
            self.nfa.empty[one].append(end)
        return end

    def _check_anchor(self, name: str, first: bool, last: bool) -> None:
        """The whole text must match, so anchors at its ends say nothing more."""
        fits = (
            first if name in ("AT_BEGINNING", "AT_BEGINNING_STRING") else last and name in ("AT_END", "AT_END_STRING")
        )
        if not fits:
            self._refuse("a word boundary" if "BOUNDARY" in name else "an anchor inside the text")

    def _refuse(self, what: str) -> None:
        raise UncodeError(
            f"the regular expression {shown(self._pattern)} has {what}, which no constraint can have: write it without."
        )


def _is_anchor(item: Any) -> bool:
    return str(item[0]) == "AT"


def _characters(kind: str, value: Any, flags: int) -> Ranges:
    """The characters that one item of the tree stands for."""
    if kind == "LITERAL":
        return merged([(value, value)])
    if kind == "NOT_LITERAL":
        return complement(((value, value),))
    if kind == "ANY":
        return merged([(0, LAST)]) if flags & re.DOTALL else complement(((10, 10),))
    if kind == "RANGE":
        return merged([value])
    if kind == "CATEGORY":
        name = str(value).removeprefix("CATEGORY_").lower()
        found = category(name.removeprefix("not_"), bool(flags & re.ASCII))
        return complement(found) if name.startswith("not_") else found
    if kind == "IN":
        negated = str(value[0][0]) == "NEGATE"
        inside = [_characters(str(one), what, flags) for one, what in value[int(negated) :]]
        found = merged(pair for ranges in inside for pair in ranges)
        return complement(found) if negated else found
    raise UncodeError(f"a constraint cannot have '{kind.lower()}' of a regular expression: write it without.")


def pattern_within(pattern: str, inside: Ranges) -> str:
    r"""An expression for texts in which `pattern` is found somewhere and that have characters `inside` a set alone.

    `\d`, `\s` and `\w` are those of ASCII, as in ECMAScript. It is written in Python's syntax.
    """
    try:
        parsed = _parser.parse(pattern, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise UncodeError(f"the pattern {shown(pattern)} cannot be read: {error}.") from None
    _check_flags(parsed.state.flags & ~re.ASCII, pattern)
    tree = list(parsed)
    is_branch = len(tree) == 1 and str(tree[0][0]) == "BRANCH"
    found = [_searched(list(one), inside, pattern) for one in (tree[0][1][1] if is_branch else [tree])]
    return f"(?:{'|'.join(found)})"


def _searched(items: list[Any], inside: Ranges, pattern: str) -> str:
    anything = _class(inside) + "*"
    starts = bool(items) and str(items[0][0]) == "AT" and str(items[0][1]) == "AT_BEGINNING"
    items = items[starts:]
    ends = bool(items) and str(items[-1][0]) == "AT" and str(items[-1][1]) == "AT_END"
    body = _written(items[: len(items) - ends], inside, pattern)
    return ("" if starts else anything) + body + ("" if ends else anything)


def _check_flags(flags: int, pattern: str) -> None:
    require(not flags, f"the pattern {shown(pattern)} has flags, which no constraint can have: write it without.")


def _written(items: Sequence[Any], inside: Ranges, pattern: str) -> str:
    """A part of the tree as an expression."""
    found = []
    for name, value in items:
        kind = str(name)
        if kind == "SUBPATTERN":
            _check_flags(value[1] | value[2], pattern)
            found.append(f"(?:{_written(list(value[3]), inside, pattern)})")
        elif kind == "BRANCH":
            found.append(f"(?:{'|'.join(_written(list(one), inside, pattern) for one in value[1])})")
        elif kind in ("MAX_REPEAT", "MIN_REPEAT"):
            most = "" if str(value[1]) == "MAXREPEAT" else value[1]
            found.append(f"(?:{_written(list(value[2]), inside, pattern)}){{{value[0]},{most}}}")
        else:
            what = _REFUSED.get(kind, "an anchor inside the text" if kind == "AT" else "")
            require(
                not what, f"the pattern {shown(pattern)} has {what}, which no constraint can have: write it without."
            )
            unicode, ascii_ = (complement(_characters(kind, value, flags)) for flags in (0, re.ASCII))
            outside = [*unicode, *ascii_, *complement(inside)]  # readers of patterns differ in \S, \D and \W
            outside += _ENDS_OF_LINES if kind == "ANY" else _NO_BREAK_SPACE if "SPACE" in str(value) else []
            found.append(_class(complement(merged(outside))))
    return "".join(found)


def _class(ranges: Ranges) -> str:
    """A set of characters as an expression."""
    inside = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
    return f"[{inside}]" if ranges else r"[^\s\S]"
