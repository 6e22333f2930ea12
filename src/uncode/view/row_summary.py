"""A row of a trace in short clauses: its forwards, its EOS, its answer."""

from __future__ import annotations

from typing import Any

from ..core.support.reprs import counted

TraceLine = dict[str, Any]
"""A row of a trace as plain data, as `Trace.row` gives it and a line of a trace file holds it."""


def eos_ids_of(row: TraceLine) -> set[int]:
    """The EOS ids of the model that wrote the row."""
    return set(row["special_ids"]) - {row["mask_id"]}


def first_eos_step(row: TraceLine) -> int | None:
    """The step that committed the first EOS token; None if the model committed none."""
    eos_ids = eos_ids_of(row)
    steps = [step for token, step in zip(row["generated_ids"], row["commit_step"], strict=True) if token in eos_ids]
    return min((step for step in steps if step >= 0), default=None)


def answer_steps(row: TraceLine) -> tuple[int, int] | None:
    """The first and the last step that committed a token of the answer; None if no grader has marked the answer."""
    answer_span, texts = row.get("answer_span"), row.get("generated_texts")
    if answer_span is None or texts is None:
        return None
    found, at = [], 0
    for text, step in zip(texts, row["commit_step"], strict=True):
        if at < answer_span[1] and at + len(text) > answer_span[0] and step >= 0:
            found.append(step)
        at += len(text)
    return (min(found), max(found)) if found else None


def steps_of(row: TraceLine) -> int:
    """The steps of a row: its forwards without the probes."""
    return int(row["forwards"]) - sum(row.get("probes", ()))


def summary(row: TraceLine) -> list[str]:
    """A summary of a row in short clauses: forwards, EOS, answer."""
    eos_step, answer = first_eos_step(row), answer_steps(row)
    clauses = [counted(row["forwards"], "forward")]
    clauses.append("no EOS committed" if eos_step is None else f"EOS first committed at step {eos_step}")
    if answer is not None:
        first, last = answer
        clauses.append(f"answer committed at step{f's {first} to {last}' if last > first else f' {first}'}")
    return clauses
