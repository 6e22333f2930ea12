"""The accepted completions of a canvas: which tokens its masks may become, in whatever order they are filled.

For every column there are two sets of states: those that the tokens before it can lead to (`before`), where a mask
stands for any token, and those from which the tokens from it on can be accepted (`after`). A token may stand at a
column if it leads from a state of the one set into a state of the next column's other. Sets are bits, packed into
bytes. The same sets come back at every step and in every row, so what follows from a set is remembered, and a step
looks it up.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core import constraint
from ..core.errors import require
from ..core.support.arrays import Ints
from .byte_dfa import rows_alike
from .token_dfa import TokenDfa

MAX_REMEMBERED = 1 << 26
"""Bytes of sets and flags that an automaton remembers; it then forgets all and begins again."""
MAX_LABELS = 1 << 27
"""Bytes of the labels of all pairs of states, before those that are alike are merged. Schemas take a few percent."""
ENTRY_BYTES = 256
"""About what a dictionary and its key take for each of them."""
FEW = 8
"""Up to this part of all states is few."""
MASK = -1
"""The class of a mask: any token."""


class Automaton(constraint.Automaton):
    """A token automaton, ready for the canvases of a model."""

    def __init__(self, dfa: TokenDfa, mask_id: int, banned: tuple[int, ...], device: torch.device) -> None:
        class_of = dfa.class_of.astype(np.int64)
        class_of[[mask_id, *banned]] = 0
        self.class_of, self.count = class_of, dfa.table.shape[1]
        self.class_of_column = class_of.copy()
        self.class_of_column[mask_id] = MASK
        self.classes: Tensor = torch.from_numpy(class_of.astype(np.int32)).to(device)
        self._states = len(dfa.table) - 1
        self._table = np.ascontiguousarray(dfa.table[:-1].T)
        self._is_used = np.bincount(class_of, minlength=self.count) > 0
        self._is_used[0] = False
        self._find_edges()
        self.start = self._packed(np.arange(self._states) == dfa.start)
        self.end = self._packed(dfa.accepts[: self._states])
        self._forget()

    def _find_edges(self) -> None:
        """The pairs of states that some token leads through, and their labels: the classes of these tokens, as bits.
        Many pairs have the same label."""
        used = np.flatnonzero(self._is_used)
        table = self._table[used].T.astype(np.int64)
        pairs, edge = np.unique(np.arange(self._states)[:, None] * (self._states + 1) + table, return_inverse=True)
        edge, width = edge.reshape(table.shape), -(-self.count // 8)
        require(
            len(pairs) * width <= MAX_LABELS,
            f"the constraint has {len(pairs):,} pairs of states and {self.count:,} classes of tokens: repeat less, or "
            "bound texts more tightly.",
        )
        classes = np.zeros((len(pairs), width), np.uint8)
        for column, of_class in enumerate(used.tolist()):
            classes[edge[:, column], of_class // 8] |= 128 >> of_class % 8
        alive = pairs % (self._states + 1) < self._states
        self._source, self._target = pairs[alive] // (self._states + 1), pairs[alive] % (self._states + 1)
        self._label = rows_alike(classes[alive])
        self._labels = np.zeros((int(self._label.max(initial=-1)) + 1, classes.shape[1]), np.uint8)
        self._labels[self._label] = classes[alive]
        self._by_source = _Index(self._source, self._states)
        self._by_target = _Index(self._target, self._states)

    @property
    def size(self) -> int:
        """Bytes, with what it remembers."""
        return self._size + sum(one.nbytes for one in vars(self).values() if isinstance(one, np.ndarray))

    @property
    def cost(self) -> int:
        """About the nanoseconds of a first look at a column. Later ones take less: sets of states come back."""
        return self._states**2 // 4 + 8 * len(self._source)

    def open(self, tokens: Ints) -> Completions:
        return Completions(self, tokens)

    def shortest(self) -> int | None:
        states, seen, end = self.start, 0, int.from_bytes(self.end)
        for length in range(self._states + 1):
            found = int.from_bytes(states)
            if found & end:
                return length
            new, seen = found & ~seen, seen | found  # from a state that was reached earlier, the end is no nearer
            states = self.forward(new.to_bytes(len(states)), MASK)
        return None

    def forward(self, states: bytes, of_class: int) -> bytes:
        """The states that a token of a class, or any token, leads to from some of these."""
        found = self._forward.get((states, of_class))
        if found is None:
            here, flags = self._unpacked(states), np.zeros(self._states + 1, dtype=bool)
            to = self._target[self._by_source(here)] if of_class == MASK else self._table[of_class][here]
            flags[to] = True
            found = self._packed(flags[:-1])
            self._remember(len(found))
            self._forward[states, of_class] = found
        return found

    def backward(self, states: bytes, of_class: int) -> bytes:
        """The states from which a token of a class, or any token, leads to one of these."""
        found = self._backward.get((states, of_class))
        if found is None:
            there = self._unpacked(states)
            if of_class == MASK:
                flags = np.zeros_like(there)
                flags[self._source[self._by_target(there)]] = True
            else:
                flags = np.append(there, False)[self._table[of_class]]
            found = self._packed(flags)
            self._remember(len(found))
            self._backward[states, of_class] = found
        return found

    def between(self, pairs: list[tuple[bytes, bytes]]) -> NDArray[np.bool_]:
        """Of pairs of sets: the classes that lead from a state of the first to a state of the second, `[n, count]`."""
        return np.stack([self._lead(*pair) for pair in pairs]) if pairs else np.zeros((0, self.count), dtype=bool)

    def _lead(self, before: bytes, after: bytes) -> NDArray[np.bool_]:
        found = self._between.get((before, after))
        if found is None:
            edges = self._by_source(self._unpacked(before))
            labels = np.zeros(len(self._labels), dtype=bool)
            labels[self._label[edges][self._unpacked(after)[self._target[edges]]]] = True
            found = np.bitwise_or.reduce(self._labels[labels], axis=0, initial=0)
            found = np.unpackbits(found, count=self.count).astype(bool)
            self._remember(self.count)
            self._between[before, after] = found
        return found

    def _remember(self, size: int) -> None:
        self._size += size + ENTRY_BYTES
        if self._size > MAX_REMEMBERED:
            self._forget()

    def _forget(self) -> None:
        self._forward, self._backward = dict[tuple[bytes, int], bytes](), dict[tuple[bytes, int], bytes]()
        self._between, self._size = dict[tuple[bytes, bytes], NDArray[np.bool_]](), 0

    def _packed(self, flags: NDArray[np.bool_]) -> bytes:
        return np.packbits(flags).tobytes()

    def _unpacked(self, states: bytes) -> NDArray[np.bool_]:
        return np.unpackbits(np.frombuffer(states, np.uint8), count=self._states).astype(bool)


class _Index:
    """The edges by the state at one of their ends."""

    def __init__(self, states: Ints, count: int) -> None:
        self._states, self._edges = states, np.argsort(states, kind="stable")
        self._first = np.searchsorted(states[self._edges], np.arange(count + 1))

    def __call__(self, flags: NDArray[np.bool_]) -> Ints:
        """The edges of these states: looked up one by one where they are few, else picked from all."""
        here = np.flatnonzero(flags)
        if FEW * len(here) > len(flags):
            return np.flatnonzero(flags[self._states])
        first = self._first[here]
        counts = self._first[here + 1] - first
        found: Ints = self._edges[np.repeat(first + counts - counts.cumsum(), counts) + np.arange(counts.sum())]
        return found


class _Sets:
    """The sets of states along a row, from one of its ends, followed as far as they are asked for.

    A change at one column makes the sets behind it unknown. They often turn out as before a few columns later; then all
    that follow are known again.
    """

    def __init__(self, begin: bytes, classes: list[int], lead: Callable[[bytes, int], bytes]) -> None:
        self._sets, self._classes, self._lead = [begin] + [b""] * len(classes), classes, lead
        self._known = 0
        """So many sets are right, beside the first."""
        self._same = 0, 0
        """Between these, each set follows from the one before it."""

    def change(self, first: int, stop: int, classes: list[int]) -> None:
        """The columns have these classes now, and only those of `[first, stop)` are other ones than before."""
        self._classes[first:stop] = classes
        begin, end = self._same if self._known < self._same[1] else (0, self._known)
        self._same = max(stop, begin), end
        self._known = min(self._known, first)

    def __getitem__(self, at: int) -> bytes:
        """The set behind so many columns."""
        while self._known < at:
            known, (first, last) = self._known + 1, self._same
            states = self._lead(self._sets[known - 1], self._classes[known - 1])
            if first <= known <= last and states == self._sets[known]:
                self._known, self._same = last, (0, last)
            else:
                self._sets[known], self._known, self._same = states, known, (max(first, known + 1), last)
        return self._sets[at]


class Completions(constraint.Completions):
    """The completions of one row. Sets are followed to the columns that are asked for, and no further: while a block is
    open, those behind it wait."""

    automaton: Automaton

    def __init__(self, automaton: Automaton, tokens: Ints) -> None:
        self.automaton, self._classes = automaton, automaton.class_of_column[tokens]
        classes = self._classes.tolist()
        self._before = _Sets(automaton.start, classes, automaton.forward)
        self._after = _Sets(automaton.end, classes[::-1], automaton.backward)
        self._seam = 0
        """A column at which the sets of both sides are found soon."""

    def read(self, tokens: Ints) -> None:
        classes = self.automaton.class_of_column[tokens]
        changed = np.flatnonzero(classes != self._classes)
        if len(changed):
            self._change(classes, int(changed[0]), int(changed[-1]) + 1)

    def _change(self, classes: Ints, first: int, stop: int) -> None:
        self._classes, self._seam, new = classes, stop, classes[first:stop].tolist()
        self._before.change(first, stop, new)
        self._after.change(len(classes) - stop, len(classes) - first, new[::-1])

    @property
    def exist(self) -> bool:
        return bool(int.from_bytes(self._before[self._seam]) & int.from_bytes(self._behind(self._seam)))

    def _behind(self, column: int) -> bytes:
        """The states from which the tokens from this column on can be accepted."""
        return self._after[len(self._classes) - column]

    def allowed(self, first: int, stop: int) -> NDArray[np.bool_]:
        columns = range(first, min(stop, len(self._classes)))
        return self.automaton.between([(self._before[at], self._behind(at + 1)) for at in columns])

    def write(self, offset: int, token: int) -> bool:
        if offset >= len(self._classes):
            return True
        of_class = int(self.automaton.class_of[token])
        if not self.allowed(offset, offset + 1)[0, of_class]:
            return False
        classes = self._classes.copy()
        classes[offset] = of_class
        self._change(classes, offset, offset + 1)
        return True
