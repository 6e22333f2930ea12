"""The public `decode` and `steps`: the stepper, with samplers also by name and from sampler files."""

from __future__ import annotations

from typing import Unpack

from ..core.canvas import Canvas
from ..core.denoiser import Denoiser
from ..core.stepper.constraints import Constraints
from ..core.stepper.decode import OPTION_PARAMETERS, Steps
from ..core.stepper.requests import DecodeOptions, Seeds
from ..core.support.arguments import checks_arguments
from ..core.trace.trace import Trace
from ..samplers.resolve import SamplersLike, resolve_each


@checks_arguments(rest=OPTION_PARAMETERS)
def steps(
    denoiser: Denoiser,
    canvas: Canvas,
    sampler: SamplersLike,
    seed: Seeds = 0,
    constraint: Constraints = None,  # as in decode
    **options: Unpack[DecodeOptions],
) -> Steps:
    """The decode of :func:`decode` as an iterator of steps: one forward and its probes each."""
    return Steps(denoiser, canvas, resolve_each(sampler, denoiser), seed, constraint, **options)


@checks_arguments(rest=OPTION_PARAMETERS)
def decode(
    denoiser: Denoiser,
    canvas: Canvas,
    sampler: SamplersLike,
    seed: Seeds = 0,
    constraint: Constraints = None,
    **options: Unpack[DecodeOptions],
) -> Trace:
    """Fill every mask of the canvas and return the trace.

    `sampler` is a Sampler, the name of a preset or of one of the model's own sampler files, or the path of a sampler
    file. `sampler` and `seed` are one for all rows (row r then uses seed + r) or one per row, and so is `constraint`,
    which :func:`uncode.constraint` makes. `observe="span"` forms beliefs over all masked positions at every step, not
    only the open block; `drafts=True` keeps the whole proposal of every step; `noise` replaces the source of random
    numbers.
    """
    return steps(denoiser, canvas, sampler, seed, constraint, **options).trace()
