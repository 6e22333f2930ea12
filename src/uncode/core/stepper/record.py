"""What a step decides, and the record of a batch: what is remembered of its rows, in O(L) buffers on the device.

Steps are appended to a list and flushed into the buffers 32 at a time, or when the window moves. A flush launches the
same few kernels for 32 steps as for one, which keeps recording cheap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..belief import Belief
from ..constraint import Constraint
from ..pieces.policy import Sampler
from ..support.arrays import Ints
from ..support.reprs import counted
from ..trace.row_record import GIVEN, OPEN, Event, RowRecord
from ..view import never
from .rows import Window, WindowedTensor

COMMIT = ("logp", "entropy", "margin", "runner_up", "drawn_logp")
"""Recorded for each offset when it is committed; the terms of the score follow, and add up to it."""

Alternatives = Sequence[tuple[int, float]]
"""The most probable tokens of a position, with their log probabilities."""


def pairs(numbers: NDArray[np.float64], count: int) -> Alternatives:
    """The first `count` pairs of token and log probability that a :class:`Decision` holds of a position; without those
    that have no probability."""
    found = numbers.reshape(-1, 2)[:count].tolist()
    return tuple((int(token), logp) for token, logp in found if math.isfinite(logp))


CHUNK = 32
"""Steps that are appended before a flush."""


@dataclass(slots=True)
class Decision:
    """What is to be written and erased in the window, and why. The stages of a step fill it in, from the score on."""

    belief: Belief
    eligible: Tensor
    """What could be written, `[B, W]`: masks of the open blocks that the forward has computed."""
    score: Tensor
    """What the selector saw, `[B, W]`: -inf where nothing may be written."""
    terms: list[Tensor]
    """The terms of the score, each `[B, W]`, or `[1, W]` where it is the same for all rows."""
    chosen: Tensor = field(init=False)
    """What is written, `[B, W]`."""
    erased: Tensor | None = None
    """What is taken back."""
    edited: Tensor | None = None
    """Of what was chosen, the standing tokens that are overwritten; None where no lane has an editor."""
    unranked: bool = False
    """Whether positions may be written that the ranking did not have: by an editor or a stop rule."""
    keeps_events: bool = False
    """Whether a stop rule may write over tokens, so that events are kept."""
    pending: Tensor | bool = False
    """Rows `[B, 1]` whose block must stay open although it is full."""
    block_stop: Tensor | None = None
    """The offsets at which the open blocks end, `[B, 1]`, where this step has decided it for one of them."""

    alternatives: Tensor | None = None
    """The most probable tokens, each followed by its log probability, `[B, W, 2n]` in float64; None where no row asks
    for them."""

    def __repr__(self) -> str:
        (rows, columns), erased = self.chosen.shape, 0 if self.erased is None else int(self.erased.sum())
        shape = f"{counted(rows, 'row')}, {counted(columns, 'column')}"
        return f"Decision({shape}, {int(self.chosen.sum())} chosen, {erased} erased)"

    @property
    def revised(self) -> bool:
        """Whether a position may have been written more than once, so that events are kept."""
        return self.keeps_events or self.erased is not None or self.edited is not None

    @property
    def pending_rows(self) -> Tensor:
        """`pending` as a tensor `[B, 1]` on the device."""
        if isinstance(self.pending, Tensor):
            return self.pending.expand(len(self.chosen), 1)
        return torch.full_like(self.chosen[:, :1], self.pending)


class BatchRecord:
    """Buffers over offsets, `[C, B, S]`, and over each row's own steps, `[B, T]`."""

    def __init__(self, device: torch.device) -> None:
        self.commit = torch.empty(len(COMMIT), 0, 0, dtype=torch.float64, device=device)
        self.commit_step = torch.empty(0, 0, dtype=torch.int64, device=device)
        self.mean_entropy = torch.empty(0, 0, dtype=torch.float64, device=device)
        self.alternatives = torch.empty(0, 0, 0, dtype=torch.float64, device=device)
        """As a :class:`Decision` has them, `[2n, B, S]`."""
        self.steps = torch.empty(0, 1, dtype=torch.int64, device=device)
        """Each row's own count of steps, `[B, 1]`."""
        self.events: list[list[Event]] = []
        self.drafts: list[list[list[int]]] = []
        self.probes: list[list[int]] = []
        """Per row, its probes at each step; empty where its sampler has none."""
        self._unflushed: list[tuple[Decision, Tensor]] = []

    # -- rows ------------------------------------------------------------------------------------

    def add(self, masked: Tensor, terms: int, alternatives: int) -> None:
        """Rows join with `masked` `[B, S]` positions to fill; the buffers grow where they must."""
        rows, span = masked.shape
        shape = 2 * alternatives, self.alternatives.shape[1] + rows, span
        self.alternatives = _grow(self.alternatives, shape, float("nan"))
        channels = max(self.commit.shape[0], len(COMMIT) + terms)
        self.commit = _grow(self.commit, (channels, self.commit.shape[1] + rows, span), float("nan"))
        fresh = torch.where(masked, OPEN, GIVEN)
        self.commit_step = torch.cat([_grow(self.commit_step, (self.commit_step.shape[0], span), GIVEN), fresh])
        self.mean_entropy = _grow(self.mean_entropy, (len(self.mean_entropy) + rows, 0), float("nan"))
        self.steps = torch.cat([self.steps, self.steps.new_zeros(rows, 1)])
        self.events += [[] for _ in range(rows)]
        self.drafts += [[] for _ in range(rows)]
        self.probes += [[] for _ in range(rows)]

    def keep(self, rows: list[int]) -> None:
        """Only these rows stay, in this order."""
        index = torch.tensor(rows, dtype=torch.int64, device=self.steps.device)
        self.commit, self.commit_step = self.commit[:, index], self.commit_step[index]
        self.alternatives = self.alternatives[:, index]
        self.mean_entropy, self.steps = self.mean_entropy[index], self.steps[index]
        self.events, self.drafts = [self.events[r] for r in rows], [self.drafts[r] for r in rows]
        self.probes = [self.probes[r] for r in rows]

    def crop(self, right: int) -> None:
        """Drop the last offsets, which no row has."""
        span = self.commit_step.shape[1] - right
        self.commit, self.commit_step = self.commit[..., :span].clone(), self.commit_step[:, :span].clone()
        self.alternatives = self.alternatives[..., :span].clone()
        self.drafts = [[draft[:span] for draft in drafts] for drafts in self.drafts]

    def reserve(self, steps: int) -> None:
        """Make room for a row that takes `steps` forwards."""
        if steps + CHUNK >= self.mean_entropy.shape[1]:
            self.mean_entropy = _grow(self.mean_entropy, (0, 2 * (steps + CHUNK)), float("nan"))

    # -- steps -----------------------------------------------------------------------------------

    def set_window(self, window: Window, terms: int, alternatives: int) -> None:
        """Steps that are appended from now on are of this window, with scores of at most `terms` terms and so many
        alternatives."""
        self._commit_in_window = WindowedTensor(window, self.commit[: len(COMMIT) + terms])
        self.commit_step_in_window = WindowedTensor(window, self.commit_step)
        self.alternatives_in_window = WindowedTensor(window, self.alternatives[: 2 * alternatives])
        self._first_offset = window.offsets[:, :1]

    @property
    def logp_at_commit(self) -> Tensor:
        """The log probability each standing token of the window was committed with, `[B, W]`."""
        return self._commit_in_window.read()[0]

    def append(self, decision: Decision, seen: Tensor, unfinished: Tensor) -> None:
        """Append a step: its decision, and the positions `seen` whose entropy is averaged."""
        if not self._unflushed:
            self._first_unflushed_step = self.steps.clone()
        self._unflushed.append((decision, seen))
        self.steps += unfinished
        if decision.revised:
            self.flush()

    def end_step(self, decision: Decision) -> None:
        """Keep what only a step that stays leaves behind, and flush a full list: until now it could be taken back."""
        if decision.alternatives is not None:
            self.alternatives_in_window.write(decision.chosen, decision.alternatives.movedim(-1, 0))
        if len(self._unflushed) == CHUNK:
            self.flush()

    def draft(self, window: Window, tokens: Tensor, unfinished: NDArray[np.bool_]) -> None:
        """Keep the whole proposal of a step for unfinished rows, by offset; -1 outside the window."""
        whole = torch.full_like(self.commit_step, -1)
        WindowedTensor(window, whole).write(torch.ones_like(tokens, dtype=torch.bool), tokens)
        for row in np.flatnonzero(unfinished):
            self.drafts[row].append(whole[row].tolist())

    @torch.inference_mode()
    def flush(self) -> None:
        """Write the appended steps into the buffers. Between two flushes a position is committed at most once."""
        if not self._unflushed:
            return
        decisions, seen = zip(*self._unflushed, strict=True)
        self._unflushed = []
        belief = Belief.join([d.belief for d in decisions], torch.stack)
        score = torch.stack([d.score for d in decisions])
        step = self.commit_step_in_window.read() - self._first_unflushed_step
        at = step.clamp(min=0)
        at_commit = belief.at(at)
        runner_up = self._runner_up(score, torch.stack([d.chosen for d in decisions]))
        is_score = len(decisions[0].terms) == 1 and not decisions[-1].unranked  # then the score is its one term
        terms = [] if is_score else [torch.stack(term) for term in zip(*(d.terms for d in decisions), strict=True)]
        channels = [term.expand_as(score) for term in terms] or [score]
        values = [
            at_commit.logp,
            at_commit.entropy,
            at_commit.margin,
            runner_up.gather(0, at[None])[0],
            at_commit.logp if at_commit.drawn_logp is None else at_commit.drawn_logp,
            *(channel.gather(0, at[None])[0] for channel in channels),
        ]
        self._commit_in_window.write(step >= 0, torch.stack([value.double() for value in values]))
        self._write_mean_entropy(belief.entropy, torch.stack(seen))

    def _write_mean_entropy(self, entropy: Tensor, seen: Tensor) -> None:
        """The mean entropy of each step. A finished row writes past its last step; those entries are never read."""
        mean = torch.where(seen, entropy, 0.0).sum(-1).double() / seen.sum(-1)
        self.mean_entropy.scatter_(1, self._first_unflushed_step + torch.arange(len(mean), device=mean.device), mean.T)

    def _runner_up(self, score: Tensor, chosen: Tensor) -> Tensor:
        """The offset of the best position each step did not choose, `[N, B, W]`; NaN where none was left."""
        value, column = torch.where(chosen, never(score), score).max(-1, keepdim=True)
        nothing_left = value - value  # 0, or NaN where the best is -inf
        return (column + self._first_offset + nothing_left).expand_as(chosen)

    def overwrite(self, rows: Tensor | slice, filled: Tensor) -> None:
        """A stop rule has filled offsets of some rows, `[b, S]`: what was recorded of them is void."""
        nothing = torch.full_like(self.commit[:, rows], float("nan"))
        self.commit[:, rows] = torch.where(filled, nothing, self.commit[:, rows])
        nothing = torch.full_like(self.alternatives[:, rows], float("nan"))
        self.alternatives[:, rows] = torch.where(filled, nothing, self.alternatives[:, rows])

    # -- reading ---------------------------------------------------------------------------------

    def on_host(self, rows: list[int]) -> BatchRecord:
        """The record of some rows on the host, with one copy per buffer; to be read."""
        self.flush()
        host = copy(self)
        host._unflushed = []  # the list of this record goes on
        host.keep(rows)
        host.commit, host.commit_step = host.commit.cpu(), host.commit_step.cpu()
        host.alternatives = host.alternatives.cpu()
        host.mean_entropy, host.steps = host.mean_entropy.cpu(), host.steps.cpu()
        return host

    def read(
        self, row: int, *, tokens: Tensor, sampler: Sampler, constraint: Constraint | None, seed: int, window: Tensor
    ) -> RowRecord:
        """All that is known of a row: what this record holds, and what the caller knows."""
        self.flush()
        steps, names = int(self.steps[row]), sampler.policy.score.term_names
        terms = self.commit[len(COMMIT) : len(COMMIT) + len(names), row]
        return RowRecord(
            tokens=tokens,
            sampler=sampler,
            constraint=None if constraint is None else constraint.to_dict(),
            seed=seed,
            steps=steps,
            probes=self.probes[row],
            commit_step=self.commit_step[row],
            **{name: self.commit[i, row] for i, name in enumerate(COMMIT)},
            score=terms.sum(0),
            terms=dict(zip(names, terms, strict=True)),
            committed=self._committed(row, steps),
            mean_entropy=self.mean_entropy[row, :steps],
            window=window,
            events=self.events[row],
            drafts=self.drafts[row],
        )

    def _committed(self, row: int, steps: int) -> Tensor:
        """Tokens committed at each of the row's steps."""
        written = self.commit_step[row]
        if self.events[row]:
            written = torch.tensor([step for step, _, token in self.events[row] if token >= 0])
        return torch.bincount(written[written >= 0], minlength=steps)


