"""The accepted completions of a canvas: which tokens its masks may become, in whatever order they are filled.

For every column there are two sets of states: those that the tokens before it can lead to (`before`), where a mask
stands for any token, and those from which the tokens from it on can be accepted (`after`). A token may stand at a
column if it leads from a state of the one set into a state of the next column's other. Sets are bits, packed into
bytes. The same sets come back at every step and in every row, so what follows from a set is remembered, and a step
looks it up.
"""

from __future__ import annotations

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
        self.classes: Tensor = torch.from_numpy(class_of).to(device)
        self._states = len(dfa.table) - 1
        self._table, self._is_used = dfa.table[:-1], np.bincount(class_of, minlength=self.count) > 0
        self._is_used[0] = False
        leads = self._find_edges()
        self._ahead, self._behind = np.packbits(leads, axis=1), np.packbits(leads.T, axis=1)
        self.start = self._packed(np.arange(self._states) == dfa.start)
        self.end = self._packed(dfa.accepts[: self._states])
        self._forget()

    def _find_edges(self) -> NDArray[np.bool_]:
        """The pairs of states that some token leads through, and their labels: the classes of these tokens, as bits.
        Many pairs have the same label. Returns the pairs as flags, `[S, S]`."""
        used = np.flatnonzero(self._is_used)
        table = self._table[:, used].astype(np.int64)
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
        leads = np.zeros((self._states, self._states), dtype=bool)
        leads[self._source, self._target] = True
        return leads

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
            here = np.flatnonzero(self._unpacked(states))
            if of_class == MASK:
                found = np.bitwise_or.reduce(self._ahead[here], axis=0).tobytes() if len(here) else bytes(len(states))
            else:
                flags = np.zeros(self._states + 1, dtype=bool)
                flags[self._table[here, of_class]] = True
                found = self._packed(flags[:-1])
            self._remember(len(found))
            self._forward[states, of_class] = found
        return found

    def backward(self, states: bytes, of_class: int) -> bytes:
        """The states from which a token of a class, or any token, leads to one of these."""
        found = self._backward.get((states, of_class))
        if found is None:
            flags = self._unpacked(states)
            if of_class == MASK:
                here = np.flatnonzero(flags)
                found = np.bitwise_or.reduce(self._behind[here], axis=0).tobytes() if len(here) else bytes(len(states))
            else:
                found = self._packed(np.append(flags, False)[self._table[:, of_class]])
            self._remember(len(found))
            self._backward[states, of_class] = found
        return found

    def between(self, before: bytes, after: bytes) -> NDArray[np.bool_]:
        """The classes that lead from a state of one set to a state of the other, `[count]`."""
        found = self._between.get((before, after))
        if found is None:
            passes = self._unpacked(before)[self._source] & self._unpacked(after)[self._target]
            labels = np.zeros(len(self._labels), dtype=bool)
            labels[self._label[passes]] = True
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


class Completions(constraint.Completions):
    """The completions of one row."""

    automaton: Automaton

    def __init__(self, automaton: Automaton, tokens: Ints) -> None:
        self.automaton, self._classes = automaton, list[int]()
        self.read(tokens)

    def read(self, tokens: Ints) -> None:
        classes = self.automaton.class_of_column[tokens].tolist()
        if classes == self._classes:
            return
        self._classes, length = classes, len(classes)
        self._before, self._after = [self.automaton.start] * (length + 1), [self.automaton.end] * (length + 1)
        for at, of_class in enumerate(classes):
            self._before[at + 1] = self.automaton.forward(self._before[at], of_class)
        for at in range(length - 1, -1, -1):
            self._after[at] = self.automaton.backward(self._after[at + 1], classes[at])

    @property
    def exist(self) -> bool:
        first, last = int.from_bytes(self._before[0]), int.from_bytes(self._after[0])
        return bool(first & last)

    def allowed(self, first: int, stop: int) -> NDArray[np.bool_]:
        offsets = range(first, min(stop, len(self._classes)))
        if len(offsets) == 0:
            return np.zeros((0, self.automaton.count), dtype=bool)
        return np.stack([self.automaton.between(self._before[at], self._after[at + 1]) for at in offsets])

    def write(self, offset: int, token: int) -> bool:
        automaton, classes = self.automaton, self._classes
        if offset >= len(classes):
            return True
        of_class = int(automaton.class_of[token])
        if not automaton.between(self._before[offset], self._after[offset + 1])[of_class]:
            return False
        classes[offset] = of_class
        for at in range(offset, len(classes)):
            states = automaton.forward(self._before[at], classes[at])
            if states == self._before[at + 1]:
                break
            self._before[at + 1] = states
        for at in range(offset, -1, -1):
            states = automaton.backward(self._after[at + 1], classes[at])
            if states == self._after[at]:
                break
            self._after[at] = states
        return True
