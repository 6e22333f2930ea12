"""Time and memory of a run, from a few measured forwards."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...core.pieces.policy import Sampler
from ...engine import Engine
from .config import LABEL_FREE
from .folder import RunFolder
from .models.model import SamplerRefused

if TYPE_CHECKING:
    from .models.diffusion import DiffusionModel
    from .models.model import Question
    from .runner import Runner

MEASURED_FORWARDS = 4
"""Forwards of the measured batch. The first is not counted: it compiles and allocates."""


@dataclass(frozen=True)
class Estimate:
    """What a run of one model will take."""

    least_seconds: float
    """At the speed of the fastest measured forward, with half of the forwards where fewer may do."""
    most_seconds: float
    """At the speed of the slowest, with all forwards."""
    samples: int
    bytes: int | None
    """Above the weights, at the peak of a forward; None where it cannot be measured."""


def estimate(runner: Runner, model: DiffusionModel) -> Estimate | None:
    """Measure the first batch of the task with the longest prompts, and scale by tokens times forwards.

    A forward without a KV cache computes every token of the canvas, so a run with caches takes less. A sampler that
    stops early or commits several tokens at a time may need half of its forwards, or fewer. None if nothing is left to
    measure.
    """
    least, most, samples = 0.0, 0.0, 0
    longest: tuple[int, Sampler, list[Question]] | None = None
    for task in runner.tasks.values():
        for entry in runner.entries(task.name):
            questions, settings = runner.questions(model, task, entry), entry.settings_for(task.settings)
            widths = [len(one.prompt_ids) + one.length for one in questions]
            if not questions:
                continue
            rate = {"rate": 0.0} if entry.options.get("rate") == LABEL_FREE else {}
            try:
                sampler = model.prepare(entry, settings, rate).sampler
            except SamplerRefused:  # the run itself reports it
                continue
            forwards, is_exact = expected_forwards(sampler, settings.length)
            work = forwards * sum(widths)
            least, most, samples = least + (work if is_exact else work / 2), most + work, samples + len(questions)
            if longest is None or max(widths) > longest[0]:
                longest = max(widths), sampler, questions
    if longest is None:
        return None
    _, sampler, questions = longest
    rates, peak = measure(model, sampler, questions, runner.options.batch)
    left = max(0, samples - RunFolder(runner.out).count_lines()) if runner.options.processes == 1 else samples
    share = left / samples
    return Estimate(least * min(rates) * share, most * max(rates) * share, left, peak)


def expected_forwards(sampler: Sampler, length: int) -> tuple[int, bool]:
    """The forwards of an answer, and whether that is exact. Without a schedule it is at most one for each token; probes
    come on top."""
    select, masked = sampler.policy.select, np.full((1, 1), length)
    shares = select.shares(masked)
    steps = int(shares.sum())
    is_exact = steps > 0 and int(select.min_steps(masked[:, 0], shares[:, 0])[0]) == steps
    probes = sampler.max_probes
    return (steps or length) * (1 + probes), is_exact and not probes and not sampler.policy.stop.stops


def measure(
    model: DiffusionModel, sampler: Sampler, questions: Sequence[Question], batch: int
) -> tuple[list[float], int | None]:
    """Seconds per token of each measured forward, and the peak of memory in bytes."""
    engine: Engine[Question] = Engine(model.denoiser, max_rows=batch)
    for question in sorted(questions, key=lambda one: -len(one.prompt_ids))[:batch]:
        engine.submit(model.request(question, sampler))
    rates = []
    for _ in range(MEASURED_FORWARDS):
        began, before = time.monotonic(), engine.forwards
        engine.step()
        seconds, tokens = time.monotonic() - began, engine.tokens
        if tokens:
            rates.append(seconds / tokens / (engine.forwards - before))
    peak = int(engine.budget.per_token * engine.budget.measured)
    return rates[1:] or rates, peak or None
