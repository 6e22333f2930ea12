"""The engine with requests of unequal length that arrive at random: `bench/engine.py --arrivals` runs it.

First more requests arrive than the engine can serve: its tokens per second, beside a fixed batch of as many equal rows
of full length, which never waits for a row. Then a few requests a second arrive, with the most rows: the time from the
arrival of a request to its first settled token, which no later forward can change.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import serve_engine
import torch
import workload
from serve_engine import Requests, synchronize

from uncode.core.canvas import Canvas
from uncode.core.denoiser import Denoiser
from uncode.core.pieces.policy import Sampler
from uncode.engine import Engine, Result, RowStep
from uncode.generation.decoding import steps

LOAD = 2.0
"""Arriving tokens, in multiples of what the fixed batch decodes: so many that some always wait."""
MIN_SHARE = 0.85
MAX_SECONDS = 12.0
"""Of arrivals at one rate."""


@dataclass
class Reply:
    """What a caller sees of a request. Times are seconds of the host's clock."""

    arrived: float
    settled: float | None = None
    """When its first token was settled."""

    def hear(self, step: RowStep) -> bool:
        if step.settled and self.settled is None:
            self.settled = time.perf_counter()
        return False


def drive(
    engine: Engine[Reply], supply: Requests, rate: float, most: int | None = None, at_once: int = 0
) -> Iterator[Result[Reply]]:
    """Submit requests as they arrive, `rate` a second at random times (Poisson); yield results as they finish.

    `at_once` requests are there at the beginning; after `most` none arrives. A request is late where a forward is
    running as it arrives, so its reply has the time of the arrival.
    """
    random, due, left = Random(0), time.perf_counter(), itertools.count() if most is None else iter(range(most))
    for _ in itertools.islice(left, at_once):
        engine.submit(replace(supply.next(), key=Reply(due)))
    while True:
        while due <= time.perf_counter() and next(left, None) is not None:
            reply = Reply(due)
            listener = None if most is None else reply.hear
            engine.submit(replace(supply.next(), key=reply, on_step=listener))
            due += random.expovariate(rate)
        if not engine.is_idle:
            yield from engine.step()
        elif due > time.perf_counter():
            time.sleep(due - time.perf_counter())
        else:
            return


def full_rows(model: Denoiser, sampler: Sampler, rows: int) -> float:
    """Tokens per second of a fixed batch of equal rows with the longest prompt and the longest answer."""
    length, prompt = serve_engine.LENGTHS[torch.device(model.device).type][1], serve_engine.PROMPTS[1]
    random = Random(0)
    prompts = [[random.randrange(100, 500) for _ in range(prompt)] for _ in range(rows)]
    canvas = Canvas.after_prompt(prompts, length=length, mask_id=model.mask_id)
    seconds = []
    for _ in range(2):  # the first captures CUDA graphs
        synchronize(model)
        began = time.perf_counter()
        for _ in steps(model, canvas, sampler):
            pass
        synchronize(model)
        seconds.append(time.perf_counter() - began)
    return rows * length / min(seconds)


def busy(model: Denoiser, sampler: Sampler, rows: int, count: int, fixed: float) -> float:
    """Tokens per second of the engine while requests always wait: `count` results, after two for each row."""
    mean = sum(serve_engine.LENGTHS[torch.device(model.device).type]) / 2
    results = drive(Engine[Reply](model, max_rows=rows), Requests(model, sampler), LOAD * fixed / mean, at_once=rows)
    for _ in range(2 * rows):
        next(results)
    synchronize(model)
    began = time.perf_counter()
    tokens = sum(result.request.canvas.span for result in itertools.islice(results, count))
    synchronize(model)
    return tokens / (time.perf_counter() - began)


def waits(model: Denoiser, sampler: Sampler, rows: int, rate: float, count: int) -> list[float]:
    """Seconds from the arrival of each request to its first settled token."""
    most = max(min(count, int(rate * MAX_SECONDS)), 1)
    results = list(drive(Engine[Reply](model, max_rows=rows), Requests(model, sampler), rate, most))
    return [reply.settled - reply.arrived for reply in (one.request.key for one in results) if reply.settled]


def compare(
    model: Denoiser, cache: str, quota: int, batches: Sequence[int], rates: Sequence[float], count: int
) -> float:
    """Print both. Returns the least share of the fixed batch's tokens per second that the engine reaches."""
    sampler, shares = workload.sampler_of(cache, quota), []
    given = f"{cache}, {quota} a forward"
    for rows in batches:
        fixed = full_rows(model, sampler, rows)
        found = busy(model, sampler, rows, count, fixed)
        shares.append(found / fixed)
        equal, random = f"{rows} equal rows {fixed:.1f} tokens/s", f"requests at random {found:.1f}"
        print(f"{given}: {equal}, {random}: {found / fixed:.2f} of it", flush=True)
    most = max(batches)
    for rate in rates:
        seconds = waits(model, sampler, most, rate, count)
        p50, p99 = np.quantile(seconds, [0.5, 0.99])
        what = f"{given}, at most {most} rows, {rate:g} requests/s"
        print(f"{what}: first settled token p50 {p50:.2f} s, p99 {p99:.2f} s of {len(seconds)}", flush=True)
    return min(shares)
