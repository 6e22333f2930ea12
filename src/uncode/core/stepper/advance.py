"""The stepper: the only place that runs a network for decoding. One call of :func:`advance` is one step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

from ..belief import Belief
from ..constraint import Completions
from ..errors import RowError, UncodeError
from ..logits_check import check_shape, mask_not_barred
from ..pieces.blocks import BlockSchedule
from ..pieces.cache import Plan
from ..support.arrays import Ints
from ..support.reprs import counted
from ..support.threads import at_most
from ..trace.row_record import OPEN
from ..view import Ranking, View
from .failures import bad_rows, over_limit
from .lanes.lane import Lane
from .record import Decision
from .rows import FAR
from .state import Overwritten, State
from .sync import sync

RANKED_DTYPES = (torch.float32, torch.float64)
"""A term of the score in another type is ranked in float64."""


@dataclass(slots=True)
class Step:
    """One forward, its probes, and their effects. Tensors are views that are valid until the next step."""

    index: int
    """Steps of the batch before this one."""
    rows: Ints
    """Ids of the rows in the batch, in its order."""
    tokens: Tensor
    """The whole canvas after the step, `[B, L]`."""
    offsets: Tensor
    """Offsets of the window's columns, `[1, W]` or `[B, W]`."""
    decision: Decision
    """What was written and erased in the window, with the belief and the score behind it."""
    finished: tuple[int, ...]
    """Ids of the rows that ended with this step."""
    probes: int = 0
    """Forwards of the batch within this step, beside its own."""
    failed: tuple[RowError, ...] = ()
    """Why rows cannot go on, one error for each of them; empty where `advance` raises."""

    def __repr__(self) -> str:
        ended = f", {len(self.finished)} finished" if self.finished else ""
        rows, written = counted(len(self.rows), "row"), int(self.committed.sum())
        return f"Step(index={self.index}, {rows}, {written} committed{ended})"

    @property
    def committed(self) -> Tensor:
        """Which columns of the window were written, `[B, W]`."""
        return self.decision.chosen


@torch.inference_mode()
def advance(state: State, *, raises: bool = True) -> Step:
    """One forward for all rows that are unfinished, and all that follows from it:

    1. Open: each row without an open block opens its next one and counts its masked positions.
    2. Forward: ask the cache policies for a plan; run one forward over its window; take logits of the open window only.
       (On a GPU a single row's forward may have been launched at the end of the step before; see 8.) The forward of a
       sampler with draft steps also runs over guesses of the row's next canvases (see :mod:`.lanes.draft_steps`).
    3. Believe: edit the logits, where rows have a bias, penalties or a constraint; propose a token everywhere; form the
       belief (float32; float64 logits keep float64). Beliefs may decide where a block ends that has just opened.
    4. Score: a sum of terms in float64. Eligible is what is masked, in the open block and computed by the forward; -inf
       elsewhere.
    5. Select, after probes where a piece needs them: forwards over other canvases, in a session without a KV cache,
       each counted as a forward of its row. Of draft steps, keep those that follow from one another.
    6. Take back: remask among the decoder's own tokens, this step's included.
    7. Write what was selected; erase what was taken back; record with what belief each token was committed.
    8. Check and hand out. The host syncs only where a block can be filled or a row can end (see :mod:`.forwards`): it
       asks the stop rules, and learns which rows have ended and which cannot go on. Writes that a row's constraint does
       not allow together are taken back; where another piece reads what is written, they are dropped in 5. A row with
       nothing written or erased whose selector may not wait is `Stalled`; over the limit: the same. Logits that are NaN
       are the model's fault: the error names it. They are looked for after a block's first step, when a row stalls, and
       in the finished trace, so that it needs no separate sync. With `raises=False` such rows are in `step.failed`;
       drop them, and the others go on.
    """
    if state.all_finished:
        raise UncodeError("there is no unfinished row to advance: add rows first.")
    with at_most(state.threads):
        step = _advance(state)
    if raises and step.failed:
        raise step.failed[0]
    return step


def _advance(state: State) -> Step:
    state.open_blocks()
    logits, view = _forward(state)
    parts = _believe(state, logits, view)
    _score(parts)
    _select(state, parts)
    _take_back(parts)
    decision = _write(state, parts, view)
    return _check(state, decision, logits, view)


# -- 2. forward ----------------------------------------------------------------------------------


def _forward(state: State) -> tuple[Tensor, View]:
    """Logits of the open window, and what the pieces see of it."""
    plan = state.plan()
    if state.constraints.any:
        state.constraints.read(state.batch.generated)
    logits = state.lookahead.take_logits(plan)
    return _run_network(state, plan) if logits is None else logits, view_of(state)


