"""Rollouts of `tiny` for reinforcement learning: seconds for prompts x samples, for their log-probabilities under new
weights, and for the gradient of a part of them.

    python bench/rollouts.py --device cuda            # 1,024 prompts x 16 samples
    python bench/rollouts.py --prompts 16 --n 4       # on a CPU
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

import torch

import uncode
from uncode.core.support.reprs import counted
from uncode.evals.suite.families import FAMILIES

T = TypeVar("T")


def timed(device: str, work: Callable[[], T]) -> tuple[T, float]:
    """What the work returns, and its seconds."""
    began = time.monotonic()
    found = work()
    if device == "cuda":
        torch.cuda.synchronize()
    return found, time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", default="mini_algebra", choices=FAMILIES)
    parser.add_argument("--sampler", default="certain_first")
    parser.add_argument("--prompts", type=int, default=1024)
    parser.add_argument("--n", type=int, default=16, help="samples of each prompt")
    parser.add_argument("--rows", type=int, default=1024, help="rows that are decoded at a time")
    parser.add_argument("--batch", type=int, default=512, help="canvases of a forward of the log-probabilities")
    parser.add_argument("--updated", type=int, default=256, help="samples whose gradient is measured")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    chosen = parser.parse_args()
    model, family = uncode.load("tiny", device=chosen.device, dtype=chosen.dtype), FAMILIES[chosen.family]
    prompts = [family.prompt(problem) for problem in family.problems(chosen.prompts, seed=0, testing=False)]

    def sample(count: int) -> uncode.Rollout:
        return uncode.rollout(
            model,
            prompts[:count],
            n=chosen.n,
            sampler=chosen.sampler,
            temperature=1.0,
            length=family.length,
            max_rows=chosen.rows,
        )

    sample(1)  # compiles kernels
    found, seconds = timed(chosen.device, lambda: sample(chosen.prompts))
    drawn, forwards = int(found.drawn.sum()), float(found.forwards.double().mean())
    print(f"{chosen.prompts:,} prompts x {counted(chosen.n, 'sample')} of tiny ({chosen.dtype}, {chosen.device})")
    rates = f"{len(found) / seconds:,.0f} samples/s, {drawn / seconds:,.0f} tokens/s"
    print(f"{'samples':20}{seconds:8.2f} s   {rates}, {forwards:.1f} forwards each")
    with torch.no_grad():
        again, seconds = timed(chosen.device, lambda: found.log_probabilities(model, batch_size=chosen.batch))
    canvases = sum(len(set(row[row >= 0].tolist())) for row in found.step_map)
    apart = float((again.cpu() - found.logp).abs().max())
    print(f"{'log-probabilities':20}{seconds:8.2f} s   {canvases:,} canvases, largest difference {apart:.1e}")
    model.network.requires_grad_(True)  # type: ignore[attr-defined]

    def gradient() -> None:
        part = found[: chosen.updated]
        for at in range(0, len(part), chosen.n):
            part[at : at + chosen.n].log_probabilities(model, batch_size=chosen.batch).sum().backward()  # type: ignore[no-untyped-call]

    _, seconds = timed(chosen.device, gradient)
    count = min(chosen.updated, len(found))
    print(f"{'gradient':20}{seconds:8.2f} s   of {counted(count, 'sample')}, {chosen.n} at a time")


if __name__ == "__main__":
    main()
