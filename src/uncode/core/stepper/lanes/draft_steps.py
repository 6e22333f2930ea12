"""Draft steps: one forward makes several steps of a lane's rows, and writes what as many forwards would write.

A step ranks all masks of a row and proposes a token for each. If the model did not change its mind, the next steps
would commit the best of them, one after the other. So the canvases of the next steps can be guessed: they are drafts.
One forward runs over the row itself and its drafts, `k` canvases, and the sampler decides on each. Its decision on the
row itself is right. If that leads to the first draft, the decision on this draft is right too, and so on. The step
commits the longest such chain, and the last decision of it makes the next drafts. A wrong draft costs nothing but the
width of the forward (FreeDave, arXiv:2510.00294, which draws the line between two steps elsewhere in the same loop).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...belief import Belief
from ...denoiser import Denoiser, Facts, Layout, Session
from ...pieces.cache import Place, Plan
from ...pieces.policy import Sampler
from ...support.arrays import Ints
from ...support.transfer import upload
from ...view import Ranking, View
from ..record import Decision
from ..rows import Batch, OpenBlocks


class DraftSteps:
    """The drafts of a lane.

    They have their own session with `k` rows for each row. With a KV cache, it copies what the session of the steps
    stored in the first step of a block, which is the row's alone: nothing is drafted before the block was seen.
    """

    def __init__(self, sampler: Sampler, facts: Facts) -> None:
        self._count, self._cache, self._stop = sampler.draft_steps, sampler.cache, sampler.policy.stop
        self._mask_id = facts.mask_id
        self._session: Session | None = None
        self._ids = np.zeros(0, dtype=np.int64)
        self._version = self._length = 0
        nothing = torch.zeros(0, 0, dtype=torch.int64, device=facts.device)
        self._next = nothing, nothing, nothing > 0
        """What the next steps of each row would commit: offsets, tokens, and whether there is one, `[n, k - 1]`."""

    def follow(self, ids: Ints, members: Ints, batch: Batch, denoiser: Denoiser) -> None:
        """Rows came or went: the lane has those with these ids, at these indices of the batch."""
        before = {row: at for at, row in enumerate(self._ids.tolist())}
        source = upload(np.array([before.get(row, 0) for row in ids.tolist()]), batch.tokens.device)
        if before:  # those that are new are not ready, so what they get is not read
            self._next = tuple(each[source] for each in self._next)  # type: ignore[assignment]
        else:
            self._next = tuple(each.new_zeros(len(ids), 0) for each in self._next)  # type: ignore[assignment]
        if batch.tokens.shape[1] != self._length or len(ids) > len(self._ids):
            self._session = None
        elif self._session is not None and len(ids) < len(self._ids):
            self._session.keep(torch.arange(len(ids) * self._count, device=batch.tokens.device))
        self._ids, self._batch, self._denoiser = ids, batch, denoiser
        self._length, self._version, self._members = batch.tokens.shape[1], self._version + 1, members
        self._each = np.arange(len(ids)).repeat(self._count)
        self._index, self._rows = (upload(rows, batch.tokens.device) for rows in (self._each, members[self._each]))
        self._layout = Layout(batch.valid[self._rows], batch.given[self._rows], self._version)
        self._planned_for: OpenBlocks | None = None
        self._is_stale = True
        """Whether the session of the steps has stored keys and values that this one does not have."""

    def min_forwards(self, steps: Ints) -> Ints:
        """The fewest forwards that make so many steps of a block: the first makes one."""
        return 1 + -(-(steps - 1) // self._count)

    # -- the forward -----------------------------------------------------------------------------

    def run(
        self, ready: NDArray[np.bool_], session: Session, place: Callable[[], Place], blocks: OpenBlocks
    ) -> Tensor | None:
        """Run the forward over rows that are `ready` `[n]`, all but those whose block opens, and their drafts.

        Returns the logits of the rows themselves; None where no row is ready. `session` is that of the steps.
        """
        self._ready, self._logits = ready, None
        if ready.any():
            self._logits = self._forward(session, place, blocks)
            self._is_stale = False
        self._is_stale |= not ready.all()
        return None if self._logits is None else self._logits[:: self._count]

    def _forward(self, session: Session, place: Callable[[], Place], blocks: OpenBlocks) -> Tensor:
        if self._session is None:
            self._session = self._denoiser.open(len(self._each), self._length)
        if self._is_stale and self._cache.needs_kv_cache:
            self._session.copy_rows(session, self._rows)  # type: ignore[attr-defined]  # `copies_kv_cache` says so
        if self._planned_for is not blocks:
            self._plan, self._planned_for = self._plan_of(place()), blocks
        self._canvas = self._drafted()
        return self._session.logits(self._canvas, self._layout, self._plan)

    def _plan_of(self, place: Place) -> Plan:
        """The plan of every step but a block's first."""
        here = place.take(self._members[self._each])
        plan = self._cache(replace(here, block_step=np.ones_like(here.block_step)))
        return replace(plan, block=here.block)

    def _drafted(self) -> Tensor:
        """The rows' canvases, each followed by its drafts, `[n * k, L]`: draft j has what j steps would commit."""
        tokens, (offsets, drafted, exists) = self._batch.tokens[self._rows[:: self._count]], self._next
        if not self._ready.all():
            exists = exists & upload(self._ready, tokens.device)[:, None]
        columns, turn = offsets + self._batch.start, torch.arange(1, offsets.shape[1] + 1, device=tokens.device)
        turns = torch.full_like(tokens, self._count).scatter(1, columns, torch.where(exists, turn, self._count))
        step = torch.arange(self._count, device=tokens.device)[:, None]
        filled = tokens.scatter(1, columns, drafted)
        return torch.where(turns[:, None] <= step, filled[:, None], tokens[:, None]).flatten(0, 1)

    # -- the decisions ---------------------------------------------------------------------------

    def spread(self, logits: Tensor, view: View) -> tuple[Tensor, View]:
        """The logits and the view of the lane's rows, each row followed by its drafts."""
        self._own = view
        if self._logits is None:
            return logits, view
        if not self._ready.all():
            waiting = upload(np.flatnonzero(~self._ready), logits.device)
            self._by_row(self._logits)[waiting] = logits[waiting][:, None].to(self._logits.dtype)
        wide, span = view.take(self._index), self._canvas[:, self._batch.start :]
        tokens = span.gather(1, wide.offsets.expand(len(span), -1))
        is_open = tokens == self._mask_id
        masked = wide.masked & is_open
        return self._logits, wide.having(
            tokens=tokens,
            masked=masked,
            eligible=wide.eligible & is_open,
            span=span,
            block_step=wide.block_masked - masked.sum(-1, keepdim=True),  # a step commits one token
        )

    def accept(self, decision: Decision, view: View) -> None:
        """Make the decisions on rows and drafts the decision on rows: that of the longest chain.

        Each column has the belief and the score with which it is committed. The others have those of the chain's end.
        """
        if self._logits is not None:
            chosen, token, now = map(self._by_step, (decision.chosen, decision.belief.token, view.tokens))
            agrees = (torch.where(chosen, token, now)[:-1] == now[1:]).all(-1) & chosen[:-1].any(-1)
            if self._stop.stops:
                agrees &= ~self._ended()[1:]
            last = agrees.long().cumprod(0).sum(0)[:, None]
            taken = chosen & (torch.arange(self._count, device=last.device)[:, None, None] <= last)
            source = torch.where(taken.any(0), taken.long().argmax(0), last)[None]

            def pick(values: Tensor) -> Tensor:
                return self._by_step(values).gather(0, source)[0]

            decision.belief = Belief.join([decision.belief], lambda each: pick(each[0]), tokens=True)
            decision.score, decision.eligible = pick(decision.score), self._own.eligible
            decision.terms = [term if len(term) == 1 else pick(term) for term in decision.terms]
            decision.chosen = taken.any(0)
        ranking = Ranking(decision.score, ~decision.chosen)
        best = ranking.order[:, : self._count - 1]
        offsets = self._own.offsets.expand_as(decision.chosen).gather(1, best)
        self._next = offsets, decision.belief.token.gather(1, best), ranking.candidates.gather(1, best)

    def _ended(self) -> Tensor:
        """Whether the stop rule ends a row at its drafts, `[k, n]`."""
        span = self._canvas[:, self._batch.start :]
        fill = self._stop(span, span == self._mask_id, ~self._layout.given[:, self._batch.start :])
        return self._by_step((fill >= 0).any(-1, keepdim=True))[..., 0]

    def _by_row(self, values: Tensor) -> Tensor:
        """`[n * k, ...]` as `[n, k, ...]`; a view."""
        return values.view(-1, self._count, *values.shape[1:])

    def _by_step(self, values: Tensor) -> Tensor:
        """`[n * k, W]` as `[k, n, W]`; a view."""
        return self._by_row(values).transpose(0, 1)
