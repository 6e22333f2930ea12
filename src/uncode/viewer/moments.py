"""When the tokens of a row were committed: early, in the middle or late, and when its end and its answer were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.row_record import FILLED, GIVEN, OPEN

Row = dict[str, Any]
"""A row of a trace as plain data."""

EARLY, MIDDLE, LATE = "early", "middle", "late"
MOMENTS = (EARLY, MIDDLE, LATE)
OTHERS = {GIVEN: "given", FILLED: "filled", OPEN: "masked"}


def moments(commit_step: Sequence[int]) -> list[str]:
    """A word for each offset: in which third of the commits it was written, or why in none.

    Thirds of the commits rather than of the steps, so that a decode in progress, whose steps nobody can count yet,
    is told in the same words; offsets that a stop rule filled are no commits.
    """
    to_commit = sum(step not in (GIVEN, FILLED) for step in commit_step)
    steps = sorted(step for step in commit_step if step >= 0)
    before = {step: place for place, step in reversed(list(enumerate(steps)))}
    return [MOMENTS[3 * before[step] // to_commit] if step >= 0 else OTHERS[step] for step in commit_step]


def end_ids(row: Row) -> set[int]:
    return set(row["special_ids"]) - {row["mask_id"]}


def first_end(row: Row) -> int | None:
    """The step at which the first end token was committed; None where the model committed none."""
    ends = end_ids(row)
    steps = [step for token, step in zip(row["generated_ids"], row["commit_step"], strict=True) if token in ends]
    return min((step for step in steps if step >= 0), default=None)


def answer_steps(row: Row) -> tuple[int, int] | None:
    """The first and the last step at which a token of the answer was committed, where a grader said what it is."""
    span, texts = row.get("answer_span"), row.get("generated_texts")
    if span is None or texts is None:
        return None
    found, at = [], 0
    for text, step in zip(texts, row["commit_step"], strict=True):
        if at < span[1] and at + len(text) > span[0] and step >= 0:
            found.append(step)
        at += len(text)
    return (min(found), max(found)) if found else None


def forwards(count: int) -> str:
    return f"{count} forward{'s' * (count != 1)}"


def summary(row: Row) -> list[str]:
    """What there is to say about a row beside its text, a clause each."""
    end, answer = first_end(row), answer_steps(row)
    clauses = [forwards(row["forwards"])]
    clauses.append("no end token committed" if end is None else f"end token first committed at step {end}")
    if answer is not None:
        first, last = answer
        clauses.append(f"answer committed at step{f's {first} to {last}' if last > first else f' {first}'}")
    return clauses
