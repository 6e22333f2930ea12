"""Block-causal models on one GPU, with random weights in bfloat16: an 8.2 B network of SDAR-8B's shape, and a mixture
of experts of LLaDA2-mini's, 16.3 B parameters of which a token meets 1.4 B.

Prints milliseconds a step beside the floor of the weights that it reads, and tokens per second, by the length of the
blocks, the batch and the tokens a forward commits. Of a mixture these are the experts that the rows of a step choose,
counted in two blocks; and the products of one layer's experts by kernel come last. Needs a CUDA GPU with 80 GB, torch
and triton.

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
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import workload
from gpu import Floors, floors
from torch.nn import functional
from workload import between, median_ms, network

from uncode.backbones.denoiser import TransformerDenoiser
from uncode.backbones.dialects.dialect import Dialect
from uncode.backbones.dialects.llada2 import LLADA2
from uncode.backbones.dialects.sdar import SDAR
from uncode.backbones.transformer import session
from uncode.backbones.transformer.experts import Experts, choose
from uncode.backbones.transformer.network import Transformer
from uncode.backbones.transformer.pointwise import at_least_float32
from uncode.backbones.transformer.shape import Shape
from uncode.core.canvas import Canvas
from uncode.core.pieces.blocks import Blocks
from uncode.core.pieces.cache import BlockCache
from uncode.core.pieces.policy import Policy, Sampler
from uncode.core.pieces.score import Confidence
from uncode.core.pieces.select import Exactly, TopK
from uncode.generation.decoding import steps
from uncode.util.write import write_whole


@dataclass(frozen=True)
class Model:
    """A network to measure."""

    dialect: Dialect
    shape: Shape
    blocks: tuple[int, ...]
    quotas: tuple[int, ...]
    """Tokens that a forward commits."""


def shape_of(dialect: Dialect, name: str) -> Shape:
    return next(release.shape for release in dialect.releases if release.name == name)


MODELS = {
    "sdar": Model(SDAR, shape_of(SDAR, "JetLM/SDAR-8B-Chat"), (4,), (1, 4)),
    "llada2": Model(LLADA2, shape_of(LLADA2, "inclusionAI/LLaDA2.0-mini"), (32,), (2, 8)),
}
PROMPT, LENGTH, PROMPT_IDS = 512, 256, 100_000
ROWS = (32, 128, 512, 1024, 2048, 4096, 8192)
"""Of a layer's experts."""
HEADER = "block  batch  tokens a forward  ms/step  a block opens  floor  x floor  tokens/s  experts"


def sampler_of(model: TransformerDenoiser, quota: int) -> Sampler:
    assert model.block_length is not None
    return Sampler(Policy(Confidence(), TopK(Exactly(quota)), Blocks(length=model.block_length)), cache=BlockCache())


def canvas_of(model: TransformerDenoiser, batch: int) -> Canvas:
    prompts = torch.randint(0, PROMPT_IDS, (batch, PROMPT), generator=torch.Generator().manual_seed(batch))
    return Canvas.after_prompt(prompts, LENGTH, model.mask_id)


def chosen_by(experts: Experts, h: torch.Tensor) -> int:
    """How many experts the rows of `h` choose."""
    rows, wide = h.flatten(0, -2), at_least_float32(h.dtype)
    logits = functional.linear(rows.to(wide), experts.router.weight.to(wide))
    bias = None if experts.bias is None else experts.bias.to(wide)
    return len(torch.unique(choose(logits, bias, experts.mixture)[0]))


