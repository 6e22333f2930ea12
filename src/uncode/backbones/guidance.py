"""Classifier-free guidance: a denoiser around a denoiser."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from ..core.denoiser import Denoiser, Facts, Layout, Session
from ..core.errors import require, shown
from ..core.pieces.cache import Plan
from ..core.support.arguments import checks_arguments


class Guided(Denoiser):
    """Logits pushed away from what the model would say without the prompt.

    Beside every row runs a second one in which all given tokens are masked; the logits become
    `without + (scale + 1) * (with - without)`, as in LLaDA. A scale of 0 is the model itself.
    """

    @checks_arguments()
    def __init__(self, denoiser: Denoiser, scale: float) -> None:
        Facts.of(denoiser)
        fits = isinstance(scale, int | float) and 0 <= scale < float("inf")
        require(fits, f"the guidance scale must be a number of 0 or more, not {shown(scale)}.")
        require(not isinstance(denoiser, Guided), "this model is guided already.")
        self.denoiser, self.scale = denoiser, float(scale)
        self.mask_id, self.vocab_size, self.eos_ids = denoiser.mask_id, denoiser.vocab_size, denoiser.eos_ids
        self.tokenizer, self.device, self.dtype = denoiser.tokenizer, denoiser.device, denoiser.dtype
        self.frequency, self.released_table = denoiser.frequency, denoiser.released_table
        self.samplers, self.frame = denoiser.samplers, denoiser.frame
        self.parameters, self.computes_in_parts = denoiser.parameters, denoiser.computes_in_parts
        self.block_length, self.blocks_from_answer = denoiser.block_length, denoiser.blocks_from_answer
        self.context, self.is_bounded, self.sees_padding = denoiser.context, denoiser.is_bounded, denoiser.sees_padding
        self.has_kv_cache, self.graph_tokens = denoiser.has_kv_cache, denoiser.graph_tokens // 2
        self.about = dict(denoiser.about) | {"guidance": self.scale}

    def __repr__(self) -> str:
        return f"Guided({self.denoiser!r}, scale={self.scale})"

    def weights(self) -> Iterable[tuple[str, Tensor]]:
        return self.denoiser.weights()

    def open(self, rows: int, length: int) -> GuidedSession:
        return GuidedSession(self, rows, length)


class GuidedSession:
    """The inner session holds every row twice: first all rows as they are, then all of them without their prompts."""

    def __init__(self, guided: Guided, rows: int, length: int) -> None:
        self.guided = guided
        self.inner: Session = guided.denoiser.open(2 * rows, length)
        self.rows = rows
        self._layout: Layout | None = None
        self._plan: tuple[Plan, Plan] | None = None

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        bare = tokens.masked_fill(layout.given & layout.valid, self.guided.mask_id)
        both = self.inner.logits(torch.cat([tokens, bare]), self._twice(layout), self._double(plan))
        seen, unseen = both.chunk(2)
        logits = unseen + (self.guided.scale + 1) * (seen - unseen)
        # what the model forbids stays forbidden: -inf less -inf is no number
        return logits.masked_fill_(seen == -torch.inf, -torch.inf)

    def _twice(self, layout: Layout) -> Layout:
        if self._layout is None or self._layout.version != layout.version:
            valid, given = (torch.cat([t, t]) for t in (layout.valid, layout.given))
            self._layout = Layout(valid, given, layout.version)
        return self._layout

    def _double(self, plan: Plan) -> Plan:
        if self._plan is None or self._plan[0] is not plan:
            self._plan = plan, plan.take(np.tile(np.arange(self.rows), 2))
        return self._plan[1]

    def add(self, rows: int, left: int, right: int) -> None:
        self.inner.add(2 * rows, left, right)
        old, new = np.arange(2 * self.rows).reshape(2, -1), 2 * self.rows + np.arange(2 * rows).reshape(2, -1)
        self._order(np.concatenate([old, new], axis=1).ravel())
        self.rows += rows

    def keep(self, rows: Tensor) -> None:
        self._order(torch.cat([rows, rows + self.rows]).cpu().numpy())
        self.rows = len(rows)

    def _order(self, rows: np.ndarray) -> None:
        self.inner.keep(torch.from_numpy(rows).to(self.guided.device))
