"""A block-causal model on one GPU: an 8.2 B network of SDAR-8B's shape with random weights, in bfloat16.

Prints milliseconds a step beside the floor of the weights that it reads, and tokens per second, by the length of the
blocks, the batch and the tokens a forward commits. Needs a CUDA GPU with 80 GB, torch and triton.

    python bench/block_causal.py
    python bench/block_causal.py --batches 1 --layers 4  # to try it out
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from gpu import Floors, floors
from workload import between, network

from uncode.backbones.denoiser import TransformerDenoiser
from uncode.backbones.dialects.sdar import SDAR
from uncode.core.canvas import Canvas
from uncode.core.pieces.blocks import Blocks
from uncode.core.pieces.cache import BlockCache
from uncode.core.pieces.policy import Policy, Sampler
from uncode.core.pieces.score import Confidence
from uncode.core.pieces.select import Exactly, TopK
from uncode.generation.decoding import steps
from uncode.util.write import write_whole

SHAPE = next(release.shape for release in SDAR.releases if release.name == "JetLM/SDAR-8B-Chat")
MASK, END = SDAR.ids["mask"], SDAR.ids["eos"]
PROMPT, LENGTH, PROMPT_IDS = 512, 256, 100_000
QUOTAS = (1, 2, 4)
HEADER = "block  batch  tokens a forward  ms/step  a block opens  floor  x floor  tokens/s"


def decode(model: TransformerDenoiser, batch: int, quota: int) -> list[float]:
    """Milliseconds of each step of a whole decode, after one that captures the graphs."""
    assert model.block_length is not None
    policy = Policy(Confidence(), TopK(Exactly(quota)), Blocks(length=model.block_length))
    prompts = torch.randint(0, PROMPT_IDS, (batch, PROMPT), generator=torch.Generator().manual_seed(batch))
    canvas = Canvas.after_prompt(prompts, LENGTH, MASK)
    work = [between(steps(model, canvas, Sampler(policy, cache=BlockCache()))) for _ in range(2)]
    return work[-1]


def line(model: TransformerDenoiser, batch: int, quota: int, floor: Floors) -> dict[str, float]:
    """Measure and print one line of the table."""
    shape, block = model.network.shape, model.block_length or 1
    times, per_block = decode(model, batch, quota), -(-block // quota)
    opens, rest = times[per_block::per_block], [t for n, t in enumerate(times) if n % per_block]
    read = shape.parameters - shape.vocab * shape.width  # an embedding is read by rows
    least = floor.least(2 * batch * block * read / 1e12, 2 * read / 1e12)
    found = {
        "block": block,
        "batch": batch,
        "tokens a forward": quota,
        "ms/step": statistics.median(rest or opens),
        "opens": statistics.median(opens),
        "floor": least,
        "tokens/s": 1e3 * batch * LENGTH / sum(times),
    }
    print(
        f"{block:5}{batch:7}{quota:18}{found['ms/step']:9.2f}{found['opens']:15.2f}{least:7.2f}"
        f"{found['ms/step'] / least:9.2f}{found['tokens/s']:10.1f}",
        flush=True,
    )
    return found


def measured(chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Print and yield the lines as they are measured."""
    floor = floors()
    made = network(chosen.layers, shape=SHAPE)
    print(f"{made.shape.parameters / 1e9:.2f} B parameters, bfloat16; copy {floor.copy:.2f} TB/s\n{HEADER}", flush=True)
    for block, batch, quota in itertools.product(chosen.blocks, chosen.batches, QUOTAS):
        made.shape = replace(made.shape, block_length=block)
        yield line(TransformerDenoiser(made, SDAR, mask_id=MASK, eos_ids=(END,)), batch, quota, floor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--blocks", type=int, nargs="+", default=[4, 32])
    parser.add_argument("--layers", type=int, default=SHAPE.layers)
    parser.add_argument("--out", type=Path, help="write all figures as JSON")
    chosen = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a CUDA GPU: run bench/cpu.py on a CPU.")
    lines = list(measured(chosen))
    if chosen.out:
        write_whole(chosen.out, json.dumps(lines, indent=1) + "\n")


if __name__ == "__main__":
    main()
