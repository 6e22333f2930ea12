"""What a policy may look at, and the ranking its selector chooses from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from .belief import NOTHING, Belief
from .noise import Noise
from .support.reprs import counted

Count = int | Tensor
"""One number for all rows, or one per row as `[B, 1]`; formulas of pieces hold for both."""


def part_of(count: Count, share: float) -> Count:
    """A share of a count, rounded down."""
    return int(count * share) if isinstance(count, int) else (count * share).long()


@dataclass(frozen=True, eq=False)
class Probed:
    """What the model says of another canvas, over the whole generated span, `[B, S]`."""

    belief: Belief
    masked: Tensor
    """Which positions of that canvas are masked."""

    def window(self, offsets: Tensor) -> Belief:
        """The belief of the columns at these offsets, `[B, W]`. Its `standing` is about the tokens of the step's own
        canvas: how likely the model finds them on the other one."""

        def pick(values: list[Tensor]) -> Tensor:
            return values[0].gather(-1, offsets.expand(len(values[0]), -1))

        standing = self.belief.standing_logit
        belief = Belief.join([self.belief], pick, tokens=True)
        return replace(belief, standing_logit=None if standing is None else pick([standing]))


class Prober(Protocol):
    """Runs forwards within a step. Each is counted as a forward of the rows that need it."""

    def __call__(self, tokens: Tensor, needed: Tensor) -> Probed:
        """The beliefs of the rows' canvases with `tokens` `[B, W]` in the window. Only rows that are `needed` `[B]`
        are counted, and only theirs mean anything."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class View:
    """What pieces see of the open window of each row: `W` columns, the same for all rows. It is read-only: each stage
    of a step makes the next view from the last."""

    tokens: Tensor
    """The tokens of the window as they are now, `[B, W]`."""
    masked: Tensor
    """The masks of the open block, `[B, W]`."""
    eligible: Tensor
    """Those that this step's forward has computed, and so may be committed, `[B, W]`; all of them, unless a cache
    policy leaves some out."""
    offsets: Tensor
    """Columns from the start of the generated span, `[B, W]` or `[1, W]`."""
    places: Tensor
    """The same in float64, for arithmetic."""
    block_start: Count
    """The offset at which the open block starts."""
    block_length: Count
    """Its columns, given ones included."""
    block_masked: Count
    """Masks in the block when it opened."""
    block_steps: Count
    """The block's share of the steps, for selectors that have a total; else 0."""
    block_step: Count
    """Steps since the block opened."""
    noise: Noise
    """This step's random numbers."""
    span: Tensor
    """The tokens of the whole generated span, `[B, S]`: what stands outside the window too."""
    span_length: Count
    """The row's columns in it; those behind are padding."""
    writable: Tensor
    """Positions of the open block that are not given, `[B, W]`."""
    logp_at_commit: Tensor | None = None
    """The log probability each standing token was committed with, `[B, W]`; set for remaskers."""
    belief: Belief = NOTHING
    """What the model believes of each position; empty for proposals, which come before it."""
    memory: Mapping[str, Tensor] = field(default_factory=dict)
    """What the pieces' buffers hold, by their names."""
    chosen: Tensor | None = None
    """What this step commits, `[B, W]`; for remaskers and for `remember`."""
    probe: Prober | None = None
    """Asks the model about other canvases; set for samplers with a piece that needs probes."""

    def __repr__(self) -> str:
        rows, columns = self.tokens.shape
        return f"View({counted(rows, 'row')}, {counted(columns, 'column')}, {int(self.eligible.sum())} eligible)"

    @property
    def own(self) -> Tensor:
        """Tokens of the open block that the decoder wrote, `[B, W]`; once chosen, this step's included."""
        return self.writable & (~self.masked if self.chosen is None else ~self.masked | self.chosen)

    def having(self, **changes: Any) -> View:
        """The same view with other values, without the checks of `dataclasses.replace`: they are a tenth of a small
        step."""
        other = object.__new__(View)
        other.__dict__.update(self.__dict__, **changes)
        return other

    def committing(self, chosen: Tensor) -> View:
        """The view once `chosen` is committed: what remaskers see, and what is remembered."""
        logp = self.logp_at_commit
        known = None if logp is None else torch.where(chosen, self.belief.logp.double(), logp)
        return self.having(chosen=chosen, logp_at_commit=known)

    def take(self, rows: Tensor) -> View:
        """The view of some of the rows, before a belief is formed."""

        def taken(value: Tensor) -> Tensor:
            return value if len(value) == 1 else value[rows]

        each = {name: taken(value) for name, value in vars(self).items() if isinstance(value, Tensor)}
        if self.eligible is self.masked:
            each["eligible"] = each["masked"]
        return self.having(noise=self.noise.take(rows), **each)

    def of_span(self, tokens: Tensor, masked: Tensor) -> View:
        """The view of another canvas: `tokens` `[B, S]` in the generated span, all of which is the window."""
        offsets = torch.arange(tokens.shape[1], device=tokens.device)[None]
        return self.having(
            tokens=tokens,
            masked=masked,
            eligible=masked,
            offsets=offsets,
            places=offsets.double(),
            span=tokens,
            writable=masked,
        )


def never(like: Tensor) -> Tensor:
    """The score of a position that must not be chosen, minus infinity, of the type of `like` and where it is."""
    return _never(like.dtype, like.device)


@cache
def _never(dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return torch.full((), float("-inf"), dtype=dtype, device=device)


class Ranking:
    """Ranks the positions `among` by score, highest first. Ties go to the lowest position; -inf is never chosen."""

    def __init__(self, score: Tensor, among: Tensor) -> None:
        self.score = torch.where(among, score, never(score))
        self._among = among

    @cached_property
    def candidates(self) -> Tensor:
        """Positions that may be chosen at all."""
        return self.score > never(self.score)

    @cached_property
    def order(self) -> Tensor:
        """Column indices from best to worst."""
        return self.score.argsort(dim=-1, descending=True, stable=True)

    @cached_property
    def rank(self) -> Tensor:
        """Each column's rank in the order, the best is 0."""
        ranks = torch.arange(self.score.shape[-1], device=self.score.device).expand_as(self.order)
        return torch.empty_like(self.order).scatter_(-1, self.order, ranks)

    def top(self, count: Count) -> Tensor:
        """The best `count` candidates."""
        if isinstance(count, int) and count == 1:
            value, best = self.score.max(-1, keepdim=True)
            return torch.zeros_like(self._among).scatter_(-1, best, value > never(value))
        return (self.rank < count) & self.candidates
