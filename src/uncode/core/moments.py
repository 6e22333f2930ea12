"""When the tokens of a row were committed: early, in the middle or late."""

from __future__ import annotations

from collections.abc import Sequence

from .trace.row_record import FILLED, GIVEN, OPEN

EARLY, MIDDLE, LATE = "early", "middle", "late"
MOMENTS = (EARLY, MIDDLE, LATE)
OTHERS = {GIVEN: "given", FILLED: "filled", OPEN: "masked"}


def moments(commit_step: Sequence[int]) -> list[str]:
    """A word for each offset: the third of the commits in which it was written, or why it is in none.

    These are thirds of the commits, not of the steps, because the number of steps is unknown while a decode runs.
    Offsets that a stop rule filled are not commits.
    """
    to_commit = sum(step not in (GIVEN, FILLED) for step in commit_step)
    steps = sorted(step for step in commit_step if step >= 0)
    before = {step: count for count, step in reversed(list(enumerate(steps)))}
    return [MOMENTS[3 * before[step] // to_commit] if step >= 0 else OTHERS[step] for step in commit_step]
