"""What one forward did to a row, for callers who stream."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..core.stepper.advance import Step
from ..core.stepper.record import Alternatives, Decision, pairs
from ..core.stepper.state import State
from ..core.support.arrays import Ints


class Change(NamedTuple):
    """A token that was committed, or taken back."""

    offset: int
    """From the start of the row's generated span."""
    token: int | None
    """None where the remasker erased what stood there."""
    logp: float | None
    """None where nothing was committed, or where it is no finite number: samplers may commit what they believe
    impossible."""
    entropy: float | None = None
    alternatives: Alternatives = ()
    """The most probable tokens, as many as the request asked for."""


@dataclass(frozen=True, eq=False)
class RowStep:
    """One row after a step: a forward, and the probes of samplers that have some."""

    index: int
    """The row's own steps before this one. It starts again at 0 if the engine starts the row again."""
    tokens: list[int]
    """The generated span as it is now, masks included."""
    settled: int
    """Leading offsets of the span that no later step can change."""
    changes: list[Change]
    """What this step committed, then what it erased. EOS tokens with which a stop rule fills the rest are in `tokens`
    alone."""
    mean_entropy: float | None = None
    """Of the positions that this step could have written; None where there was none."""


def row_steps(state: State, step: Step, rows: Ints, spans: list[int]) -> list[RowStep]:
    """The last step of some rows (indices); `spans` are the lengths of their generated spans.

    All that the host must know comes in one device-to-host copy.
    """
    index = torch.from_numpy(rows).to(state.facts.device)
    decision, belief = step.decision, step.decision.belief
    erased = torch.zeros_like(decision.chosen) if decision.erased is None else decision.erased
    parts = [
        state.batch.generated[index],
        step.offsets.expand(len(decision.chosen), -1)[index],
        decision.chosen[index].long(),
        erased[index].long(),
        belief.token[index],
        *(
            values[index].double().view(torch.int64)
            for values in (belief.logp, belief.entropy, _mean_entropy(decision))
        ),
    ]
    if decision.alternatives is not None:
        parts.append(decision.alternatives[index].flatten(1).view(torch.int64))
    widths = [part.shape[1] for part in parts]
    packed: Tensor = torch.cat(parts, 1).cpu()
    tokens, offsets, chosen, removed, proposed, *floats = (part.numpy() for part in torch.split(packed, widths, 1))
    logp, entropy, mean, *likely = (np.ascontiguousarray(part).view(np.float64) for part in floats)
    open_from, forwards = state.rows.starts[rows], state.clock - state.rows.joined_at_step[rows]
    found = []
    for at, (row, span) in enumerate(zip(rows.tolist(), spans, strict=True)):
        masked = np.flatnonzero(tokens[at, :span] == state.facts.mask_id)
        settled = int(masked[0]) if len(masked) else span
        if state.revising[row] and not state.rows.finished[row]:
            settled = min(settled, int(open_from[at]))  # a remasker takes back tokens of the open block
        written, taken = np.flatnonzero(chosen[at]), np.flatnonzero(removed[at])
        changes = [
            Change(
                int(offsets[at, c]),
                int(proposed[at, c]),
                _finite(logp[at, c]),
                _finite(entropy[at, c]),
                pairs(likely[0][at].reshape(len(chosen[at]), -1)[c], state.alternatives[row]) if likely else (),
            )
            for c in written
        ]
        changes += [Change(int(offsets[at, c]), None, None) for c in taken]
        average = _finite(mean[at, 0])
        found.append(RowStep(int(forwards[at]) - 1, tokens[at, :span].tolist(), settled, changes, average))
    return found


def _finite(value: float) -> float | None:
    """A number for JSON, which has no NaN and no infinity."""
    return float(value) if math.isfinite(value) else None


def _mean_entropy(decision: Decision) -> Tensor:
    """Of the positions that could be written, `[B, 1]`; NaN where there was none."""
    could = decision.score > float("-inf")
    return torch.where(could, decision.belief.entropy, 0.0).sum(-1, keepdim=True) / could.sum(-1, keepdim=True)
