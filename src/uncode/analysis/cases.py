"""Case studies: problems that one sampler solves and another does not, found in traces by rule.

The paper shows three kinds of failure. Each is a rule about a pair of traces of one problem: the failing one and the
other, which is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import require, suggest
from ..core.support.json_lines import read_json
from .measures.answer_timing import timing_of
from .measures.trivial_share import texts_of, trivial_tokens
from .read_traces import OnBytes, TraceRow, trace_rows

NEEDS = ("generated_texts", "answer_span", "correct")
MAX_SHORT_SHARE = 0.75
"""A text is cut short if it has at most this share of the other text's tokens."""


@dataclass(frozen=True, eq=False)
class Case:
    """One problem: the trace of the sampler that fails, and that of the one that is right."""

    kind: str
    model: str
    task: str
    id: str
    failing: TraceRow
    right: TraceRow
    divergence: int
    """The first offset at which the texts of the two traces differ."""

    def rows(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The two whole lines: that of the failing sampler, then that of the right one."""
        return _line(self.failing), _line(self.right)

    def data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "kind": self.kind,
            "model": self.model,
            "task": self.task,
            "id": self.id,
            "failing": self.failing.group.sampler,
            "right": self.right.group.sampler,
            "divergence": self.divergence,
            "texts": ["".join(texts_of(row)[: text_end(row)]) for row in (self.failing, self.right)],
        }


def is_early_answer(failing: TraceRow, right: TraceRow) -> bool:
    """The answer is committed before half of the text in front of it, or has no text in front of it."""
    early, late = timing_of(failing), timing_of(right)
    return early is not None and early.is_early is not False and late is not None and late.is_early is False


def is_cut_short(failing: TraceRow, right: TraceRow) -> bool:
    """The EOS that ends the text is committed before half of the text, and the text is much shorter than the right one.

    A text that fills its whole span has no such EOS.
    """
    end = text_end(failing)
    if end == len(failing) or end > MAX_SHORT_SHARE * text_end(right):
        return False
    written = failing.commit_step[:end][failing.commit_step[:end] >= 0]
    eos_step = failing.commit_step[end]
    return bool(eos_step >= 0 and (written > eos_step).sum() * 2 >= len(written))


def is_trivial_lock(failing: TraceRow, right: TraceRow) -> bool:
    """The first token that differs is trivial, or was written beside a trivial token that was there before it.

    The other trace must not have that trivial token at the same place.
    """
    at = first_divergence(failing, right)
    theirs, ours, trivial = texts_of(right), texts_of(failing), trivial_tokens(failing)
    for place in (at, at + 1):
        if place >= min(len(failing), len(right)) or ours[place] == theirs[place] or failing.is_eos[place]:
            continue
        if trivial[place] and failing.commit_step[place] <= failing.commit_step[at]:
            return True
    return False


RULES: dict[str, Callable[[TraceRow, TraceRow], bool]] = {
    "early_answer": is_early_answer,
    "cut_short": is_cut_short,
    "trivial_lock": is_trivial_lock,
}
"""The kinds of failure, in the order in which they are tried: a pair of traces is of one kind."""


def find_cases(
    traces: Sequence[str | Path],
    failing: str,
    right: str,
    *,
    kinds: Sequence[str] = tuple(RULES),
    on_bytes: OnBytes | None = None,
) -> list[Case]:
    """The problems on which the sampler `failing` is wrong and `right` is right, for which a rule holds.

    The shortest texts come first, because they are the easiest to read.
    """
    for kind in kinds:
        require(kind in RULES, f"there is no kind of case '{kind}': {suggest(kind, RULES)}")
    require(failing != right, f"two samplers are compared: '{failing}' is given twice.")
    pairs = _pairs(traces, failing, right, on_bytes)
    found = [case for key, (one, two) in pairs.items() if (case := _case(key, one, two, kinds)) is not None]
    return sorted(found, key=lambda case: text_end(case.failing) + text_end(case.right))


def first_divergence(one: TraceRow, two: TraceRow) -> int:
    """The first offset at which the texts of two traces differ; the length of the shorter one if there is none."""
    pairs = zip(texts_of(one), texts_of(two), strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(two)))


def text_end(row: TraceRow) -> int:
    """The number of tokens before the first EOS."""
    return int(row.is_eos.argmax()) if row.is_eos.any() else len(row)


Key = tuple[str, str, str]
"""Model, task and id of a problem."""


def _pairs(
    traces: Sequence[str | Path], failing: str, right: str, on_bytes: OnBytes | None
) -> dict[Key, tuple[TraceRow, TraceRow]]:
    """The problems of both samplers on which the first is wrong and the second right."""
    found: dict[str, dict[Key, TraceRow]] = {failing: {}, right: {}}
    known: set[str] = set()
    for row in trace_rows(traces, NEEDS, on_bytes):
        known.add(row.group.sampler)
        if row.correct is (row.group.sampler == right) and row.group.sampler in found and row.id:
            found[row.group.sampler][row.group.model, row.group.task, row.id] = row
    for name in found:
        require(name in known, f"the traces hold no sampler '{name}': {suggest(name, known)}")
    return {key: (row, found[right][key]) for key, row in found[failing].items() if key in found[right]}


def _case(key: Key, failing: TraceRow, right: TraceRow, kinds: Sequence[str]) -> Case | None:
    kind = next((kind for kind, holds in RULES.items() if holds(failing, right)), None)
    if kind not in kinds:
        return None
    return Case(str(kind), *key, failing, right, first_divergence(failing, right))


def _line(row: TraceRow) -> dict[str, Any]:
    with open(row.source, "rb") as lines:
        text = next(line for number, line in enumerate(lines, 1) if number == row.line)
    found: dict[str, Any] = read_json(text.decode("utf-8-sig"), f"line {row.line} of '{row.source}'")
    return found