def _run_network(state: State, plan: Plan) -> Tensor:
    drafted = _run_draft_steps(state)
    if drafted is not None:
        return drafted
    located = state.planner.located(plan, state.blocks, state.batch.start)
    logits = state.session.logits(state.batch.tokens, state.batch.layout, located)
    if state.unchecked:
        _check_first_forward(state, logits, plan.wanted.width)
        state.unchecked = False
    return logits


def _run_draft_steps(state: State) -> Tensor | None:
    """Run the forwards over drafts. Returns the rows' own logits where they have those of all rows."""
    found: Tensor | None = None
    for lane in state.lanes:
        if lane.draft_steps is not None:
            ready = (state.rows.block_step + state.lookahead.since_sync > 0) & ~state.rows.finished
            own = lane.draft_steps.run(ready[lane.members], state.session, state.place, state.blocks)
            found = own if lane.rows is None and ready.all() else None
    return found


def _check_first_forward(state: State, logits: Tensor, width: int) -> None:
    """Raise an error that names the model where a session's first logits break their contract."""
    check_shape(state.denoiser, logits, (len(state.rows), width, state.facts.vocab_size), state.batch.tokens.shape[1])
    eligible = view_of(state).eligible
    bad = bad_rows(state, logits, eligible, ~state.rows.finished)
    if bad:
        raise next(iter(bad.values()))
    if bool((logits[..., state.facts.mask_id][eligible] > -torch.inf).any()):
        raise mask_not_barred(state.denoiser)


def view_of(state: State) -> View:
    """What the pieces see at the next step, before a belief is formed."""
    blocks, here, computed = state.blocks, state.blocks.tokens.read(), state.planner.computed
    masked, window = blocks.window.restrict(here == state.facts.mask_id), {}
    if blocks.edges is not None:
        start, stop = blocks.edges[:, :1], blocks.edges[:, 1:]
        inside = (blocks.window.offsets >= start) & (blocks.window.offsets < stop)
        masked, writable = masked & inside, blocks.writable & inside
        window = {"writable": writable, "block_start": start, "block_length": stop - start}
    now: dict[str, Any] = {
        "tokens": here,
        "masked": masked,
        "eligible": masked if computed is None else masked & computed,
        "block_step": state.block_step,
        "noise": state.noise(state.batch.seeds, state.record.steps),
        "span": state.batch.generated,
        "logp_at_commit": state.record.logp_at_commit if state.revises else None,
    }
    if blocks.view is None:
        blocks.view = View(
            **now,
            offsets=blocks.window.offsets,
            places=blocks.window.places,
            block_start=blocks.start,
            block_length=blocks.length,
            block_masked=blocks.masked,
            block_steps=blocks.steps,
            span_length=blocks.span_length,
            writable=blocks.writable,
        )
    return blocks.view.having(**now, **window)


# -- 3. to 6.: every lane decides for its rows ------------------------------------------------------


@dataclass(slots=True)
class _Part:
    """A lane's part of a step. Each stage adds to it."""

    lane: Lane
    logits: Tensor
    view: View
    block_stop: Tensor | None = None
    ranking: Ranking = field(init=False)
    decision: Decision = field(init=False)
    alternatives: Tensor | None = None
    """The most probable tokens, as a decision has them."""
    completions: list[Completions | None] = field(default_factory=list)
    """Of each row, its drafts included; empty where no row of the batch has a constraint."""


def _believe(state: State, logits: Tensor, view: View) -> list[_Part]:
    lanes = state.lanes
    if len(lanes) == 1:
        parts = [_Part(lanes[0], logits, view)]
    else:
        parts = [_Part(lane, logits[lane.rows], view.take(lane.rows)) for lane in lanes if lane.rows is not None]
    for part in parts:
        sampler, memory, view = part.lane.sampler, part.lane.memory, part.view
        if memory is not None:
            view = view.having(memory=memory.values)
        if part.lane.probes is not None:
            view = part.lane.probes.begin(view)
        if part.lane.draft_steps is not None:
            part.logits, view = part.lane.draft_steps.spread(part.logits, view)
        part.logits = _edit_logits(state, part, view)
        proposed, believed = sampler.propose(part.logits, view)
        belief = Belief.of(believed, proposed, view.tokens if part.lane.needs_standing else None)
        if any(state.alternatives[row] for row in part.lane.members.tolist()):
            part.alternatives = _most_probable(believed, belief, max(state.alternatives))
        if memory is not None:
            belief = memory.with_drift(belief, believed)
        if state.drawn_logp:
            belief = replace(belief, drawn_logp=sampler.propose.drawn_logp(believed, belief))
        part.view = view.having(belief=belief)
        if sampler.policy.blocks.sees_beliefs:
            _end_blocks(part, sampler.policy.blocks)
    return parts


