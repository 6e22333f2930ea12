"""`rollout`: many samples of each prompt on the engine, with what a policy gradient needs of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ..core.canvas import Canvas
from ..core.denoiser import Denoiser
from ..core.errors import require, shown
from ..core.pieces.policy import Sampler
from ..core.pieces.propose import Adjust, Sample
from ..core.pieces.stop import AfterEos
from ..core.support.arguments import checks_arguments, whole_number
from ..engine import Engine, Request
from ..generation.generate import sampler_for
from ..generation.prompt import Length, canvas_of, is_one_prompt, read_prompts
from ..samplers.catalog import read_shared
from ..samplers.options import DEFAULT_SAMPLER
from ..samplers.preset import with_shared
from ..samplers.resolve import SamplerLike, resolve
from .rollout import Rollout
from .samples import Row


@checks_arguments()
def rollout(
    denoiser: Denoiser,
    prompts: Canvas | str | Sequence[Any],
    *,
    n: int = 16,
    sampler: SamplerLike = DEFAULT_SAMPLER,
    temperature: float | None = None,
    length: Length = None,
    seed: int = 0,
    stop_at_eos: bool = True,
    max_rows: int = 64,
) -> Rollout:
    """`n` samples of each prompt, with the step map and the log-probability of every token that was drawn.

    `prompts` are texts or messages as :func:`uncode.generate` reads them, or a canvas, for token ids. Sample s is the
    row that :func:`uncode.decode` writes with the seed `seed + s`, whatever its neighbours. `temperature` is that of
    the draws; None is the sampler's own, or 1 where it draws none. `max_rows` rows are decoded at a time.
    """
    whole_number(n, "n", 1)
    whole_number(seed, "seed", -(2**63))
    require(isinstance(stop_at_eos, bool), f"stop_at_eos must be True or False, not {shown(stop_at_eos)}.")
    drawing = _drawing(denoiser, sampler, temperature)
    rows = list(_rows(denoiser, prompts, drawing, length, stop_at_eos))
    whole_number(seed + len(rows) * n - 1, "the seed of the last sample", -(2**63))
    engine = Engine[int](denoiser, max_rows=max_rows, drawn_logp=True)
    requests = (
        Request(canvas, own, seed + at * n + sample, key=at * n + sample)
        for at, (canvas, own) in enumerate(rows)
        for sample in range(n)
    )
    found: dict[int, Row] = {}
    for result in engine.run(requests):
        if result.row is None:
            assert result.error is not None
            raise result.error
        found[result.request.key] = Row.of(result.row, result.request.key // n, result.request.seed)
    return Rollout.of([found[key] for key in range(len(rows) * n)], drawing, denoiser)


def _drawing(denoiser: Denoiser, sampler: SamplerLike, temperature: float | None) -> Sampler:
    """The sampler as it draws the samples. Raise where the probability of what it draws is not known."""
    made = resolve(sampler, denoiser)
    if temperature is None:
        temperature = (made.propose.temperature if isinstance(made.propose, Sample) else 0.0) or 1.0
    made = with_shared(made, read_shared(made.name, {"temperature": temperature}))
    require(temperature > 0, "the samples of a rollout are drawn: the temperature must be above 0.")
    propose, name = made.propose, f"the sampler '{made.name}'"
    assert isinstance(propose, Sample)
    draws = type(propose) is Sample and propose.top_k is None and (propose.top_p or 1) == 1 and not propose.min_p
    require(
        draws,
        f"{name} cuts its draws, and new weights would cut them elsewhere: leave out top_k, top_p, min_p and legacy "
        "samplers.",
    )
    require(
        made.adjust == Adjust(),
        f"{name} adjusts logits, and those of new weights are read as they are: leave out penalties and biases.",
    )
    policy = made.policy
    rewrites = type(policy.edit or policy.remask).__name__ if policy.revises else type(policy.stop).__name__
    require(
        not (policy.revises or policy.stop.overwrites),
        f"{name} may change tokens that were written ({rewrites}), so a step map does not say what it did: choose "
        "another sampler.",
    )
    return made


def _rows(
    denoiser: Denoiser, prompts: Canvas | str | Sequence[Any], sampler: Sampler, length: Length, stop_at_eos: bool
) -> Iterator[tuple[Canvas, Sampler]]:
    """The canvas of each prompt, and the sampler with its stop rule."""
    if not isinstance(prompts, Canvas):
        for prompt in read_prompts(denoiser, [prompts] if is_one_prompt(prompts) else prompts, length):
            yield canvas_of(denoiser, [prompt]), sampler_for(denoiser, prompt, sampler, stop_at_eos)
        return
    require(length is None, "a canvas has its length already: leave `length=` out.")
    stops = stop_at_eos and len(denoiser.eos_ids) > 0
    for tokens, valid in zip(prompts.tokens, prompts.valid, strict=True):
        head, tail = (t[v] for t, v in zip(_split(tokens, prompts.start), _split(valid, prompts.start), strict=True))
        canvas = Canvas._assemble([head], [tail], prompts.mask_id, None)
        yield canvas, sampler.stopping(AfterEos()) if stops and bool((tail == canvas.mask_id).all()) else sampler


def _split(values: torch.Tensor, at: int) -> tuple[torch.Tensor, torch.Tensor]:
    return values[:at], values[at:]
