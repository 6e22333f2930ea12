"""What a caller of the stepper passes: samplers and seeds, one per row or one for all, and options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from typing import Literal, TypedDict

import numpy as np
from torch import Tensor

from ..canvas import Canvas
from ..denoiser import Facts
from ..errors import UncodeError, require, shown
from ..noise import Noise
from ..pieces.blocks import BlockSchedule
from ..pieces.policy import Sampler
from ..support.arguments import whole_number
from ..support.memory import require_memory
from ..support.reprs import counted
from .lanes.memory import buffers_of
from .rows import room_for

Samplers = Sampler | Sequence[Sampler]
Seeds = int | Sequence[int]
Observe = Literal["open", "span"]
NoiseSource = Callable[[Tensor, Tensor], Noise]


class DecodeOptions(TypedDict, total=False):
    """What a decode records, and where its random numbers come from; see :func:`.decode.decode`."""

    observe: Observe
    drafts: bool
    noise: NoiseSource


def check_options(observe: object, drafts: object, noise: object) -> None:
    """Raise if an option has a wrong value."""
    known = isinstance(observe, str) and observe in ("open", "span")
    require(known, f"observe must be 'open' or 'span', not {shown(observe)}.")
    require(isinstance(drafts, bool), f"drafts must be True or False, not {shown(drafts)}.")
    require(callable(noise), f"noise makes a Noise of seeds and steps, PhiloxNoise say, not {shown(noise)}.")


def each_sampler(samplers: Samplers, count: int) -> list[Sampler]:
    """One sampler per row, from one for all or a list."""
    each = [samplers] * count if isinstance(samplers, Sampler) else samplers
    made = f": call it, {samplers.__name__}(...)" if inspect.isfunction(samplers) else ""
    fits = isinstance(each, Sequence) and all(isinstance(sampler, Sampler) for sampler in each)
    if not fits:  # the text of many samplers takes longer than the check
        raise UncodeError(f"a sampler was expected, presets.confidence() say, not {shown(samplers)}{made}.")
    require(len(each) == count, f"{counted(len(each), 'sampler')} for {counted(count, 'row')}: give one for each.")
    return list(each)


def each_seed(seeds: Seeds, count: int) -> list[int]:
    """One seed per row: row r of one seed for all uses the seed plus r."""
    try:
        each = [index(seeds) + row for row in range(count)]  # type: ignore[arg-type]
    except TypeError:
        listed = list(seeds) if isinstance(seeds, Iterable) and not isinstance(seeds, str | bytes | Mapping) else []
        require(len(listed) > 0, f"a seed is a whole number or one per row, not {shown(seeds)}.")
        each = [whole_number(seed, "a seed", least=-(2**63)) for seed in listed]
    require(len(each) == count, f"{counted(len(each), 'seed')} for {counted(count, 'row')}: give one for each.")
    require(all(-(2**63) <= seed < 2**63 for seed in each), "a seed must fit in 64 bits.")
    return each


def each_count(alternatives: Sequence[int], samplers: Sequence[Sampler], facts: Facts) -> list[int]:
    """How many alternatives of its tokens each row asks for."""
    each = [whole_number(count, "alternatives") for count in alternatives or [0] * len(samplers)]
    require(max(each) <= facts.vocab_size, f"this model has {facts.vocab_size} tokens: ask for fewer alternatives.")
    drafts = any(count and sampler.draft_steps > 1 for count, sampler in zip(each, samplers, strict=True))
    require(not drafts, "the alternatives of a token are not known of draft steps: leave out one of the two.")
    return each


def require_logits(
    canvas: Canvas, samplers: Sequence[Sampler], facts: Facts, whole_span: bool, *, edited: bool = False
) -> None:
    """Raise unless one forward's logits fit: `[B, W, V]` in float32, with W the widest open block, or the span.

    What pieces remember per token takes as much again, and so do each further step of a forward and edited logits.
    """
    lengths = canvas.lengths.tolist()
    different = {(id(sampler), length): sampler for sampler, length in zip(samplers, lengths, strict=True)}
    widths = (_widest(sampler.policy.blocks, length) for (_, length), sampler in different.items())
    whole_span = whole_span or any(one.policy.stop.sees_beliefs or one.max_probes for one in different.values())
    widest = canvas.span if whole_span else max(widths)
    remembered = ([buffer.per for buffer in buffers_of(sampler)] for sampler in different.values())
    copies = max(one.draft_steps for one in different.values()) * (1 + edited)
    copies += max((each.count("token") for each in remembered), default=0)
    require_memory(
        4 * copies * canvas.rows * widest * facts.vocab_size,
        facts.device,
        f"a step that sees {canvas.rows * widest:,} positions",
        "use a shorter length, a smaller batch or shorter blocks",
    )


def _widest(blocks: BlockSchedule, length: int) -> int:
    """The most columns that a step lays out for a row of this length."""
    widest = int(blocks.widest(np.array([length]))[0])
    return min(room_for(widest), length) if blocks.slides else widest
