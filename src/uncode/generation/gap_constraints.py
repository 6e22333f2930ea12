"""Constraints of the gaps in a text: each gap has its own, and the text around the gaps is part of none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..core.constraint import Automaton, Completions, Constraint
from ..core.denoiser import Denoiser, Facts
from ..core.errors import UncodeError, require
from ..core.stepper.constraints import Constraints, each_constraint
from ..core.support.arrays import Ints
from ..core.support.reprs import counted
from .prompt import Prompt

PromptConstraints = Constraints | Sequence[Constraint | Sequence[Constraint | None] | None]
"""As for a decode; and of a text with gaps, a list with one for each gap."""
Span = tuple[int, int]
MAX_KEPT = 16
"""Automata of gaps that a process keeps: a file of prompts of one form needs one."""


def constraints_of(denoiser: Denoiser, prompts: Sequence[Prompt], given: PromptConstraints) -> list[Constraint | None]:
    """The constraint of each prompt's row. That of a text with gaps holds for every gap, or is a list of theirs."""
    is_list = isinstance(given, Sequence) and len(given) == len(prompts)
    each: Any = given if is_list else each_constraint(given, len(prompts))  # type: ignore[arg-type]
    rules = [
        one if prompt.pieces is None else _of_gaps(denoiser, prompt, each_constraint(one, len(prompt.gaps), "gap"))
        for prompt, one in zip(prompts, each, strict=True)
    ]
    return each_constraint(rules, len(prompts))


def _of_gaps(denoiser: Denoiser, prompt: Prompt, each: Sequence[Constraint | None]) -> Constraint | None:
    assert prompt.pieces is not None
    first, rules = prompt.gaps[0][0], list[Constraint | None]()
    for rule, piece, (start, _) in zip(each, prompt.pieces, prompt.gaps, strict=False):
        begins = start == first and not denoiser.tokenizer.decode(prompt.ids[:start], skip_special_tokens=True)
        rules.append(None if rule is None else rule.in_gap(begins, piece.endswith(" ")))
    spans = tuple((start - first, stop - first) for start, stop in prompt.gaps)
    return GapsConstraint(tuple(rules), spans) if any(rules) else None


@dataclass(frozen=True)
class GapsConstraint(Constraint):
    """One constraint or None for each gap."""

    rules: tuple[Constraint | None, ...]
    spans: tuple[Span, ...]
    """The offsets of each gap, from the first one's first."""

    def to_dict(self) -> dict[str, Any]:
        return {"gaps": [None if rule is None else rule.to_dict() for rule in self.rules]}

    def bind(self, facts: Facts, banned: tuple[int, ...] = ()) -> Automaton:
        found = [None if rule is None else rule.bind(facts, banned) for rule in self.rules]
        for gap, (automaton, (start, stop)) in enumerate(zip(found, self.spans, strict=True), 1):
            least = 0 if automaton is None else automaton.shortest()
            if least is None:
                raise UncodeError(f"the constraint of gap {gap} accepts no text that this model can write: change it.")
            room = counted(stop - start, "token")
            require(
                least <= stop - start,
                f"no text that the constraint of gap {gap} accepts fits into {room}: it takes at least {least}.",
            )
        return _joined(tuple(found), self.spans)


@lru_cache(maxsize=MAX_KEPT)
def _joined(automata: tuple[Automaton | None, ...], spans: tuple[Span, ...]) -> _GapsAutomaton:
    return _GapsAutomaton(automata, spans)


class _GapsAutomaton(Automaton):
    """The automata of all gaps. Two tokens are in one class where they are so in each of them."""

    def __init__(self, automata: Sequence[Automaton | None], spans: Sequence[Span]) -> None:
        self.automata, self.spans = automata, spans
        different = list({id(one): one for one in automata if one is not None}.values())
        classes, self._own = torch.zeros_like(different[0].classes).long(), dict[int, NDArray[np.int64]]()
        for one in different:
            classes = torch.unique(classes * one.count + one.classes, return_inverse=True)[1]
        self.classes, self.count = classes.int(), int(classes.max()) + 1
        for one in different:
            own = classes.new_zeros(self.count).index_put_((classes,), one.classes.long())
            self._own[id(one)] = own.cpu().numpy()

    def open(self, tokens: Ints) -> Completions:
        return _GapsCompletions(self, tokens)

    def shortest(self) -> int | None:
        return sum(one.shortest() or 0 for one in self.automata if one is not None)

    def own(self, automaton: Automaton) -> NDArray[np.int64]:
        """The class in one gap's automaton of each class, `[count]`."""
        return self._own[id(automaton)]


class _GapsCompletions(Completions):
    """A row is completed where each of its gaps is."""

    automaton: _GapsAutomaton

    def __init__(self, automaton: _GapsAutomaton, tokens: Ints) -> None:
        self.automaton, self._length = automaton, len(tokens)
        self._parts = [
            None if one is None else one.open(tokens[start:stop])
            for one, (start, stop) in zip(automaton.automata, automaton.spans, strict=True)
        ]

    def _each(self) -> Iterator[tuple[Completions, int, int]]:
        """The gaps that have a constraint, with their offsets."""
        for part, (start, stop) in zip(self._parts, self.automaton.spans, strict=True):
            if part is not None:
                yield part, start, stop

    def read(self, tokens: Ints) -> None:
        for part, start, stop in self._each():
            part.read(tokens[start:stop])

    @property
    def exist(self) -> bool:
        return all(part.exist for part, _, _ in self._each())

    def allowed(self, first: int, stop: int) -> NDArray[np.bool_]:
        found = np.ones((max(min(stop, self._length) - first, 0), self.automaton.count), dtype=bool)
        for part, begin, end in self._each():
            low, high = max(first, begin), min(stop, end)
            if low < high:
                allowed = part.allowed(low - begin, high - begin)
                found[low - first : high - first] = allowed[:, self.automaton.own(part.automaton)]
        return found

    def write(self, offset: int, token: int) -> bool:
        return all(part.write(offset - begin, token) for part, begin, end in self._each() if begin <= offset < end)