def touched(model: TransformerDenoiser, batch: int, quota: int) -> float | None:
    """The mean number of a layer's experts that a step chooses, over two blocks; None without experts."""
    mixed = [layer.experts for layer in model.network.layers if isinstance(layer.experts, Experts)]
    if not mixed:
        return None
    rows, found = batch * (model.block_length or 1), list[int]()

    def count(experts: torch.nn.Module, inputs: tuple[Any, ...]) -> None:
        if inputs[0].flatten(0, -2).shape[0] == rows and isinstance(experts, Experts):
            found.append(chosen_by(experts, inputs[0]))

    hooks = [experts.register_forward_pre_hook(count) for experts in mixed]
    with patch.object(session, "_has_graphs", lambda device: False):  # a replayed graph calls no hook
        work = steps(model, canvas_of(model, batch), sampler_of(model, quota))
        for _ in itertools.islice(work, 2 * -(-(model.block_length or 1) // quota)):
            pass
    for hook in hooks:
        hook.remove()
    return statistics.mean(found)


def line(model: TransformerDenoiser, batch: int, quota: int, floor: Floors) -> dict[str, Any]:
    """Measure and print one line of the table: the second decode, after one that captures the graphs."""
    shape, block, count = model.network.shape, model.block_length or 1, touched(model, batch, quota)
    canvas, sampler = canvas_of(model, batch), sampler_of(model, quota)
    times = [between(steps(model, canvas, sampler)) for _ in range(2)][-1]
    per_block = -(-block // quota)
    opens, rest = times[per_block::per_block], [t for n, t in enumerate(times) if n % per_block]
    embedding = shape.vocab * shape.width  # is read by rows
    read = shape.parameters_with(count) - embedding
    least = floor.least(2 * batch * block * (shape.active_parameters - embedding) / 1e12, 2 * read / 1e12)
    found: dict[str, Any] = {
        "block": block,
        "batch": batch,
        "tokens a forward": quota,
        "ms/step": statistics.median(rest or opens),
        "opens": statistics.median(opens),
        "floor": least,
        "tokens/s": 1e3 * batch * LENGTH / sum(times),
        "experts": count,
    }
    print(
        f"{block:5}{batch:7}{quota:18}{found['ms/step']:9.2f}{found['opens']:15.2f}{least:7.2f}"
        f"{found['ms/step'] / least:9.2f}{found['tokens/s']:10.1f}{'-' if count is None else format(count, '.0f'):>9}",
        flush=True,
    )
    return found


def by_rows(made: Transformer, floor: Floors) -> Iterator[dict[str, Any]]:
    """Print and yield milliseconds of one layer's experts by rows: the kernels, torch's grouped products, and all from
    the router to the sum as a forward computes it."""
    from uncode.backbones.transformer.kernels import experts_triton

    experts = next(layer.experts for layer in made.layers if isinstance(layer.experts, Experts))
    mixture, width = experts.mixture, made.shape.width
    print("rows  experts  kernels, ms  grouped_mm, ms  router to sum, ms  floor", flush=True)
    for rows in ROWS:
        h = torch.randn(rows, width, dtype=torch.bfloat16, device=workload.DEVICE)
        logits = functional.linear(h.float(), experts.router.weight.float())
        picks = experts_triton.choose(logits, experts.bias, mixture)[0]
        order, starts = experts_triton.sort(picks, mixture.experts)
        given = (h, order, starts, mixture.active, experts.gate_ups, experts.downs)
        has_grouped = hasattr(functional, "grouped_mm")
        count = len(torch.unique(picks))
        numbers = 3 * width * mixture.hidden
        found = {
            "rows": rows,
            "experts": count,
            "kernels": median_ms(partial(experts_triton.products, *given), 9),
            "grouped": median_ms(partial(experts_triton.grouped, *given), 9) if has_grouped else float("nan"),
            "whole": median_ms(partial(experts, h), 9),
            "floor": floor.least(2 * rows * mixture.active * numbers / 1e12, 2 * count * numbers / 1e12),
        }
        print(
            f"{rows:4}{count:9}{found['kernels']:13.3f}{found['grouped']:16.3f}{found['whole']:19.3f}"
            f"{found['floor']:7.3f}",
            flush=True,
        )
        yield found


def measured(chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Print and yield the lines as they are measured."""
    floor = floors()
    print(f"copy {floor.copy:.2f} TB/s, {floor.product:.0f} TFLOP/s", flush=True)
    for name in chosen.models:
        of = MODELS[name]
        made = network(chosen.layers or of.shape.layers, shape=of.shape)
        sizes = f"{made.shape.parameters / 1e9:.2f} B parameters, {made.shape.active_parameters / 1e9:.2f} B of a token"
        print(f"\n{name}: {sizes}, bfloat16", flush=True)
        print(HEADER, flush=True)
        for block, batch, quota in itertools.product(chosen.blocks or of.blocks, chosen.batches, of.quotas):
            made.shape = replace(made.shape, block_length=block)
            eos = (of.dialect.ids["eos"],)
            model = TransformerDenoiser(made, of.dialect, mask_id=of.dialect.ids["mask"], eos_ids=eos)
            yield {"model": name} | line(model, batch, quota, floor)
        if made.shape.mixture is not None and made.embed.weight.is_cuda:  # the kernels need a GPU
            with torch.inference_mode():
                yield from ({"model": name} | each for each in by_rows(made, floor))
        del made, model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", choices=list(MODELS), nargs="+", default=list(MODELS))
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--blocks", type=int, nargs="+", help="instead of each model's own")
    parser.add_argument("--layers", type=int, help="instead of each model's own")
    parser.add_argument("--out", type=Path, help="write all figures as JSON")
    chosen = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a CUDA GPU: run bench/cpu.py on a CPU.")
    lines = list(measured(chosen))
    if chosen.out:
        write_whole(chosen.out, json.dumps(lines, indent=1) + "\n")


if __name__ == "__main__":
    main()