class HostRows:
    """Rows of a batch on the host. Arrays over all of them are ready; the record of a row is made when it is asked for,
    because many callers need a row's tokens alone."""

    def __init__(
        self,
        record: BatchRecord,
        tokens: Tensor,
        samplers: Sequence[Sampler],
        constraints: Sequence[Constraint | None],
        seeds: Sequence[int],
        window: Ints,
        alternatives: Sequence[int],
    ) -> None:
        """`record` and `tokens` `[N, L]` are on the host; `window` `[N, 2, T]` is what each forward recomputed."""
        self._record, self._tokens, self._samplers, self._seeds, self._window = record, tokens, samplers, seeds, window
        self._constraints, self._alternatives = constraints, alternatives
        self.tokens: Ints = tokens.numpy()
        """The rows' whole canvases, `[N, L]`."""
        self.commit_step: Ints = record.commit_step.numpy()
        """As in :class:`RowRecord`, `[N, S]`."""
        self.steps: list[int] = record.steps[:, 0].tolist()
        self.forwards = [steps + sum(probes) for steps, probes in zip(self.steps, record.probes, strict=True)]
        """Of each row, probes included."""
        self.probes = record.probes
        """Of each row at each of its steps; empty where its sampler has none."""

    def columns(self, at: int) -> int:
        """The columns that the forwards of a row computed, without probes and drafts."""
        start, stop = self._window[at, :, : self.steps[at]]
        return int((stop - start).sum())

    def alternatives(self, at: int) -> list[Alternatives]:
        """The most probable tokens of each offset of a row when it was committed, as many as were asked for."""
        return [pairs(numbers, self._alternatives[at]) for numbers in self._record.alternatives[:, at].T.numpy()]

    def record(self, at: int) -> RowRecord:
        """All that is known of a row."""
        return self._record.read(
            at,
            tokens=self._tokens[at],
            sampler=self._samplers[at],
            constraint=self._constraints[at],
            seed=self._seeds[at],
            window=torch.from_numpy(self._window[at, :, : self.steps[at]]),
        )

    @property
    def drawn_logp(self) -> NDArray[np.float64]:
        """The log probability of each committed token in the distribution it was drawn from, `[N, S]`; NaN elsewhere.
        Where the state does not record it, that of the clean logits."""
        found: NDArray[np.float64] = self._record.commit[COMMIT.index("drawn_logp")].numpy()
        return found

    @property
    def rows_without_probability(self) -> NDArray[np.bool_]:
        """Rows `[N]` with a token that was committed without a probability."""
        entropy = self._record.commit[COMMIT.index("entropy")]
        found: NDArray[np.bool_] = ((self._record.commit_step >= 0) & entropy.isnan()).any(1).numpy()
        return found


def _grow(old: Tensor, shape: tuple[int, ...], fill: float) -> Tensor:
    new = old.new_full([max(a, b) for a, b in zip(old.shape, shape, strict=True)], fill)
    new[tuple(slice(n) for n in old.shape)] = old
    return new
