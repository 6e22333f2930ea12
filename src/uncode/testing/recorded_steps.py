"""Views of real steps: of a batch with unequal rows, and of each of its rows alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.belief import Belief
from ..core.canvas import Canvas
from ..core.denoiser import Layout
from ..core.pieces.blocks import Blocks
from ..core.pieces.cache import DualCache, NoCache, Place, Span
from ..core.pieces.policy import Policy, Sampler
from ..core.pieces.remask import LeastConfident, LoopQuota
from ..core.pieces.score import Confidence
from ..core.pieces.select import TopK
from ..core.stepper.advance import advance, view_of
from ..core.stepper.state import State
from ..core.view import Probed, Ranking, View
from .hash_model import HashDenoiser

LENGTHS = (11, 5, 8)
"""Of the rows under test: they leave one after the other, and have blocks of unequal width."""
_NEIGHBOUR_LENGTH = 14


@dataclass
class RecordedStep:
    """What a piece sees at one step of some rows."""

    view: View
    logits: Tensor
    rows: list[int]
    """Which of the rows under test are in the batch."""
    forwards: list[int]
    """Steps that each has taken before this one."""
    model: HashDenoiser
    has_schedule: bool = True
    """Whether the view shows each block's share of the steps, as beside a selector with a schedule."""

    def fresh_view(self, remasking: bool = False) -> View:
        """A copy of the view with its belief; for remaskers after the best position was committed."""
        view = _copy(self.view)
        if not self.has_schedule:
            view = replace(view, block_steps=0)
        belief = Belief.of(self.logits, None, view.tokens if remasking else None)
        view = replace(view, probe=partial(_probe, self.model, view), belief=belief)
        if remasking:
            return view.committing(Ranking(belief.logp, view.eligible).top(1))
        return replace(view, logp_at_commit=None)  # only remaskers have it

    def columns(self, at: int) -> Tensor:
        """Which columns belong to the open block of a row, `[W]`."""
        view = self.view
        start, length = (_of_row(count, at) for count in (view.block_start, view.block_length))
        offsets = view.offsets.expand_as(view.tokens)[at]
        return (offsets >= start) & (offsets < start + length)


@cache
def recorded_steps_alone(model: HashDenoiser) -> dict[tuple[int, int], RecordedStep]:
    """Every step of each row alone, by the row and by its steps before."""
    return {(row, step.forwards[0]): step for row in range(len(LENGTHS)) for step in recorded_steps(model, (row,))}


@cache
def recorded_steps(model: HashDenoiser, rows: tuple[int, ...] = (0, 1, 2)) -> list[RecordedStep]:
    """Every step of these rows. Beside several rows decodes one with wider blocks."""
    narrow, wide = _carrier(Blocks(length=3)), _carrier(Blocks(length=_NEIGHBOUR_LENGTH))
    prompts, lengths = [[1 + row, 2, 3][: 1 + row] for row in rows], [LENGTHS[row] for row in rows]
    samplers, seeds = [narrow] * len(rows), [10 + row for row in rows]
    if len(rows) > 1:
        prompts, lengths = [*prompts, [1, 2]], [*lengths, _NEIGHBOUR_LENGTH]
        samplers, seeds = [*samplers, wide], [*seeds, 99]
    canvas = Canvas.after_prompt(prompts, length=lengths, mask_id=model.mask_id)
    state = State(model)
    state.add(canvas.with_anchors([{2: 1} for _ in prompts]), samplers, seeds)
    return list(_steps(state, rows, model))


def _carrier(blocks: Blocks) -> Sampler:
    """A sampler of the library that carries the rows along; it erases, so that its views show what remaskers need."""
    remask = LeastConfident(1, 0.5)
    return Sampler(Policy(Confidence(), TopK(LoopQuota(None, 1, 0.5)), blocks, remask), cache=DualCache())


@torch.inference_mode()
def _steps(state: State, rows: tuple[int, ...], model: HashDenoiser) -> Iterator[RecordedStep]:
    while len(state.rows):
        state.open_blocks()
        here = [at for at, row in enumerate(state.rows.ids.tolist()) if row < len(rows)]
        if here:
            index = torch.tensor(here)
            logits = state.session.logits(state.batch.tokens, state.batch.layout, state.plan())
            yield RecordedStep(
                view=_copy(view_of(state).take(index)),
                logits=logits[index].clone(),
                rows=[rows[int(state.rows.ids[at])] for at in here],
                forwards=state.record.steps[index, 0].tolist(),
                model=model,
            )
        advance(state)
        if state.any_finished:
            state.keep(np.flatnonzero(~state.rows.finished))


def _probe(model: HashDenoiser, view: View, tokens: Tensor, needed: Tensor) -> Probed:
    """What the model says of a canvas of the generated spans alone."""
    span = view.span.scatter(1, view.offsets.expand_as(tokens), tokens)
    count, width = span.shape
    first = np.zeros(count, dtype=np.int64)
    whole = Span(first, first + width)
    plan = NoCache()(Place(whole, first, whole, width, first))
    valid = torch.arange(width).expand_as(span) < view.span_length
    logits = model.open(count, width).logits(span, Layout(valid, span != model.mask_id), plan)
    return Probed(Belief.of(logits, standing=view.span), (span == model.mask_id) & valid)


def _copy(view: View) -> View:
    """The same view with its own tensors."""
    values = ((f.name, getattr(view, f.name)) for f in fields(view))
    copies: dict[str, Any] = {name: v.clone() if isinstance(v, Tensor) else v for name, v in values}
    return replace(view, **copies)


def _of_row(count: int | Tensor, at: int) -> int:
    return count if isinstance(count, int) else int(count[at])
