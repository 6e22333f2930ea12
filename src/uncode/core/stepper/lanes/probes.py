"""Probes: forwards over other canvases of a lane's rows, within a step."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from ...belief import Belief
from ...denoiser import Denoiser, Layout, Session
from ...pieces.cache import NoCache, Place, Span
from ...pieces.propose import Proposal
from ...support.arrays import Ints
from ...support.transfer import upload
from ...view import Probed, View
from ..rows import Batch


class Probes:
    """Runs the probes of a lane, one canvas of every row at a time.

    They have their own session without a KV cache: a probe in the session of the steps would overwrite the keys
    that the next step reuses.
    """

    passes: int
    """Forwards of the lane for the probes of this step."""
    counts: Ints
    """Probes of each row in this step."""

    def __init__(self, mask_id: int) -> None:
        self._mask_id = mask_id
        self._session: Session | None = None
        self._ids = np.zeros(0, dtype=np.int64)
        self._version = self._length = 0

    def follow(self, ids: Ints, rows: Tensor | None, batch: Batch, propose: Proposal, denoiser: Denoiser) -> None:
        """Rows came or went: the lane has those with these ids, at these indices of the batch (None: all)."""
        length, known = batch.tokens.shape[1], self._ids.tolist()
        if length != self._length or not np.isin(ids, self._ids).all():
            self._session = None
        elif self._session is not None and not np.array_equal(self._ids, ids):
            self._session.keep(upload(np.array([known.index(one) for one in ids.tolist()]), batch.tokens.device))
        self._ids, self._length, self._batch = ids, length, batch
        self._propose, self._denoiser = propose, denoiser
        self._rows = slice(None) if rows is None else rows
        self._version += 1
        self._layout = Layout(batch.valid[self._rows], batch.given[self._rows], self._version)
        first = np.zeros(len(ids), dtype=np.int64)
        span = Span(first + batch.start, first + length)
        self._plan = NoCache()(Place(span, first, span, length, span.start))  # everything is computed

    def begin(self, view: View) -> View:
        """A step begins: the view of its pieces, which may ask `view.probe`."""
        self.passes, self.counts = 0, np.zeros_like(self._ids)
        self._canvas, self._view = self._batch.tokens[self._rows], view.having(probe=self)
        return self._view

    def __call__(self, tokens: Tensor, needed: Tensor) -> Probed:
        if self._session is None:
            self._session = self._denoiser.open(len(self._ids), self._length)
        start, columns = self._batch.start, self._view.offsets + self._batch.start
        canvas = self._canvas.scatter(1, columns.expand_as(tokens), tokens)
        logits = self._session.logits(canvas, self._layout, self._plan)
        self.passes += 1
        self.counts = self.counts + needed.cpu().numpy()
        span = canvas[:, start:]
        view = self._view.of_span(span, span == self._mask_id)
        standing = self._canvas[:, start:]
        return Probed(Belief.of(self._propose.without_banned(logits, view), standing=standing), view.masked)
