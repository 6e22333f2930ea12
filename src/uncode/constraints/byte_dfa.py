"""From a nondeterministic automaton over bytes to the smallest deterministic one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.errors import require
from .expression import Nfa

MAX_STATES = 8_192
"""States of an automaton. The sets of states that one may reach from another take a bit for each pair: 8 MiB."""

MAX_WORK = 1_000_000
"""Operations that determinizing may take, a few seconds. Schemas and bounded texts take about a tenth of it."""


@dataclass(frozen=True, eq=False)
class ByteDfa:
    """Bytes that lead to the same place from everywhere are of one class. The last state is dead: nothing leaves it."""

    table: NDArray[np.int32]
    """The next state, `[S + 1, K]`."""
    class_of: NDArray[np.int64]
    """The class of each byte, `[256]`."""
    start: int
    accepts: NDArray[np.bool_]
    """`[S + 1]`."""

    def matches(self, text: bytes) -> bool:
        """Whether it accepts a text."""
        state = self.start
        for byte in text:
            state = int(self.table[state, self.class_of[byte]])
        return bool(self.accepts[state])


def determinize(nfa: Nfa, start: int, end: int) -> ByteDfa:
    """The smallest automaton that accepts the same texts; refused where it would have too many states."""
    cuts = sorted({0, 256, *(cut for edges in nfa.edges for low, high, _ in edges for cut in (low, high + 1))})
    class_of = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    spans = [[(int(class_of[low]), int(class_of[high]) + 1, to) for low, high, to in edges] for edges in nfa.edges]
    work = _Work()
    closures = _closures(nfa, work)
    first = closures(frozenset((start,)))
    known, order, rows = {first: 0}, [first], list[list[int]]()
    for states in order:  # it grows while it is read
        targets = defaultdict[int, set[int]](set)
        for state in states:
            for low, high, to in spans[state]:
                work.spend(high - low)
                for at in range(low, high):
                    targets[at].add(to)
        row, found = [-1] * (len(cuts) - 1), dict[frozenset[int], int]()
        for at, target in targets.items():
            key = frozenset(target)
            if key not in found:
                closed = closures(key)
                found[key] = known.setdefault(closed, len(order))
                if found[key] == len(order):
                    order.append(closed)
            row[at] = found[key]
        rows.append(row)
        require(
            len(order) <= MAX_STATES,
            f"the constraint has more than {MAX_STATES:,} states: repeat less, bound texts more tightly, or write "
            "[A-Za-z0-9_] for \\w.",
        )
    table = np.array(rows, dtype=np.int32)
    table = np.concatenate([np.where(table < 0, len(order), table), np.full((1, table.shape[1]), len(order))])
    accepts = np.array([end in states for states in order] + [False])
    return _smallest(table.astype(np.int32), class_of, accepts)


class _Work:
    """Counts what determinizing takes. Nested repeats may take very long without making many states."""

    def __init__(self) -> None:
        self.left = MAX_WORK

    def spend(self, amount: int) -> None:
        self.left -= amount
        require(
            self.left > 0,
            f"the constraint takes more than {MAX_WORK:,} operations to compile: nest fewer repeats, or bound texts "
            "more tightly.",
        )


def _closures(nfa: Nfa, work: _Work) -> Callable[[frozenset[int]], frozenset[int]]:
    """A function from states to those that are reached from them without a byte."""
    single = dict[int, frozenset[int]]()

    def of(state: int) -> frozenset[int]:
        found, stack = {state}, [state]
        while stack:
            for to in nfa.empty[stack.pop()]:
                if to not in found:
                    found.add(to)
                    stack.append(to)
        work.spend(len(found))
        return frozenset(one for one in found if nfa.edges[one] or not nfa.empty[one])

    def closure(states: frozenset[int]) -> frozenset[int]:
        for state in states:
            if state not in single:
                single[state] = of(state)
        parts = [single[state] for state in states]
        work.spend(sum(map(len, parts)))
        return frozenset().union(*parts)

    return closure


def _smallest(table: NDArray[np.int32], class_of: NDArray[np.int64], accepts: NDArray[np.bool_]) -> ByteDfa:
    """Merge states that accept the same texts (Moore), drop those that accept none, and merge bytes that lead alike."""
    part = _parts(table, accepts)
    count = int(part.max()) + 1
    dead, first = int(part[-1]), int(part[0])
    alive = [one for one in range(count) if one != dead]
    number = np.full(count, len(alive))
    number[alive] = np.arange(len(alive))
    sample = np.zeros(count, dtype=np.int64)
    sample[part] = np.arange(len(part))
    chosen = sample[[*alive, dead]]
    small = number[part[table[chosen]]].astype(np.int32)
    alike = rows_alike(np.ascontiguousarray(small.T))
    columns = np.zeros(int(alike.max()) + 1, dtype=np.int64)
    columns[alike] = np.arange(len(alike))
    return ByteDfa(np.ascontiguousarray(small[:, columns]), alike[class_of], int(number[first]), accepts[chosen])


def _parts(table: NDArray[np.int32], accepts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """A number for each state; states that accept the same texts have the same. A round looks only at states before
    those whose number has just changed: a text of bounded length takes as many rounds as it has characters."""
    size, behind = len(table), [list[int]() for _ in range(len(table))]
    for edge in np.unique(np.arange(size)[:, None] * size + table).tolist():
        behind[edge % size].append(edge // size)
    part = rows_alike(accepts[:, None])
    members, looked_at = np.bincount(part).tolist(), list(range(size))
    while looked_at:
        groups = defaultdict[int, dict[bytes, list[int]]](dict)
        for state, here, following in zip(looked_at, part[looked_at].tolist(), part[table[looked_at]], strict=True):
            groups[here].setdefault(following.tobytes(), []).append(state)
        changed = list[int]()
        for here, found in groups.items():
            alike = sorted(found.values(), key=len)
            for states in alike if sum(map(len, alike)) < members[here] else alike[:-1]:
                part[states] = len(members)
                members[here] -= len(states)
                members.append(len(states))
                changed += states
        looked_at = sorted({one for state in changed for one in behind[state]})
    return part


def rows_alike(rows: NDArray[np.generic]) -> NDArray[np.int64]:
    """A number for each row; equal rows have the same."""
    packed = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
    found: NDArray[np.int64] = np.unique(packed, return_inverse=True)[1].reshape(-1)
    return found
