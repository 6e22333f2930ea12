"""What the stepper itself costs, beside the copied-loop style of the published code, in one run.

The model is a table of logits that costs nothing, so what is timed is everything between two forwards. The
other loop is written in the style the field uses (whole-canvas softmax, a copied mask, top-k row by row, one
row at a time); it keeps no trace, handles one row and one sampler.

    python bench/loop.py            # about half a minute on two cores
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

import uncode
from uncode.core.policy import Sampler

LENGTH, PROMPT, MASK = 256, 64, 0


def copied_loop(logits_of: Callable[[Tensor], Tensor], prompt: Tensor, length: int) -> Tensor:
    """Confidence decoding as it is usually written: one row, one token a step."""
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
        confidence = torch.where(masked, confidence, -torch.inf)
        chosen = torch.zeros_like(proposal, dtype=torch.bool)
        for row in range(confidence.shape[0]):
            _, best = torch.topk(confidence[row], k=int(quota[row, step]))
            chosen[row, best] = True
        canvas[chosen] = proposal[chosen]
    return canvas


def measure(run: Callable[[], object], repeats: int) -> float:
    """Median seconds of a run, after one that is not counted."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocab", type=int, default=32, help="vocabulary of the free model")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(64, PROMPT + LENGTH, args.vocab, generator=generator)
    table[..., MASK] = -torch.inf
    denoiser = uncode.FunctionDenoiser(lambda tokens: table[: len(tokens)], mask_id=MASK, vocab_size=args.vocab)
    prompt = torch.ones(64, PROMPT, dtype=torch.int64)
    frequency = torch.rand(args.vocab, generator=generator) + 0.1

    def ours(sampler: Sampler, rows: int) -> float:
        canvas = uncode.Canvas.after_prompt(prompt[:rows], length=LENGTH, mask_id=MASK)
        return measure(lambda: uncode.decode(denoiser, canvas, sampler), args.repeats) / LENGTH * 1e6

    theirs = measure(lambda: copied_loop(lambda tokens: table[:1], prompt[:1], LENGTH), args.repeats) / LENGTH * 1e6
    print(f"{LENGTH} positions after a prompt of {PROMPT}, vocabulary {args.vocab}, {torch.get_num_threads()} threads;")
    print("microseconds a step (and a row)\n")
    print(f"{'copied loop, batch 1':34}{theirs:9.0f}")
    for name, sampler in (
        ("confidence", uncode.presets.confidence()),
        ("uncode", uncode.presets.uncode(frequency=frequency)),
    ):
        for rows in (1, 64):
            here = ours(sampler, rows)
            ratio = f"{here / theirs:.2f} times the copied loop" if rows == 1 else f"{theirs * rows / here:.1f} times less"
            print(f"{f'stepper, {name}, batch {rows}':34}{here:9.0f}{here / rows:9.1f} a row   {ratio}")


if __name__ == "__main__":
    main()