def _most_probable(logits: Tensor, belief: Belief, count: int) -> Tensor:
    """Of each position: the most probable tokens, each followed by its log probability, `[b, W, 2n]`. Of equal ones the
    lowest ids come first, however many are asked for: `topk` takes any."""
    values, tokens = logits.topk(count, -1)
    least, ids = values[..., -1:], torch.arange(logits.shape[-1], dtype=torch.int32, device=logits.device)
    equal = torch.where(logits == least, ids, len(ids) - 1).topk(count, -1, largest=False).values.long()
    place = torch.arange(count, device=logits.device) - (values > least).sum(-1, keepdim=True)
    tokens = torch.where(place < 0, tokens, equal.gather(-1, place.clamp(min=0))).sort(-1).values
    values, order = logits.gather(-1, tokens).sort(dim=-1, descending=True, stable=True)
    tokens = tokens.gather(-1, order)
    logp = (values.double() - values[..., :1].double()) - belief.log_sumexp[..., None].double()
    return torch.stack([tokens.double(), logp], -1).flatten(-2)


def _edit_logits(state: State, part: _Part, view: View) -> Tensor:
    """The logits that proposal and belief see. All that changes logits for a row by what stands on its canvas belongs
    here, before both: only so do the ranking and the thresholds know of it."""
    lane, logits = part.lane, part.logits
    if lane.adjust is not None:
        logits = lane.adjust(logits, view)
    if not state.constraints.any:
        return logits
    part.completions = state.constraints.of(part.lane.members, view)
    return state.constraints.edit(logits, part.completions, _first_offsets(state, part))


