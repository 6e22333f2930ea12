"""A lane: the rows of a batch that share a sampler, and so are decided together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from torch import Tensor

from ...canvas import Canvas
from ...denoiser import Denoiser, Facts
from ...errors import require
from ...pieces.piece import Piece
from ...pieces.policy import Sampler
from ...support.arrays import Ints
from ...support.transfer import upload
from ..rows import Batch, Rows
from .adjustments import Adjustments
from .draft_steps import DraftSteps
from .memory import Memory, buffers_of
from .probes import Probes


class Lane:
    """Rows whose samplers are the same, but for what they and their pieces take `per_row`."""

    rows: Tensor | None = None
    """Indices of its rows on the device; None when the lane holds the whole batch."""
    members: Ints
    """The same on the host. Both are set by :meth:`follow`."""

    def __init__(self, spec: Sampler, facts: Facts) -> None:
        self.spec = spec
        """The sampler as the caller gave it; of several rows, the first one's."""
        self.sampler = spec.bind(facts)
        """The same, bound to the model and to the rows."""
        buffers = buffers_of(self.sampler)
        self.memory = Memory(buffers, facts) if buffers else None
        """What its pieces remember; None where they remember nothing."""
        self.probes = Probes(facts.mask_id) if self.sampler.max_probes else None
        """The forwards that its pieces run within a step; None where they run none."""
        self.draft_steps = DraftSteps(self.sampler, facts) if spec.draft_steps > 1 else None
        """Its steps that one forward makes together; None where each has its own."""
        remask = spec.policy.remask
        self.erases, self.needs_standing = remask.erases, remask.needs_standing
        self.revises = spec.policy.revises or spec.policy.stop.overwrites
        self.terms = self.sampler.policy.score.terms
        """The terms of the score. `Sum.terms` builds the tuple at every call, so the lane keeps it."""
        self._bound, self._facts = self.sampler, facts
        self.adjust: Adjustments | None = None
        """What is added to the logits of its rows; None where nothing is."""
        self._takes_per_row = any(piece.per_row for piece in spec.pieces() if piece is not spec)

    def fits(self, sampler: Sampler) -> bool:
        """Whether rows with this sampler belong to the lane."""
        return self.spec is sampler or self.spec.is_like(sampler)

    def follow(self, members: Ints, samplers: Sequence[Sampler], rows: Rows, batch: Batch, denoiser: Denoiser) -> None:
        """Rows came or went: these indices of the batch are the lane's; `samplers` are those of the whole batch."""
        self.members = members
        self.rows = None if len(members) == len(rows) else upload(members, self._facts.device)
        mine = [samplers[row] for row in members.tolist()]
        self.adjust = Adjustments.of([one.adjust for one in mine], batch, self.rows, self._facts)
        if self._takes_per_row:
            self.sampler = self._bound.for_rows(mine, self._facts)
            self.terms = self.sampler.policy.score.terms
        if self.probes is not None:
            self.probes.follow(rows.ids[members], self.rows, batch, self.sampler.propose, denoiser)
        if self.draft_steps is not None:
            self.draft_steps.follow(rows.ids[members], members, batch, denoiser)


def add_lanes(
    lanes: Sequence[Lane], samplers: Sequence[Sampler], facts: Facts, whole_span: bool
) -> tuple[list[Lane], Ints]:
    """Add lanes for new rows where no lane has their sampler. Returns all lanes, and the number of each new row's."""
    found, numbers = list(lanes), []
    for sampler in samplers:
        sampler.adjust.check_ids(facts)
        known = [number for number, lane in enumerate(found) if lane.fits(sampler)]
        if not known:
            _check_sampler(sampler, facts, whole_span)
            found.append(Lane(sampler, facts))
        numbers.append(known[0] if known else len(found) - 1)
    return found, np.array(numbers)


def _check_sampler(sampler: Sampler, facts: Facts, whole_span: bool) -> None:
    """Raise unless the sampler's cache computes what its stop rule and the caller look at."""
    stop, cache = type(sampler.policy.stop).__name__, type(sampler.cache).__name__
    require(
        not whole_span or sampler.cache.sees_span,
        f"observe='span' needs every masked position at every step, which {cache} skips: use another cache or "
        "observe='open'.",
    )
    require(
        not sampler.policy.stop.sees_beliefs or sampler.cache.sees_span,
        f"{stop} needs every masked position at every step, which {cache} skips: use another cache.",
    )
    require(
        not (sampler.policy.stop.reads_committed and sampler.cache.needs_kv_cache),
        f"{stop} reads committed positions too, which {cache} does not compute again: use a sampler without a cache.",
    )
    _check_block_causal(sampler, facts)
    blocks = type(sampler.policy.blocks).__name__
    require(
        not sampler.policy.blocks.slides or sampler.cache.follows_masks or not sampler.cache.needs_kv_cache,
        f"{blocks} moves after every step, which {cache} does not follow: use a window cache or none.",
    )
    policy = sampler.policy
    readers: list[Piece] = [term for term in policy.score.terms if term.reads_committed]
    readers += [policy.edit] if policy.edit else []
    readers += [policy.remask] if policy.remask.needs_standing else []
    reader = type(readers[0]).__name__ if readers else ""
    require(
        sampler.cache.sees_block or not readers,
        f"{reader} reads beliefs at committed positions, which {cache} does not compute again: use another cache.",
    )
    require(
        facts.has_kv_cache or not sampler.cache.needs_kv_cache,
        f"this model has no KV cache, and {cache} needs one: use a sampler without a cache.",
    )
    require(
        facts.copies_kv_cache or not sampler.cache.needs_kv_cache or sampler.draft_steps == 1,
        f"this model's sessions copy no KV cache, which {cache} with draft_steps needs: leave out one of the two.",
    )


def _check_block_causal(sampler: Sampler, facts: Facts) -> None:
    """Raise unless the sampler fills the blocks of a block-causal model one by one, with a cache that is exact."""
    cache, blocks, length = type(sampler.cache).__name__, sampler.policy.blocks, facts.block_length
    require(
        length is not None or not sampler.cache.is_exact,
        f"{cache} is for block-causal models, and this model sees all of its canvas: use another cache.",
    )
    if length is None:
        return
    require(
        blocks.divides(length),
        f"this model fills blocks of {length} tokens one by one, and {blocks!r} has others: set "
        f"`block_length={length}`, or take another sampler.",
    )
    require(
        sampler.cache.sees_block,
        f"the cache of this block-causal model is exact, and {cache} would be none: use BlockCache().",
    )


def plan_rows(canvas: Canvas, lanes: Sequence[Lane], numbers: Ints, ids: Ints, clock: int, facts: Facts) -> Rows:
    """New rows with their blocks and steps, planned lane by lane, in the order of the canvas."""
    masked, lengths = canvas.masked[:, canvas.start :].cpu().numpy(), canvas.lengths.cpu().numpy()
    before = canvas.valid[:, : canvas.start].sum(1).cpu().numpy()
    counted = -np.argmax(masked, 1) if facts.blocks_from_answer else before
    lead = counted % facts.block_length if facts.block_length else np.zeros_like(before)
    parts = []
    for number in np.unique(numbers):
        here = np.flatnonzero(numbers == number)
        part = Rows.plan(lanes[number].sampler, masked[here], lengths[here], lead[here], clock)
        part.ids, part.lane = ids[here], numbers[here]
        parts.append(part)
    rows = reduce(Rows.join, parts)
    return rows.take(np.argsort(rows.ids))
