"""Probes: forwards over other canvases of a lane's rows, within a step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor

from ...belief import Belief
from ...denoiser import Layout, Session
from ...pieces.cache import NoCache, Place, Plan, Span
from ...pieces.policy import Sampler
from ...support.arrays import Ints
from ...support.transfer import upload
from ...view import Probed, View
from ..batch import Batch

Open = Callable[[int, int], Session]
"""A model's `open`."""


class Probes:
    """Runs the probes of a lane, one canvas of every row at a time.

    They have their own session without a KV cache: a probe in the session of the steps would overwrite the keys
    that the next step reuses.
    """

    passes: int
    """Forwards of the lane for the probes of this step."""
    counts: Ints
    """Probes of each row in this step."""

    def __init__(self, sampler: Sampler, mask_id: int) -> None:
        self._propose, self._mask_id = sampler.propose, mask_id
        self._session: Session | None = None
        self._ids = np.zeros(0, dtype=np.int64)
        self._version = self._length = 0

    @classmethod
    def of(cls, sampler: Sampler, mask_id: int) -> Probes | None:
        """The probes of a bound sampler; None where no piece needs any."""
        return cls(sampler, mask_id) if sampler.max_probes else None

    def follow(self, ids: Ints, rows: Tensor | None, batch: Batch, opens: Open) -> None:
        """Rows came or went: the lane has those with these ids, at these indices of the batch (None: all)."""
        length, stays = batch.tokens.shape[1], np.isin(self._ids, ids)
        if length != self._length or not np.array_equal(self._ids[stays], ids):
            self._session = None
        elif self._session is not None and not stays.all():
            self._session.keep(upload(np.flatnonzero(stays), batch.tokens.device))
        self._ids, self._length, self._open, self._batch = ids, length, opens, batch
        self._rows = slice(None) if rows is None else rows
        self._version += 1
        self._layout = Layout(batch.valid[self._rows], batch.given[self._rows], self._version)
        self._plan = _plan_of_span(len(ids), batch.start, length)

    def begin(self, view: View) -> None:
        """A step begins: its pieces may ask `view.probe`."""
        self.passes, self.counts = 0, np.zeros_like(self._ids)
        self._columns, self._canvas = view.offsets + self._batch.start, self._batch.tokens[self._rows]
        view.probe = self

    def __call__(self, tokens: Tensor, needed: Tensor) -> Probed:
        if self._session is None:
            self._session = self._open(len(self._ids), self._length)
        canvas = self._canvas.scatter(1, self._columns.expand_as(tokens), tokens)
        logits = self._session.logits(canvas, self._layout, self._plan)
        self.passes += 1
        self.counts = self.counts + needed.cpu().numpy()
        belief = Belief.of(self._propose.without_banned(logits))
        return Probed(belief, canvas[:, self._batch.start :] == self._mask_id)


def _plan_of_span(rows: int, start: int, length: int) -> Plan:
    """Everything is computed, and logits of the whole generated span are returned."""
    first = np.zeros(rows, dtype=np.int64)
    return NoCache()(Place(Span(first, first), first, Span(first + start, first + length), length))
