"""The engine with many requests at a time beside one at a time: tokens per second. `bench/serve.py --engine` runs it.

It imports nothing that only a server needs, so that it runs where torch and triton alone are installed.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
import workload

import uncode
from uncode.core.canvas import Canvas
from uncode.core.denoiser import Denoiser
from uncode.core.pieces.policy import Sampler
from uncode.engine import Engine, Request
from uncode.generation.decoding import decode

PROMPTS = (32, 96)
LENGTHS = {"cuda": (32, 256), "cpu": (16, 64)}
MIN_SPEEDUP = 3.5
ROUNDS = 3


@dataclass
class Pace:
    """Tokens that were committed, and the seconds that it took."""

    tokens: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.tokens / self.seconds


def load_model(device: str, layers: int, weights: str = "bf16") -> Denoiser:
    """On a GPU the 8.0 B network with random weights of bench/workload.py, on a CPU the embedded model."""
    if device == "cpu":
        return uncode.load("tiny", device="cpu", dtype="float32")
    return workload.denoiser(workload.network(layers, weights))


class Requests:
    """An endless supply of requests, the same in every run."""

    def __init__(self, model: Denoiser, sampler: Sampler | None = None) -> None:
        self._model, self._random, self._seeds = model, Random(0), itertools.count()
        self._lengths = LENGTHS[torch.device(model.device).type]
        self._sampler = sampler or workload.sampler_of("dual")

    def next(self) -> Request[Any]:
        random = self._random
        prompt = [random.randrange(100, 500) for _ in range(random.randint(*PROMPTS))]
        canvas = Canvas.after_prompt([prompt], length=random.randint(*self._lengths), mask_id=self._model.mask_id)
        return Request(canvas, self._sampler, next(self._seeds))


def synchronize(model: Denoiser) -> None:
    if torch.device(model.device).type == "cuda":
        torch.cuda.synchronize()


def alone(model: Denoiser, requests: Requests, tokens: int) -> Pace:
    """One request after the other, each by `decode`, until so many tokens are decoded."""
    synchronize(model)
    began, done = time.perf_counter(), 0
    while done < tokens:
        one = requests.next()
        decode(model, one.canvas, one.sampler, one.seed)
        done += one.canvas.span
    synchronize(model)
    return Pace(done, time.perf_counter() - began)


def together(model: Denoiser, requests: Requests, count: int) -> Callable[[int], Pace]:
    """An engine with `count` requests in flight at any time: one that finishes is followed by the next.

    Returns a function that runs it for so many tokens. The batch stays full from call to call, so neither an empty
    batch at the beginning nor a draining one at the end is measured. Every row commits one token per forward.
    """
    engine = Engine[None](model, max_rows=count)
    for _ in range(count):
        engine.submit(requests.next())

    def run(tokens: int) -> Pace:
        synchronize(model)
        began, done = time.perf_counter(), 0
        while done < tokens:
            for result in engine.step():
                if result.error is not None:
                    raise result.error
                engine.submit(requests.next())
            done += engine.last_rows
        synchronize(model)
        return Pace(done, time.perf_counter() - began)

    return run


def compare(device: str, layers: int, concurrency: int, tokens: int) -> float:
    """Print the tokens per second of both, measured in turns. Returns how many times faster many at a time are."""
    began = time.monotonic()
    model = load_model(device, layers)
    many = together(model, Requests(model), concurrency)
    one_row = together(model, Requests(model), 1)
    print("warm-up: kernels are compiled, CUDA graphs are captured", flush=True)
    single = Requests(model)
    alone(model, single, tokens // 4)
    one_row(tokens // 4)
    many(2 * tokens)
    print(f"after {time.monotonic() - began:.0f} s")
    print("tokens/s  |  decode, alone  engine, 1 at a time  |  engine, many at a time", flush=True)
    rates: list[tuple[float, float, float]] = []
    for _ in range(ROUNDS):
        found = alone(model, single, tokens), one_row(tokens), many(4 * tokens)
        rates.append((found[0].rate, found[1].rate, found[2].rate))
        print(f"{'':10}|  {found[0].rate:>13.1f}  {found[1].rate:>19.1f}  |  {found[2].rate:>22.1f}", flush=True)
    decoded, one, batch = (statistics.median(part) for part in zip(*rates, strict=True))
    speedup: float = batch / max(decoded, one)
    print(f"{concurrency} requests at a time give {speedup:.2f} times the tokens per second of one alone (medians)")
    print(f"{time.monotonic() - began:.0f} s")
    return speedup
