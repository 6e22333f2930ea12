"""Admission and recovery by themselves: who joins, who starts again, who leaves. No forward is run."""

from __future__ import annotations

import pytest
import torch

from tests.toy import MASK
from uncode import Canvas, Stalled, UncodeError, presets
from uncode.core.errors import RowError
from uncode.engine import Request
from uncode.engine.admission import MAX_OVERTAKEN, Admission, Submission
from uncode.engine.columns import ColumnRule
from uncode.engine.memory import MemoryBudget
from uncode.engine.recovery import FORWARDS_TO_GROW, ForwardFailed, Recovery

CPU = torch.device("cpu")


def submission(ticket: int, masks: int = 4, prompt: int = 1) -> Submission[None]:
    canvas = Canvas.after_prompt([[1] * prompt], length=masks, mask_id=MASK)
    return Submission(ticket, Request(canvas, presets.confidence()), arrived=0.0, deadline=float(masks))


def admission(short_rows: int = 0, memory: int | None = None, may_pad: bool = True) -> Admission[None]:
    return Admission(ColumnRule(None, may_pad), MemoryBudget(CPU, memory), short_rows)


def tickets(found: list[Submission[None]]) -> list[int]:
    return [one.ticket for one in found]


def test_requests_join_in_order_while_rows_allow() -> None:
    queue = admission()
    for ticket in range(5):
        queue.push(submission(ticket, masks=9 - ticket))
    assert tickets(queue.take([], (0, 0), 3)) == [0, 1, 2]
    assert queue.remove(3) and not queue.remove(3)
    assert tickets(list(queue)) == [4]


def test_one_that_does_not_fit_is_overtaken_a_bounded_number_of_times() -> None:
    queue, running = admission(may_pad=False), [submission(100)]
    queue.push(submission(0, masks=5))
    for ticket in range(1, 40):
        queue.push(submission(ticket))
    assert tickets(queue.take(running, (1, 4), 64)) == list(range(1, MAX_OVERTAKEN + 1))
    assert queue.take(running, (1, 4), 64) == [] and next(iter(queue)).ticket == 0


def test_short_requests_join_a_full_batch() -> None:
    queue, running = admission(short_rows=1), [submission(0, masks=40)]
    for ticket, masks in ((1, 40), (2, 10), (3, 5)):
        queue.push(submission(ticket, masks))
    (extra,) = queue.take(running, (1, 40), 1)
    assert (extra.ticket, extra.is_extra) == (3, True)
    assert queue.take([*running, extra], (1, 40), 1) == []


def test_a_batch_halves_and_grows_again() -> None:
    recovery = Recovery(admission(), MemoryBudget(CPU), max_rows=8)
    lost = recovery.forward_failed([submission(3), submission(1)], RuntimeError("a kernel\npage"))
    assert [result.request.canvas.span for result in lost] == [4, 4] and recovery.limit_rows == 1
    assert str(lost[0].error) == "the forward failed (RuntimeError: a kernel): try again."
    for rows in (2, 4, 8, 8):
        for _ in range(FORWARDS_TO_GROW):
            recovery.forward_worked()
        assert recovery.limit_rows == rows


def test_rows_without_memory_start_again_in_their_old_order() -> None:
    queue, budget = admission(), MemoryBudget(CPU)
    recovery = Recovery(queue, budget, max_rows=8)
    queue.push(submission(5))
    error = torch.OutOfMemoryError("no memory")
    assert recovery.out_of_memory([submission(3), submission(1)], 100, error) == []
    assert tickets(list(queue)) == [1, 3, 5] and budget.max_tokens == 50
    (alone,) = recovery.out_of_memory([submission(7)], 50, error)
    assert isinstance(alone.error, ForwardFailed) and "one row does not fit" in str(alone.error)


def test_the_row_to_blame_for_a_first_forward_leaves() -> None:
    queue = admission()
    recovery = Recovery(queue, MemoryBudget(CPU), max_rows=8)
    (blamed,) = recovery.first_forward_failed({0: submission(10), 1: submission(11)}, Stalled("stuck", 1))
    assert isinstance(blamed.error, Stalled) and tickets(list(queue)) == [10]
    with pytest.raises(UncodeError, match="nobody"):
        recovery.first_forward_failed({0: submission(10)}, RowError("nobody"))
