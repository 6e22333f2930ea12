"""A sync: the host asks the device, in one copy, what it must know, and launches the next forward before it waits."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..pieces.cache import Plan
from ..support.arrays import Ints
from ..support.transfer import Download
from ..trace.row_record import FILLED
from .failures import Failures, bad_rows, stalled
from .record import Decision
from .rows import FAR
from .state import Overwritten, State, Synced


def sync(
    state: State, decision: Decision, logits: Tensor, run_network: Callable[[State, Plan], Tensor]
) -> tuple[tuple[int, ...], Failures]:
    """Ask the device which blocks are filled, which rows have ended, and which cannot go on.

    All that the host must know comes in one device-to-host copy. Where that is worthwhile, the next step's forward is
    launched before the host waits for it. What constraints refuse of a step that has been written is taken back then.
    """
    state.flush_step_counts()
    done = _ask_stop_rules(state)
    window = state.blocks.window
    left = window.restrict(state.blocks.tokens.read() == state.facts.mask_id)
    if decision.block_stop is not None:
        left = left & (window.offsets < decision.block_stop)
    changed = decision.chosen if decision.erased is None else decision.chosen | decision.erased
    facts = {
        "first_mask": torch.where(left, window.offsets, FAR).amin(-1),
        "changed": changed.any(-1),
        "pending": decision.pending_rows[:, 0],
        "done": done,
    }
    facts |= _where_masks_are(state, facts["first_mask"])
    if (state.rows.block_step == 1).any():  # a block's first step
        facts["is_nan"] = (decision.belief.log_sumexp.isnan() & decision.eligible).any(-1)
        if decision.block_stop is not None:
            facts |= _ends_of_blocks(state, decision.block_stop)
    told = torch.stack(list(facts.values()), 1)
    download = Download(torch.cat((told, state.batch.generated), 1) if state.before_write else told)
    ahead = state.plan_ahead()
    if ahead is not None:
        state.lookahead.keep_logits(run_network(state, ahead), ahead)
    known = download()
    if state.before_write and not state.constraints.accept(known[:, len(facts) :]):
        _write_again(state, decision, state.before_write)
        return sync(state, decision, logits, run_network)
    state.before_write = None
    found = Synced(**dict(zip(facts, known.T, strict=False)))
    stuck = ~found.filled & (found.changed == 0) & ~state.rows.finished
    failed: Failures = stalled(state, decision, stuck)
    suspects = stuck if found.is_nan is None else stuck | (found.is_nan > 0)
    failed |= bad_rows(state, state.lookahead.latest(logits), decision.eligible, suspects)  # the model's fault
    return state.apply(found), failed


def write_chosen(state: State, decision: Decision, steps: Tensor) -> None:
    """Write what a step commits; `steps` are the rows' own steps, `[B, 1]`."""
    state.blocks.tokens.write(decision.chosen, decision.belief.token)
    state.record.commit_step_in_window.write(decision.chosen, steps)


def _write_again(state: State, decision: Decision, before: Overwritten) -> None:
    """No completion is left of what was written: write as much of it as the constraints accept, in the ranking's
    order."""
    before.restore(state)
    state.before_write = None
    state.lookahead.discard()
    state.constraints.read(state.batch.generated)
    state.constraints.veto(decision, state.constraints.completions, state.blocks.window.start)
    write_chosen(state, decision, state.record.steps - state.batch.unfinished)


def _ends_of_blocks(state: State, stop: Tensor) -> dict[str, Tensor]:
    """Where this step has ended blocks, and what masks are behind each of them."""
    span = state.batch.generated
    behind = (span == state.facts.mask_id) & (torch.arange(span.shape[1], device=span.device) >= stop)
    return {"block_stop": stop[:, 0], "masks_behind": behind.sum(-1), "next_mask": behind.long().argmax(-1)}


def _where_masks_are(state: State, first_mask: Tensor) -> dict[str, Tensor]:
    """What windows and caches must know that follow the masks of the span."""
    follows = any(lane.sampler.cache.follows_masks for lane in state.lanes)
    if not follows and state.blocks.edges is None:
        return {}
    masked = state.batch.generated == state.facts.mask_id
    facts = {"masks_left": masked.sum(-1)} if follows else {}
    if state.blocks.edges is None:
        return facts
    facts["first_mask"], state.blocks.before = first_mask, state.blocks.edges
    for lane in state.lanes:
        if lane.sampler.policy.blocks.slides:
            rows = slice(None) if lane.rows is None else lane.rows
            start, stop = lane.sampler.policy.blocks.window(masked[rows])
            first = torch.where(start < masked.shape[1], start, FAR)[:, 0]
            facts["first_mask"] = first if lane.rows is None else facts["first_mask"].index_copy(0, lane.rows, first)
            state.blocks.slide(rows, start, stop)
    return facts | {"window_stop": state.blocks.edges[:, 1]}


def _ask_stop_rules(state: State) -> Tensor:
    """Fill the rest of the rows whose stop rule says so, without a forward; `[B]`: which have no mask left at all."""
    batch, span, mask_id = state.batch, state.batch.generated, state.facts.mask_id
    ended = torch.zeros_like(span[:, 0], dtype=torch.bool)
    for lane in state.lanes:
        if not lane.sampler.policy.stop.stops:
            continue
        rows = slice(None) if lane.rows is None else lane.rows
        here, own = span[rows], ~batch.given[rows, batch.start :]
        masked = here == mask_id
        fill = lane.sampler.policy.stop(here, masked, own)
        if state.constraints.any and not state.before_write:
            fill = state.constraints.veto_fill(lane.members, here, fill)
        batch.tokens[rows, batch.start :] = torch.where(fill >= 0, fill, here)
        state.record.commit_step[rows] = torch.where(fill >= 0, FILLED, state.record.commit_step[rows])
        ended[rows] = ~(masked & (fill < 0)).any(-1)
        if lane.sampler.policy.stop.overwrites:
            state.record.overwrite(rows, fill >= 0)
            _record_fill(state, lane.members, fill)
    return ended


def _record_fill(state: State, members: Ints, fill: Tensor) -> None:
    """Keep what a stop rule has written in this step, beside its other changes."""
    last, found = state.record.steps[:, 0].tolist(), fill.tolist()
    for at, offset in (fill >= 0).nonzero().tolist():
        row = int(members[at])
        state.record.events[row].append((last[row] - 1, offset, found[at][offset]))
