"""What was recorded of one row: the form in which the stepper hands a finished row to its trace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from ..pieces.policy import Sampler

GIVEN, FILLED, OPEN = -1, -2, -3
"""Values of `commit_step` that are no step: given, filled by the stop rule, not committed yet."""

Event = tuple[int, int, int]
"""A step, an offset, and the token written there; -1 for erased."""


@dataclass(frozen=True, eq=False)
class RowRecord:
    """A row with its record over offsets, `[S]`, and over its own steps, `[T]`. Tensors may be on the device."""

    tokens: Tensor
    """The row's whole canvas, `[L]`."""
    sampler: Sampler
    """As the caller gave it."""
    constraint: dict[str, Any] | None
    """The row's constraint as data; None where it has none."""
    seed: int
    steps: int
    """Steps the row took part in: T."""
    commit_step: Tensor
    """The step at which the offset was committed, or one of GIVEN, FILLED and OPEN."""
    runner_up: Tensor
    """The best offset that the same step left masked; NaN where none was left."""
    logp: Tensor
    entropy: Tensor
    margin: Tensor
    score: Tensor
    terms: dict[str, Tensor]
    """Each term of the score at commit, `[S]`, by its name."""
    committed: Tensor
    """Tokens committed at each step."""
    mean_entropy: Tensor
    """Mean entropy of the masked positions at each step."""
    window: Tensor
    """The row's own positions that each step recomputed, first and one past the last, `[2, T]`."""
    events: list[Event]
    """Every write and erasure, in order; empty unless a remasker ran."""
    drafts: list[list[int]]
    """The whole proposal of each step, by offset; empty unless asked for."""
    probes: list[int]
    """Probes at each step; empty unless the sampler has any."""
    drawn_logp: Tensor | None = None
    """As in :class:`~uncode.core.belief.Belief`; no trace has it."""

    @property
    def forwards(self) -> int:
        """Forwards the row took part in, probes included."""
        return self.steps + sum(self.probes)

    def without_padding(self, before: int, start: int, span: int) -> RowRecord:
        """The record as of the row alone: `start` columns before the generated span, of which the batch has `before`,
        and `span` columns in it."""

        def cut(values: Tensor) -> Tensor:
            return values[:span].clone()

        return replace(
            self,
            tokens=self.tokens[before - start : before + span].clone(),
            commit_step=cut(self.commit_step),
            runner_up=cut(self.runner_up),
            logp=cut(self.logp),
            entropy=cut(self.entropy),
            margin=cut(self.margin),
            score=cut(self.score),
            terms={name: cut(term) for name, term in self.terms.items()},
            drafts=[draft[:span] for draft in self.drafts],
        )
