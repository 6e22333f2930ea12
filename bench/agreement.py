"""Do the GPU kernels and CUDA graphs change the decoded tokens?

In float32, small random networks are decoded with every preset, by the fast path and by the plain eager path. All
tokens must be the same. In bfloat16, the embedded model answers prompts alone and in batches, whose matrix products
round differently. The share of answers that differ is printed.

    python bench/agreement.py --networks 100 --workers 12
    python bench/agreement.py --networks 1 --device cpu  # a trial: both paths are plain there
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

import uncode
from uncode.backbones.denoiser import TransformerDenoiser
from uncode.backbones.dialects.dream import DREAM
from uncode.backbones.dialects.llada import LLADA
from uncode.backbones.transformer.linear import Matrix
from uncode.backbones.transformer.network import RMSNorm, Transformer
from uncode.backbones.transformer.shape import Shape
from uncode.core.canvas import Canvas
from uncode.core.pieces.blocks import DelimitedBlocks
from uncode.core.pieces.policy import Sampler
from uncode.core.pieces.stop import AfterEos
from uncode.evals.suite.families import FAMILIES
from uncode.frequency import FrequencyTable
from uncode.generation.decoding import decode
from uncode.samplers import presets
from uncode.samplers.resolve import resolve

KINDS = [
    (LLADA, Shape(64, 2, 4, 4, 160, 101, theta=10000.0, eps=1e-5, context=64)),
    (DREAM, Shape(48, 3, 4, 2, 96, 300, theta=10000.0, eps=1e-5, context=64, qkv_bias=True)),
]
"""Head widths of 16 and 12. Dream has shifted outputs, grouped-query attention and biased projections."""
LENGTH, PROMPTS, END = 12, (5, 9, 9), 1
ANSWERS = 64


def network(seed: int, device: str) -> Transformer:
    """A network with large random weights. With the usual initial weights the logits would hardly differ."""
    made = Transformer(KINDS[seed % len(KINDS)][1]).to_empty(device="cpu")
    random = torch.Generator().manual_seed(seed)
    for parameter in made.parameters():
        parameter.data.normal_(0.0, 0.2, generator=random)
    for module in made.modules():
        if isinstance(module, RMSNorm):
            module.weight.data += 1.0
    return made.to(device)


def samplers(vocab: int) -> list[Sampler]:
    """Every preset, and settings that no preset has: caches, temperature, an early stop."""
    table = FrequencyTable(torch.arange(1, vocab + 1), "a ramp")
    made = [resolve(name, table=table) for name in presets.PRESETS]
    made = [without_tokenizer(sampler) for sampler in made]
    cached = [presets.semi_ar(blocks=2, cache="prefix"), presets.semi_ar(blocks=2, cache="dual")]
    cached.append(presets.semi_ar(blocks=2, cache="dual", draft_steps=3))
    return [*made, *cached, presets.confidence(temperature=0.7), presets.confidence().stopping(AfterEos())]


def without_tokenizer(sampler: Sampler) -> Sampler:
    """The sampler with delimiters that are ids: these networks have no tokenizer that knows a newline."""
    blocks = sampler.policy.blocks
    if not isinstance(blocks, DelimitedBlocks):
        return sampler
    return replace(sampler, policy=replace(sampler.policy, blocks=replace(blocks, tokens=(2, 5, 9))))


def plainly(made: Transformer, model: TransformerDenoiser, canvas: Canvas, sampler: Sampler, seed: int) -> Tensor:
    """The tokens of the eager path: separate matrices, no fused kernels, no CUDA graphs."""
    made.store_as(Matrix)
    with patch("uncode.core.support.triton_support.why_not", lambda: "this is the plain path"):
        return decode(model, canvas, sampler, seed).tokens


def differing(seed: int, device: str = "cuda") -> Counter[str]:
    """For one network, the number of rows that differ between the two paths, by sampler."""
    torch.set_num_threads(1)
    found: Counter[str] = Counter()
    made = network(seed, device)
    random = torch.Generator().manual_seed(seed)
    prompts = [torch.randint(2, made.shape.vocab, (n,), generator=random).tolist() for n in PROMPTS]
    canvas = Canvas.after_prompt(prompts, LENGTH, 0)
    model = TransformerDenoiser(made, KINDS[seed % len(KINDS)][0], mask_id=0, eos_ids=(END,))
    for sampler in samplers(made.shape.vocab):
        plain = plainly(made, model, canvas, sampler, seed)
        made.fuse()
        fast = decode(model, canvas, sampler, seed).tokens
        found[sampler.name] += int((plain != fast).any(-1).sum())
        found["rows"] += len(PROMPTS)
    return found


def rounding() -> dict[int, float]:
    """The share of the embedded model's bfloat16 answers that change in a batch, by batch size."""
    model: Any = uncode.load("tiny", device="cuda", dtype="bfloat16")
    family = FAMILIES["mini_story"]
    ids = [model.tokenizer(family.prompt(example))["input_ids"] for example in family.examples()[:ANSWERS]]
    sampler = presets.uncode(frequency=model.frequency)

    def answers(size: int) -> list[list[int]]:
        parts = [ids[at : at + size] for at in range(0, len(ids), size)]
        found = [decode(model, Canvas.after_prompt(part, family.length, model.mask_id), sampler) for part in parts]
        return [row for trace in found for row in trace.tokens[:, -family.length :].tolist()]

    alone = answers(1)
    return {size: sum(a != b for a, b in zip(alone, answers(size), strict=True)) / len(ids) for size in (8, len(ids))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=100)
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    chosen = parser.parse_args()
    if chosen.device == "cuda" and not torch.cuda.is_available():
        sys.exit("this benchmark needs a CUDA GPU: without one there is only the plain path.")
    with ProcessPoolExecutor(chosen.workers, get_context("spawn")) as pool:
        total = sum(pool.map(partial(differing, device=chosen.device), range(chosen.networks)), Counter[str]())
    rows, kinds = total.pop("rows"), len(samplers(KINDS[0][1].vocab))
    print(
        f"float32, {chosen.networks} networks, {kinds} samplers: {total.total()} of {rows} rows differ {dict(+total)}"
    )
    for size, share in rounding().items() if chosen.device == "cuda" else ():
        print(f"bfloat16, tiny, batches of {size}: {share:.1%} of {ANSWERS} answers differ from those alone")
    sys.exit(total.total() > 0)


if __name__ == "__main__":
    main()
