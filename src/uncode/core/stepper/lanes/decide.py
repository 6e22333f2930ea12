"""One step's decision: steps 3 to 6 of the stepper, for the rows that share a sampler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...belief import Belief
from ...pieces.blocks import BlockSchedule
from ...pieces.policy import Sampler
from ...support.reprs import counted
from ...view import Ranking, View
from .memory import Memory
from .probes import Probes


@dataclass
class Lane:
    """Rows that share a sampler, and so are decided together."""

    spec: Sampler
    """The sampler as the caller gave it."""
    sampler: Sampler
    """The same, bound to the model."""
    rows: Tensor | None = None
    """Indices of its rows; None when the lane holds the whole batch."""
    memory: Memory | None = None
    """What its pieces remember; None where they remember nothing."""
    probes: Probes | None = None
    """The forwards that its pieces run within a step; None where they run none."""


@dataclass(slots=True)
class Decision:
    """What is to be written and erased in the window, and why."""

    belief: Belief
    score: Tensor
    """What the selector saw, `[B, W]`: -inf where nothing may be written."""
    terms: list[Tensor]
    """The terms of the score, each `[B, W]`, or `[1, W]` where it is the same for all rows."""
    chosen: Tensor
    erased: Tensor | None = None
    edited: Tensor | None = None
    """Of what was chosen, the standing tokens that are overwritten; None where no lane has an editor."""
    unranked: bool = False
    """Whether positions may be written that the ranking did not have: by an editor or a stop rule."""
    pending: Tensor | bool = False
    """Rows `[B, 1]` whose block must stay open although it is full."""
    block_stop: Tensor | None = None
    """The offsets at which the open blocks end, `[B, 1]`, where this step has decided it for one of them."""

    def __repr__(self) -> str:
        (rows, columns), erased = self.chosen.shape, 0 if self.erased is None else int(self.erased.sum())
        shape = f"{counted(rows, 'row')}, {counted(columns, 'column')}"
        return f"Decision({shape}, {int(self.chosen.sum())} chosen, {erased} erased)"

    @property
    def revised(self) -> bool:
        """Whether a position may have been written more than once, so that events are kept."""
        return self.erased is not None or self.edited is not None

    @property
    def pending_rows(self) -> Tensor:
        """`pending` as a tensor `[B, 1]` on the device."""
        if isinstance(self.pending, Tensor):
            return self.pending.expand(len(self.chosen), 1)
        return torch.full_like(self.chosen[:, :1], self.pending)


def decide(lanes: Sequence[Lane], logits: Tensor, view: View) -> Decision:
    """Each lane decides for its rows; the results are concatenated and put into the batch's order."""
    if len(lanes) == 1:
        return _decide(lanes[0], logits, view)
    rows = [lane.rows for lane in lanes if lane.rows is not None]
    parts = [_decide(lane, logits[index], view.take(index)) for lane, index in zip(lanes, rows, strict=True)]
    batch_order = torch.cat(rows).argsort()

    def concatenate(pieces: list[Tensor]) -> Tensor:
        return torch.cat(pieces).index_select(0, batch_order)

    erases = any(part.erased is not None for part in parts)
    edits = any(part.edited is not None for part in parts)
    ends_blocks = any(part.block_stop is not None for part in parts)
    return Decision(
        belief=Belief.join([part.belief for part in parts], concatenate, tokens=True),
        score=concatenate([part.score for part in parts]),
        terms=[concatenate([_term(part, k) for part in parts]) for k in range(max(len(part.terms) for part in parts))],
        chosen=concatenate([part.chosen for part in parts]),
        erased=concatenate([_flags(part.erased, part.chosen) for part in parts]) if erases else None,
        edited=concatenate([_flags(part.edited, part.chosen) for part in parts]) if edits else None,
        unranked=any(part.unranked for part in parts),
        pending=concatenate([part.pending_rows for part in parts]),
        block_stop=concatenate([_block_stop(part) for part in parts]) if ends_blocks else None,
    )


