"""Continuous batching beside fixed batches: tokens per second with answers of unequal length, in one run.

An 8.0 B network of LLaDA's shape with random weights decodes the same requests twice: in batches of a fixed size, one
after the other, and on the engine with as many rows. Blocks of 32, one token per step. Both write the same tokens but
for rounding. Needs a CUDA GPU with 80 GB; `--tiny` runs the embedded model on a CPU instead.

    python bench/engine.py
    python bench/engine.py --check    # fails if the engine is less than 1.3 times as fast
"""

from __future__ import annotations

import argparse
import sys
import time
from random import Random
from typing import Any

import torch
from serve_engine import load_model

from uncode.core.canvas import Canvas
from uncode.core.denoiser import Denoiser
from uncode.core.pieces.blocks import Blocks
from uncode.core.pieces.cache import DualCache, NoCache
from uncode.core.pieces.policy import Policy, Sampler
from uncode.core.pieces.score import Confidence
from uncode.engine import Engine, Request
from uncode.generation.decoding import decode

LENGTHS, PROMPTS, BLOCK = (32, 256), (32, 96), 32
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="the embedded model on a CPU")
    parser.add_argument("--rows", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--caches", nargs="+", default=["dual"], choices=["none", "dual"])
    parser.add_argument("--check", action="store_true", help=f"fail below {MIN_SPEEDUP} times the fixed batches")
    options = parser.parse_args()
    model = load_model("cpu" if options.tiny else "cuda", options.layers)
    slow = False
    print("cache  rows  requests  tokens  |  fixed: s  tokens/s  |  engine: s  tokens/s  |  faster  rows that differ")
    for cache in options.caches:
        policy = Policy(Confidence(), blocks=Blocks(length=BLOCK))
        sampler = Sampler(policy, cache=DualCache() if cache == "dual" else NoCache())
        for rows in options.rows:
            work = requests(model, options.requests, sampler)
            for run in (fixed_batches, engine):  # compiles kernels
                run(model, work[:rows], rows)
            theirs, batches = seconds(lambda rows=rows, work=work: fixed_batches(model, work, rows))
            ours, results = seconds(lambda rows=rows, work=work: engine(model, work, rows))
            tokens = sum(one.canvas.span for one in work)
            differ = sum(not torch.equal(batches[seed], results[seed]) for seed in batches)
            print(
                f"{cache:<5}  {rows:>4}  {len(work):>8}  {tokens:>6}  |  {theirs:>8.2f}  {tokens / theirs:>8.1f}  |  "
                f"{ours:>9.2f}  {tokens / ours:>8.1f}  |  {theirs / ours:>6.2f}  {differ:>16}",
                flush=True,
            )
            slow |= cache == "dual" and theirs / ours < MIN_SPEEDUP
    return int(options.check and slow)


if __name__ == "__main__":
    sys.exit(main())
