"""A sampler on logits that another program computes: the steps of `decode`, one for each batch of logits handed in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.canvas import Canvas
from ..core.denoiser import Denoiser, Layout
from ..core.errors import UncodeError, require, shown
from ..core.pieces.cache import NoCache, Plan
from ..core.pieces.policy import Sampler
from ..core.stepper.advance import Step
from ..core.stepper.constraints import Constraints
from ..core.stepper.decode import Steps
from ..core.stepper.requests import Seeds
from ..core.support.arguments import checks_arguments, whole_number
from ..core.trace.trace import Trace
from ..samplers.calibration import Frequency
from ..samplers.resolve import SamplersLike, resolve_each


class Decider:
    """Decides on logits that another program computes: which tokens to write, and where.

    It goes through the same stages as :func:`uncode.decode`, so the same logits lead to the same tokens. Ask it for
    `tokens`, run your model on them, and hand the logits to :meth:`decide`, until `done`. Entry i of the logits must
    predict position i. The mask token needs no special care: it is never written.

    `block_length` is that of a block-causal model, whose blocks count from the first valid column. `frequency` is the
    table for samplers that need one, `eos_ids` are the tokens that end an answer, and `tokenizer` finds the tokens
    that a sampler names by their text and those that a `constraint` allows. Samplers whose pieces run forwards of
    their own are refused.
    """

    @checks_arguments()
    def __init__(
        self,
        canvas: Canvas,
        sampler: SamplersLike | Mapping[str, Any],
        seed: Seeds = 0,
        *,
        vocab_size: int,
        eos_ids: tuple[int, ...] = (),
        tokenizer: Any = None,
        frequency: Frequency = None,
        block_length: int | None = None,
        constraint: Constraints = None,
    ) -> None:
        require(isinstance(canvas, Canvas), f"a Canvas was expected, not {shown(canvas)}.")
        self._model = _HandedIn(canvas, whole_number(vocab_size, "vocab_size", 1), eos_ids, tokenizer, block_length)
        found = resolve_each(sampler, self._model, frequency)
        found = [_runnable(each) for each in found] if isinstance(found, list) else _runnable(found)
        self._run = Steps(self._model, canvas, found, seed, constraint)
        self._run.state.lookahead.is_async = False  # the next logits are not there yet
        self.tokens = canvas.tokens.clone()
        """The canvas as it is now, `[B, L]`: what the next logits must be about."""
        self.finished = torch.zeros_like(self.tokens[:, 0], dtype=torch.bool)
        """Which rows have no mask left, `[B]`. Their logits are not read."""

    def __repr__(self) -> str:
        return f"Decider({int((~self.finished).sum())} of {len(self.finished)} rows in decoding)"

    @property
    def done(self) -> bool:
        """Whether every row is finished."""
        return self._run.state.all_finished

    @property
    @torch.inference_mode()
    def columns(self) -> slice:
        """The columns of the canvas that the next decision reads: the open blocks of all rows."""
        require(not self.done, "every row is finished: no more logits are needed.")
        state = self._run.state
        self._run.collect_finished()
        state.open_blocks()
        first = state.blocks.window.columns(state.batch.start).start
        return slice(int(first.min()), int(first.max()) + state.blocks.window.width)

    def decide(self, logits: Tensor) -> Step:
        """One step of the unfinished rows, by logits `[B, W, V]` of `columns` or `[B, L, V]` of the whole canvas."""
        columns, (rows, length) = self.columns, self.tokens.shape
        require(isinstance(logits, Tensor), f"the logits must be a tensor, not {shown(logits)}.")
        size, vocab = (columns.stop - columns.start, self._model.vocab_size)
        fits = logits.is_floating_point() and tuple(logits.shape) in {(rows, size, vocab), (rows, length, vocab)}
        if not fits:
            raise UncodeError(
                f"the logits are {logits.dtype} of shape {tuple(logits.shape)}, not floats of shape "
                f"({rows}, {size}, {vocab}) or ({rows}, {length}, {vocab}): one entry per row, column and token."
            )
        here, there = self.tokens.device, logits.device
        require(here == there, f"the logits are on {there} and the canvas on {here}: move one of them.")
        first = 0 if logits.shape[1] == length else columns.start
        self._model.handed, self._model.dtype = (logits.detach(), first), logits.dtype
        step = next(self._run)
        index = torch.from_numpy(step.rows).to(here)
        self.tokens[index] = step.tokens
        self.finished[list(step.finished)] = True
        return step

    def trace(self) -> Trace:
        """What happened, once every row is finished."""
        require(self.done, f"{int((~self.finished).sum())} rows are not finished: a trace is of finished rows.")
        return self._run.trace()


def _runnable(sampler: Sampler) -> Sampler:
    """The sampler without the cache of a block-causal model, which is for the program that runs it."""
    if not isinstance(sampler, Sampler):
        return sampler  # the stepper refuses it
    runs = "probes" if sampler.max_probes else "draft steps" if sampler.draft_steps > 1 else ""
    require(
        not runs,
        f"the sampler '{sampler.name}' runs forwards of its own ({runs}), and a Decider cannot run the model: use "
        "another sampler, or uncode.decode.",
    )
    return sampler.caching(NoCache()) if sampler.cache.is_exact else sampler


class _HandedIn(Denoiser):
    """The model of a :class:`Decider`, which another program runs."""

    handed: tuple[Tensor, int]
    """The logits of all rows, and the column they start at."""

    def __init__(
        self, canvas: Canvas, vocab_size: int, eos_ids: tuple[int, ...], tokenizer: Any, block_length: int | None
    ) -> None:
        self.mask_id, self.vocab_size = canvas.mask_id, vocab_size
        self.eos_ids = tuple(whole_number(i, "an id of eos_ids") for i in eos_ids)
        self.tokenizer, self.device = tokenizer, canvas.tokens.device
        self.block_length = None if block_length is None else whole_number(block_length, "block_length", 1)
        self.about = {"model": "logits handed in"}

    def open(self, rows: int, length: int) -> _Session:
        return _Session(self, rows)


class _Session:
    """Gives the stepper the logits that were handed in, of the rows that are still decoded."""

    def __init__(self, model: _HandedIn, rows: int) -> None:
        self.model, self.rows = model, torch.arange(rows, device=model.device)

    def logits(self, tokens: Tensor, layout: Layout, plan: Plan) -> Tensor:
        logits, first = self.model.handed
        if len(self.rows) < len(logits):
            logits = logits[self.rows]
        start, width = plan.wanted.start - first, plan.wanted.width
        if (start == start[0]).all():
            here = logits[:, start[0] : start[0] + width]
        else:
            index = torch.from_numpy(start[:, None] + np.arange(width)).to(logits.device)
            here = logits[torch.arange(len(index), device=logits.device)[:, None], index]
        barred = torch.tensor([self.model.mask_id], device=logits.device)
        return here.index_fill(-1, barred, float("-inf"))

    def add(self, rows: int, left: int, right: int) -> None:
        """All rows join at once, as the session opens."""

    def keep(self, rows: Tensor) -> None:
        self.rows = self.rows[rows]