def _decide(lane: Lane, logits: Tensor, view: View) -> Decision:
    memory, policy = lane.memory, lane.sampler.policy
    if memory is not None:
        view.memory = memory.values
    if lane.probes is not None:
        lane.probes.begin(view)
    proposed, believed = lane.sampler.propose(logits, view)
    view.belief = Belief.of(believed, proposed, view.tokens if policy.remask.needs_standing else None)
    if memory is not None:
        view.belief = memory.with_drift(view.belief, believed)
    block_stop = end_blocks(policy.blocks, view) if policy.blocks.sees_beliefs else None
    terms = [_ranked(term(view)) for term in policy.score.terms]
    score = terms[0]  # alone, a term orders in float32 as it would in float64
    for term in terms[1:]:
        score = score.double() + term
    ranking = Ranking(score, view.eligible)
    decision = Decision(view.belief, ranking.score, terms, policy.select(ranking, view), block_stop=block_stop)
    decision.unranked = policy.stop.sees_beliefs or policy.edit is not None
    if policy.stop.sees_beliefs:
        decision.chosen = decision.chosen | policy.stop.exits(view)
    if policy.edit is not None:
        assert view.own is not None
        decision.edited = policy.edit(view) & view.own & ~view.eligible
        decision.chosen = decision.chosen | decision.edited
        decision.pending = policy.edit.pending(view)
    view.chosen = decision.chosen
    if policy.remask.erases:
        own = show_commits(view, decision.chosen)
        decision.erased = policy.remask(view) & own
        decision.pending = decision.pending | policy.remask.pending(view)
    if memory is not None:
        memory.update(lane.sampler, view, logits)
    return decision


def end_blocks(blocks: BlockSchedule, view: View) -> Tensor | None:
    """Ask where the blocks end that have just opened, and let the view show no more than that. Returns the offsets at
    which all open blocks end, `[B, 1]`; None where no block has just opened."""
    opens = view.block_step == 0
    if opens is False:
        return None
    stop = torch.minimum(blocks.stops(view), _end_of_block(view))
    if isinstance(opens, Tensor):
        stop = torch.where(opens, stop, _end_of_block(view))
    inside = view.offsets < stop
    view.eligible = view.eligible & inside
    view.own = None if view.own is None else view.own & inside
    masked = view.eligible.sum(-1, keepdim=True)
    view.block_masked = torch.where(opens, masked, view.block_masked) if isinstance(opens, Tensor) else masked
    view.block_length = stop - view.block_start
    return stop


def _end_of_block(view: View) -> Tensor:
    """The offsets at which the open blocks end as far as the host knows, `[B, 1]`."""
    end = torch.as_tensor(view.block_start + view.block_length, device=view.tokens.device)
    return end.expand(len(view.tokens), 1)


def show_commits(view: View, chosen: Tensor) -> Tensor:
    """Let the view show what this step commits, for the remasker. Returns `view.own`."""
    assert view.own is not None and view.logp_at_commit is not None
    view.own = view.own & (~view.eligible | chosen)
    view.logp_at_commit = torch.where(chosen, view.belief.logp.double(), view.logp_at_commit)
    return view.own


def _ranked(term: Tensor) -> Tensor:
    """A term of the score in a type that ranks, float32 or float64."""
    return term if term.dtype in (torch.float32, torch.float64) else term.double()


def _term(part: Decision, number: int) -> Tensor:
    """A term of the score for every row; NaN where the lane's score has fewer terms than another's."""
    if number < len(part.terms):
        return part.terms[number].expand_as(part.score)
    return torch.full_like(part.score, float("nan"))


def _block_stop(part: Decision) -> Tensor:
    """Where a lane's open blocks end, `[B, 1]`; far behind the span where the step has not decided it."""
    return torch.full_like(part.chosen[:, :1], 2**62, dtype=torch.int64) if part.block_stop is None else part.block_stop


def _flags(flags: Tensor | None, like: Tensor) -> Tensor:
    return torch.zeros_like(like) if flags is None else flags
