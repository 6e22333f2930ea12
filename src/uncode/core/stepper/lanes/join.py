"""Lanes: the rows of a batch sorted by sampler, and how new rows join them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from ...canvas import Canvas
from ...denoiser import Facts
from ...errors import require
from ...pieces.policy import Sampler
from ...support.arrays import Ints
from ..rows import Rows
from .decide import Lane
from .memory import Memory
from .probes import Probes


def add_lanes(
    lanes: Sequence[Lane], samplers: Sequence[Sampler], facts: Facts, whole_span: bool
) -> tuple[list[Lane], Ints]:
    """Add lanes for new rows where no lane has their sampler. Returns all lanes, and the number of each new row's."""
    found, numbers = list(lanes), []
    for sampler in samplers:
        known = [number for number, lane in enumerate(found) if lane.spec is sampler or lane.spec == sampler]
        if not known:
            found.append(_bind(sampler, facts, whole_span))
        numbers.append(known[0] if known else len(found) - 1)
    return found, np.array(numbers)


def _bind(sampler: Sampler, facts: Facts, whole_span: bool) -> Lane:
    require(
        not whole_span or sampler.cache.sees_span,
        f"observe='span' needs every masked position at every step, which {type(sampler.cache).__name__} skips: "
        "use another cache or observe='open'.",
    )
    require(
        not sampler.policy.stop.sees_beliefs or sampler.cache.sees_span,
        f"{type(sampler.policy.stop).__name__} needs every masked position at every step, which "
        f"{type(sampler.cache).__name__} skips: use another cache.",
    )
    require(
        not (sampler.policy.stop.reads_committed and sampler.cache.needs_kv_cache),
        f"{type(sampler.policy.stop).__name__} reads committed positions too, which {type(sampler.cache).__name__} "
        "does not compute again: use a sampler without a cache.",
    )
    require(
        facts.has_kv_cache or not sampler.cache.needs_kv_cache,
        f"this model has no KV cache, and {type(sampler.cache).__name__} needs one: use a sampler without a cache.",
    )
    bound = sampler.bind(facts)
    return Lane(sampler, bound, memory=Memory.of(bound, facts), probes=Probes.of(bound, facts.mask_id))


def plan_rows(canvas: Canvas, lanes: Sequence[Lane], numbers: Ints, ids: Ints, clock: int) -> Rows:
    """New rows with their blocks and steps, planned lane by lane, in the order of the canvas."""
    masked, lengths = canvas.masked[:, canvas.start :].cpu().numpy(), canvas.lengths.cpu().numpy()
    parts = []
    for number in np.unique(numbers):
        here = np.flatnonzero(numbers == number)
        part = Rows.plan(lanes[number].sampler, masked[here], lengths[here], clock)
        part.ids, part.lane = ids[here], numbers[here]
        parts.append(part)
    rows = reduce(Rows.join, parts)
    return rows.take(np.argsort(rows.ids))
