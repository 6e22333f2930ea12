"""The automaton over tokens: a byte automaton walked along the tries of a vocabulary.

A token has a column: the state that it leads to from each state. Tokens with the same column are one class, and so are
the beginnings of tokens. So the walk keeps classes, not nodes: a level of the trie is looked up in a table of (class,
class of byte), and a column is computed only for a pair that is new. Of 151,665 tokens a few hundred classes remain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.errors import require
from .byte_dfa import ByteDfa
from .vocabulary import Trie, Vocabulary

MAX_CELLS = 1 << 24
"""Entries of all columns: states times the classes of tokens and of their beginnings. They are sorted several times."""


@dataclass(frozen=True, eq=False)
class TokenDfa:
    """Class 0 is dead: no accepted text has its tokens. So is the last state. EOS leads from the end of a text to a
    state that only EOS follows."""

    table: NDArray[np.int32]
    """The next state, `[S + 1, C]`."""
    class_of: NDArray[np.int32]
    """The class of each token, `[V]`."""
    start: int
    accepts: NDArray[np.bool_]
    """`[S + 1]`."""


class _Columns:
    """The columns that have occurred, by number. Number 0 is dead, number 1 is that of the empty text."""

    def __init__(self, dfa: ByteDfa) -> None:
        states = len(dfa.table)
        self._next = np.ascontiguousarray(dfa.table.T)  # [K, S + 1]
        self.found = [np.full(states, states - 1, np.int32), np.arange(states, dtype=np.int32)]
        self._number = {column.tobytes(): at for at, column in enumerate(self.found)}
        self._known = np.full((2, len(self._next)), -1, np.int64)
        self._known[0] = 0

    def after(self, numbers: NDArray[np.int64], bytes_: NDArray[np.int64]) -> NDArray[np.int64]:
        """The columns of texts that are one byte longer: of those with the columns `numbers`, by the byte's class."""
        wanted = np.zeros(self._known.shape, dtype=bool)
        wanted[numbers, bytes_] = True
        for number, byte in np.argwhere(wanted & (self._known < 0)).tolist():
            column = self._next[byte][self.found[number]]
            key = column.tobytes()
            at = self._number.setdefault(key, len(self.found))
            if at == len(self.found):
                self.found.append(column)
                cells = at * len(column)
                require(
                    cells <= MAX_CELLS,
                    f"the constraint has {len(column):,} states and more than {at:,} classes of tokens: repeat less, "
                    "or bound texts more tightly.",
                )
            self._known[number, byte] = at
        grown = np.full((len(self.found) - len(self._known), self._known.shape[1]), -1, np.int64)
        self._known = np.concatenate([self._known, grown])
        found: NDArray[np.int64] = self._known[numbers, bytes_]
        return found


def token_dfa(dfa: ByteDfa, vocabulary: Vocabulary) -> TokenDfa:
    """The automaton over the tokens of a vocabulary."""
    columns, (later, first) = _Columns(dfa), vocabulary.tries
    numbers = _walk(dfa, columns, later)
    at_start = numbers if first is None else _walk(dfa, columns, first)
    table = np.stack(columns.found, 1)  # [S + 1, columns]
    starts = table[dfa.start, at_start].astype(np.int64)
    pairs, class_of = np.unique(numbers * len(table) + starts, return_inverse=True)
    body = table[:, pairs // len(table)]
    accepts, start = dfa.accepts, dfa.start
    if first is not None:  # a state for where the text begins
        body = np.concatenate([(pairs % len(table))[None], body]) + 1
        accepts, start = np.concatenate([accepts[start : start + 1], accepts]), 0
    return _finished(body.astype(np.int32), class_of.reshape(-1), start, accepts, vocabulary)


def _walk(dfa: ByteDfa, columns: _Columns, trie: Trie) -> NDArray[np.int64]:
    """The number of the column of each text of a trie."""
    found = np.ones(len(trie.level), dtype=np.int64)
    here = np.ones(1, dtype=np.int64)
    for depth, (parent, byte) in enumerate(trie.levels, 1):
        here = columns.after(here[parent], dfa.class_of[byte])
        ends = trie.level == depth
        found[ends] = here[trie.node[ends]]
    return found


def _finished(
    body: NDArray[np.int32], class_of: NDArray[np.int64], start: int, accepts: NDArray[np.bool_], vocabulary: Vocabulary
) -> TokenDfa:
    """With EOS and the dead class, without states that no text passes and classes that are alike."""
    kept = np.flatnonzero(_passed(body, start, accepts))
    number = np.full(len(body), len(kept) + 1)
    number[kept] = np.arange(len(kept))
    small = number[body[kept]]  # [kept, C]; the dead state and those that are dropped are the last
    alive = np.flatnonzero((small <= len(kept) - 1).any(0))
    unique, alike = np.unique(small[:, alive], axis=1, return_inverse=True)
    end, last, count = len(kept), len(kept) + 1, unique.shape[1]
    table = np.full((len(kept) + 2, count + 2), last, np.int32)
    table[: len(kept), 1 : count + 1] = unique
    accepted = np.concatenate([accepts[kept], [False, False]])
    if vocabulary.eos_ids:
        table[: last + 1, count + 1] = np.where(accepted, end, last)
        table[end, count + 1], accepted[end] = end, True
    of_class = np.zeros(body.shape[1], np.int32)
    of_class[alive] = alike.reshape(-1) + 1
    of_token = np.zeros(vocabulary.size, np.int32)
    of_token[vocabulary.ids] = of_class[class_of]
    of_token[list(vocabulary.eos_ids)] = count + 1
    return TokenDfa(table, of_token, int(number[start]), accepted)


def _passed(body: NDArray[np.int32], start: int, accepts: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The states that some accepted text of tokens passes."""
    size = len(body)
    edges = np.unique(np.arange(size)[:, None] * size + body)
    ahead, behind = [list[int]() for _ in range(size)], [list[int]() for _ in range(size)]
    for one, other in zip((edges // size).tolist(), (edges % size).tolist(), strict=True):
        ahead[one].append(other)
        behind[other].append(one)
    passed = _reached([start], ahead) & _reached(np.flatnonzero(accepts).tolist(), behind)
    passed[-1] = False
    return passed


def _reached(found: list[int], following: list[list[int]]) -> NDArray[np.bool_]:
    reached = np.zeros(len(following), dtype=bool)
    reached[found] = True
    stack = list(found)
    while stack:
        for one in following[stack.pop()]:
            if not reached[one]:
                reached[one] = True
                stack.append(one)
    return reached
