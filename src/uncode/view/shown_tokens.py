"""The tokens that stood on the canvas, each from its commit to its erasure or to the end."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from ..core.moments import MOMENTS
from ..core.trace.row_record import FILLED, GIVEN, OPEN
from .animation_style import ShownSteps
from .row_summary import TraceLine, eos_ids_of, steps_of


class ShownToken(NamedTuple):
    """A token, the third of the commits in which it was written (or `given`, `filled`), and its steps."""

    offset: int
    text: str
    is_eos: bool
    moment: str
    span: ShownSteps

    @property
    def stays(self) -> bool:
        return self.span.end is None


def shown_tokens(row: TraceLine) -> list[ShownToken]:
    """All tokens in the order of their commits. Given ones start at step 0; the stop rule fills after the last step."""
    eos_ids, steps = eos_ids_of(row), row["commit_step"]
    finals = sorted(step for step in steps if step >= 0)
    to_commit = max(1, sum(step not in (GIVEN, FILLED) for step in steps))

    def moment(step: int) -> str:
        """As in `core.moments`, also for a token that was erased: the third of the final tokens written before it."""
        return MOMENTS[min(2, 3 * bisect_left(finals, step) // to_commit)]

    found = list[ShownToken]()
    for offset, (step, token, text) in enumerate(zip(steps, row["generated_ids"], row["generated_texts"], strict=True)):
        if step != OPEN:
            kind = {GIVEN: "given", FILLED: "filled"}.get(step) or moment(step)
            start = {GIVEN: 0, FILLED: steps_of(row)}.get(step, step)
            found.append(ShownToken(offset, text, token in eos_ids, kind, ShownSteps(start, None)))
    events = row.get("events", [])
    standing = dict[int, tuple[int, int, str]]()
    for (step, offset, token), text in zip(events, row["event_texts"] if events else [], strict=True):
        if offset in standing:
            start, written, before = standing.pop(offset)
            found.append(ShownToken(offset, before, written in eos_ids, moment(start), ShownSteps(start, step)))
        if token >= 0:
            standing[offset] = (step, token, text)
    return sorted(found, key=lambda one: (one.span.start, one.offset, one.stays))