def _first_offsets(state: State, part: _Part) -> Ints:
    """The offset at which the window of each row of a part begins."""
    first = state.blocks.window.start[part.lane.members]
    return first.repeat(len(part.completions) // len(first))


def _end_blocks(part: _Part, blocks: BlockSchedule) -> None:
    """Ask where the blocks end that have just opened, and let the view show no more than that."""
    view = part.view
    opens = view.block_step == 0
    if opens is False:
        return
    end = torch.as_tensor(view.block_start + view.block_length, device=view.tokens.device)
    end = end.expand(len(view.tokens), 1)  # as far as the host knows
    stop = torch.minimum(blocks.stops(view), end)
    if isinstance(opens, Tensor):
        stop = torch.where(opens, stop, end)
    inside = view.offsets < stop
    masked = view.masked & inside
    count = masked.sum(-1, keepdim=True)
    part.block_stop = stop
    part.view = view.having(
        masked=masked,
        eligible=view.eligible & inside,
        writable=view.writable & inside,
        block_masked=torch.where(opens, count, view.block_masked) if isinstance(opens, Tensor) else count,
        block_length=stop - view.block_start,
    )


def _score(parts: Sequence[_Part]) -> None:
    for part in parts:
        view, terms = part.view, []
        for term in part.lane.terms:
            value = term(view)
            terms.append(value if value.dtype in RANKED_DTYPES else value.double())
        score = terms[0]  # alone, a term orders in float32 as it would in float64
        for value in terms[1:]:
            score = score.double() + value
        part.ranking = Ranking(score, view.eligible)
        part.decision = Decision(view.belief, view.eligible, part.ranking.score, terms, block_stop=part.block_stop)
        part.decision.alternatives = part.alternatives


def _select(state: State, parts: Sequence[_Part]) -> None:
    for part in parts:
        policy, view, decision = part.lane.sampler.policy, part.view, part.decision
        decision.chosen = policy.select(part.ranking, view)
        decision.keeps_events = policy.stop.overwrites
        decision.unranked = policy.stop.sees_beliefs or policy.edit is not None
        if policy.stop.sees_beliefs:
            decision.chosen = decision.chosen | policy.stop.exits(view)
        if policy.edit is not None:
            edited, believed = policy.edit.edits(view)
            decision.edited = edited & view.own
            decision.chosen = decision.chosen | decision.edited
            if believed is not view.belief:
                decision.belief = view.belief.overwritten(decision.edited, believed)
                part.view = view.having(belief=decision.belief)
            decision.pending = policy.edit.pending(view)
        if part.completions and not state.checks_late:
            state.constraints.veto(decision, part.completions, _first_offsets(state, part))
        if part.lane.draft_steps is not None:
            part.lane.draft_steps.accept(decision, view)


def _take_back(parts: Sequence[_Part]) -> None:
    for part in parts:
        lane, decision, remask = part.lane, part.decision, part.lane.sampler.policy.remask
        if not lane.erases and lane.memory is None:
            continue
        view = part.view.committing(decision.chosen)
        if lane.erases:
            decision.erased = remask(view) & view.own
            decision.pending = decision.pending | remask.pending(view)
        if lane.memory is not None:
            lane.memory.update(lane.sampler, view, part.logits)


def _in_one(parts: Sequence[_Part], view: View) -> Decision:
    """The decisions of all lanes, in the batch's order."""
    decisions = [part.decision for part in parts]
    if len(parts) == 1:
        return decisions[0]
    batch_order = torch.cat([part.lane.rows for part in parts if part.lane.rows is not None]).argsort()

    def concatenate(tensors: list[Tensor]) -> Tensor:
        return torch.cat(tensors).index_select(0, batch_order)

    def joined(found: Iterable[Tensor | None], instead: Callable[[Decision], Tensor]) -> Tensor | None:
        each = list(found)
        if all(one is None for one in each):
            return None
        return concatenate([instead(d) if one is None else one for one, d in zip(each, decisions, strict=True)])

    stop = joined((d.block_stop for d in decisions), lambda d: torch.full_like(d.chosen[:, :1], FAR, dtype=torch.int64))
    expanded = ([term.expand_as(d.score) for term in d.terms] for d in decisions)
    terms = (joined(each, lambda d: torch.full_like(d.score, torch.nan)) for each in zip_longest(*expanded))
    found = Decision(
        belief=Belief.join([d.belief for d in decisions], concatenate, tokens=True),
        eligible=view.eligible if stop is None else view.eligible & (view.offsets < stop),
        score=concatenate([d.score for d in decisions]),
        terms=[term for term in terms if term is not None],
        erased=joined((d.erased for d in decisions), lambda d: torch.zeros_like(d.chosen)),
        edited=joined((d.edited for d in decisions), lambda d: torch.zeros_like(d.chosen)),
        unranked=any(d.unranked for d in decisions),
        keeps_events=any(d.keeps_events for d in decisions),
        pending=concatenate([d.pending_rows for d in decisions]),
        block_stop=stop,
        alternatives=joined((d.alternatives for d in decisions), lambda d: _none_of(decisions, d)),
    )
    found.chosen = concatenate([d.chosen for d in decisions])
    return found


def _none_of(decisions: Sequence[Decision], like: Decision) -> Tensor:
    """No alternatives for a lane whose rows ask for none, beside lanes that have some."""
    width = next(one.alternatives.shape[-1] for one in decisions if one.alternatives is not None)
    return torch.full((*like.chosen.shape, width), torch.nan, dtype=torch.float64, device=like.chosen.device)


# -- 7. write --------------------------------------------------------------------------------------


def _write(state: State, parts: Sequence[_Part], view: View) -> Decision:
    decision, blocks, record = _in_one(parts, view), state.blocks, state.record
    seen = view.tokens == state.facts.mask_id if state.observe == "span" else decision.eligible
    unfinished = state.batch.unfinished
    if state.any_finished and decision.erased is not None:
        decision.erased = decision.erased & (unfinished > 0)
    if state.any_finished and decision.edited is not None:
        decision.chosen = decision.chosen & ~(decision.edited & (unfinished == 0))
    state.before_write = Overwritten.of(state) if state.checks_late else None
    record.write_chosen(decision, blocks.tokens, record.steps)
    if state.drafts:
        record.draft(blocks.window, decision.belief.token, ~state.rows.finished)
    if decision.revised:
        _record_events(state, decision)
    if decision.erased is not None:
        blocks.tokens.write(decision.erased, torch.full_like(record.steps, state.facts.mask_id))
        record.commit_step_in_window.write(decision.erased, torch.full_like(record.steps, OPEN))
    state.record_probes()
    record.reserve(state.clock + 1 - state.earliest_join)
    record.append(decision, seen, unfinished)
    return decision


def _record_events(state: State, decision: Decision) -> None:
    """Where a remasker or an editor runs, offsets are written more than once: keep every change, in order."""
    own, revising = state.record.steps[:, 0].tolist(), state.revising
    offsets = state.blocks.window.offsets.expand(len(own), -1)
    for change, token in ((decision.chosen, decision.belief.token), (decision.erased, None)):
        for row, column in [] if change is None else change.nonzero().tolist():
            if not revising[row]:
                continue
            written = -1 if token is None else int(token[row, column])
            state.record.events[row].append((own[row], int(offsets[row, column]), written))


# -- 8. check and hand out -------------------------------------------------------------------------


def _check(state: State, decision: Decision, logits: Tensor, view: View) -> Step:
    must_sync = state.lookahead.count_step() or state.before_write is not None
    finished, failed = sync(state, decision, logits, _run_network) if must_sync else ((), {})
    state.record.end_step(decision)
    state.clock += 1
    if state.clock >= state.deadline:
        failed = failed | over_limit(state, logits, decision.eligible)
    return Step(
        index=state.clock - 1,
        rows=state.rows.ids,
        tokens=state.batch.tokens,
        offsets=view.offsets,
        decision=decision,
        finished=finished,
        probes=sum(lane.probes.passes for lane in state.lanes if lane.probes is not None),
        failed=tuple(failed.values()),
    )
