"""The cost of the stepper itself, compared with the copied-loop style of the published code in one run.

The model is a table of logits that costs nothing, so only the work between two forwards is timed. The other loop is
written in the usual style (softmax over the whole canvas, a copied mask, top-k row by row). It keeps no trace and
handles one row and one sampler.

    python bench/loop.py            # about half a minute on two cores
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

import uncode
from uncode.core.pieces.policy import Sampler

LENGTH, PROMPT, MASK = 256, 64, 0
MAX_STEP_RATIO, MIN_ROW_SPEEDUP = 1.5, 5.0
"""Limits: the time of a step at batch 1 relative to the copied loop, and the speed-up of a row at batch 64."""


@torch.no_grad()
def copied_loop(
    logits_of: Callable[[Tensor], Tensor], prompt: Tensor, length: int, frequency: Tensor | None = None
) -> Tensor:
    """Confidence decoding (calibrated with `frequency`) in the usual style: one row, one token per step."""
    canvas = torch.full((1, prompt.shape[1] + length), MASK)
    canvas[:, : prompt.shape[1]] = prompt
    quota = torch.ones(1, length, dtype=torch.int64)
    for step in range(length):
        masked = canvas == MASK
        logits = logits_of(canvas)
        proposal = torch.argmax(logits, dim=-1)
        probability = torch.softmax(logits, dim=-1)
        confidence = torch.squeeze(torch.gather(probability, dim=-1, index=torch.unsqueeze(proposal, -1)), -1)
        confidence[:, prompt.shape[1] + length :] = -torch.inf
        proposal = torch.where(masked, proposal, canvas)
        if frequency is not None:
            weighed = torch.clamp(-confidence * torch.log(frequency[proposal] + 1e-9), max=10.0)
            offset = torch.arange(canvas.shape[1], dtype=torch.float32)
            confidence = torch.exp(-0.25 * offset) * weighed
        confidence = torch.where(masked, confidence, -torch.inf)
        chosen = torch.zeros_like(proposal, dtype=torch.bool)
        for row in range(confidence.shape[0]):
            _, best = torch.topk(confidence[row], k=int(quota[row, step]))
            chosen[row, best] = True
        canvas[chosen] = proposal[chosen]
    return canvas


def alternate(runs: list[Callable[[], object]], repeats: int) -> list[float]:
    """The median microseconds per step of each run. The runs alternate, so that other load affects all of them."""
    times: list[list[float]] = [[] for _ in runs]
    for repeat in range(repeats + 1):
        for number, run in enumerate(runs):
            start = time.perf_counter()
            run()
            if repeat > 0:  # the first round is a warm-up
                times[number].append((time.perf_counter() - start) / LENGTH * 1e6)
    return [statistics.median(t) for t in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocab", type=int, default=32, help="vocabulary of the free model")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="fail if the limits are not met")
    args = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(64, PROMPT + LENGTH, args.vocab, generator=generator)
    table[..., MASK] = -torch.inf
    denoiser = uncode.FunctionDenoiser(lambda tokens: table[: len(tokens)], mask_id=MASK, vocab_size=args.vocab)
    prompt = torch.ones(64, PROMPT, dtype=torch.int64)
    frequency = torch.rand(args.vocab, generator=generator) + 0.1

    def copied(weights: Tensor | None) -> Callable[[], object]:
        return lambda: copied_loop(lambda tokens: table[:1], prompt[:1], LENGTH, weights)

    def ours(sampler: Sampler, rows: int) -> Callable[[], object]:
        canvas = uncode.Canvas.after_prompt(prompt[:rows], length=LENGTH, mask_id=MASK)
        return lambda: uncode.decode(denoiser, canvas, sampler)

    print(f"{LENGTH} positions after a prompt of {PROMPT}, vocabulary {args.vocab}, {torch.get_num_threads()} threads;")
    print("median microseconds a step, and a row\n")
    over = False
    for name, sampler, weights in (
        ("confidence", uncode.presets.confidence(), None),
        ("uncode", uncode.presets.uncode(frequency=frequency), frequency),
    ):
        theirs, one, many = alternate([copied(weights), ours(sampler, 1), ours(sampler, 64)], args.repeats)
        over |= one > MAX_STEP_RATIO * theirs or theirs * 64 < MIN_ROW_SPEEDUP * many
        print(f"{f'{name}: copied loop, batch 1':32}{theirs:8.0f}{theirs:9.1f}")
        print(f"{f'{name}: stepper, batch 1':32}{one:8.0f}{one:9.1f}   {one / theirs:.2f} times the copied loop")
        print(
            f"{f'{name}: stepper, batch 64':32}{many:8.0f}{many / 64:9.1f}   {theirs * 64 / many:.1f} times less a row"
        )

    if args.check and over:
        sys.exit(f"over the limits: {MAX_STEP_RATIO} times at batch 1, {MIN_ROW_SPEEDUP} times less a row at batch 64.")


if __name__ == "__main__":
    main()
