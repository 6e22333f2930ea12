"""Continuous batching beside fixed batches: tokens per second with answers of unequal length, in one run.

An 8.0 B network of LLaDA's shape with random weights decodes the same requests twice: in batches of a fixed size, one
after the other, and on the engine with as many rows. Blocks of 32, one token per step. Both write the same tokens but
for rounding. Needs a CUDA GPU with 80 GB; `--tiny` runs the embedded model on a CPU instead.

    python bench/engine.py
    python bench/engine.py --check    # fails if the engine is less than 1.3 times as fast
    python bench/engine.py --arrivals --check    # requests arrive at random; fails below 0.85 of equal, full rows
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Sequence
from random import Random
from typing import Any

import engine_arrivals
import torch
import workload
from serve_engine import load_model

from uncode.core.canvas import Canvas
from uncode.core.denoiser import Denoiser
from uncode.core.pieces.policy import Sampler
from uncode.engine import Engine, Request
from uncode.generation.decoding import decode

LENGTHS, PROMPTS = (32, 256), (32, 96)
MIN_SPEEDUP = 1.3


def requests(model: Denoiser, count: int, sampler: Sampler) -> list[Request[None]]:
    random, found = Random(0), list[Request[None]]()
    for seed in range(count):
        prompt = [random.randrange(100, 500) for _ in range(random.randint(*PROMPTS))]
        canvas = Canvas.after_prompt([prompt], length=random.randint(*LENGTHS), mask_id=model.mask_id)
        found.append(Request(canvas, sampler, seed))
    return found


def fixed_batches(model: Denoiser, work: list[Request[None]], size: int) -> dict[int, torch.Tensor]:
    """Every batch runs until its longest row has finished; rows that finish leave it."""
    found: dict[int, torch.Tensor] = {}
    for start in range(0, len(work), size):
        part = work[start : start + size]
        prompts = [one.canvas.tokens[0, : one.canvas.start].tolist() for one in part]
        lengths = [one.canvas.span for one in part]
        canvas = Canvas.after_prompt(prompts, length=lengths, mask_id=model.mask_id)
        trace = decode(model, canvas, part[0].sampler, [one.seed for one in part])
        found |= {one.seed: trace.generated[row, : lengths[row]] for row, one in enumerate(part)}
    return found


def engine(model: Denoiser, work: list[Request[None]], size: int) -> dict[int, torch.Tensor]:
    results = Engine[None](model, max_rows=size).run(work)
    return {one.request.seed: one.trace.generated[0] for one in results if one.trace is not None}


def seconds(run: Any) -> tuple[float, Any]:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    began = time.perf_counter()
    found = run()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - began, found


def unequal(model: Denoiser, cache: str, batches: Sequence[int], count: int) -> float:
    """Print both with requests that are all there at the beginning. Returns the least speed-up."""
    sampler, speedups = workload.sampler_of(cache), []
    for rows in batches:
        work = requests(model, count, sampler)
        for run in (fixed_batches, engine):  # compiles kernels
            run(model, work[:rows], rows)
        theirs, batches_found = seconds(lambda rows=rows, work=work: fixed_batches(model, work, rows))
        ours, results = seconds(lambda rows=rows, work=work: engine(model, work, rows))
        tokens = sum(one.canvas.span for one in work)
        differ = sum(not torch.equal(batches_found[seed], results[seed]) for seed in batches_found)
        print(
            f"{cache:<5}  {rows:>4}  {len(work):>8}  {tokens:>6}  |  {theirs:>8.2f}  {tokens / theirs:>8.1f}  |  "
            f"{ours:>9.2f}  {tokens / ours:>8.1f}  |  {theirs / ours:>6.2f}  {differ:>16}",
            flush=True,
        )
        speedups.append(theirs / ours)
    return min(speedups)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="the embedded model on a CPU")
    parser.add_argument("--rows", type=int, nargs="+", help="default: 8 16, and 16 64 with --arrivals")
    parser.add_argument("--requests", type=int, help="default: 64, and 128 with --arrivals")
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--caches", nargs="+", default=["dual"], choices=tuple(workload.CACHES))
    parser.add_argument("--check", action="store_true", help=f"fail below {MIN_SPEEDUP} times the fixed batches")
    arrivals = parser.add_argument_group("requests that arrive at random")
    arrivals.add_argument("--arrivals", action="store_true")
    arrivals.add_argument("--quotas", type=int, nargs="+", default=[4], help="tokens a forward")
    arrivals.add_argument("--rates", type=float, nargs="+", default=[1, 8, 32], help="requests a second")
    arrivals.add_argument("--weights", default="bf16", choices=workload.WEIGHTS)
    options = parser.parse_args()
    model = load_model("cpu" if options.tiny else "cuda", options.layers, options.weights)
    if options.arrivals:
        rest = options.rows or [16, 64], options.rates, options.requests or 128
        kinds = itertools.product(options.caches, options.quotas)
        shares = [engine_arrivals.compare(model, cache, quota, *rest) for cache, quota in kinds]
        return int(options.check and min(shares) < engine_arrivals.MIN_SHARE)
    print("cache  rows  requests  tokens  |  fixed: s  tokens/s  |  engine: s  tokens/s  |  faster  rows that differ")
    given = options.rows or [8, 16], options.requests or 64
    speedups = {cache: unequal(model, cache, *given) for cache in options.caches}
    return int(options.check and speedups.get("dual", MIN_SPEEDUP) < MIN_SPEEDUP)


if __name__ == "__main__":
    sys.exit(main())
