"""What the formats of `weights=` change: one forward, whole answers, accuracy. All are compared with plain float32.

One forward: the reference's own answers are masked at random. Proposals that differ, and the largest and the mean
change of the log probability of the reference's proposals. Whole answers: tokens and answers that differ, and accuracy
by family with the paired difference. Speed: milliseconds of a forward over one canvas, and of a step of a block with
the dual cache. `--random LAYERS` measures a network with so many layers and random weights, which needs no problems.

    python bench/weights.py --problems 64                  # `tiny`: about two hours on two cores
    python bench/weights.py --device cuda --problems 1024 --batch 512
    python bench/weights.py --device cuda --random 32      # LLaDA-8B: 80 GB of GPU memory
    python bench/weights.py --device cpu --random 24 --shape 0.5B
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from answers import canvas_of, text_of
from numpy.typing import NDArray
from torch import Tensor

import uncode
from uncode.backbones.denoiser import TransformerDenoiser
from uncode.backbones.dialects.llada import LLADA
from uncode.backbones.loading.device import DTYPES, usual_device
from uncode.backbones.transformer.network import Transformer
from uncode.backbones.transformer.quantized import FORMATS
from uncode.backbones.transformer.shape import Shape
from uncode.core.belief import log_probabilities
from uncode.core.pieces.stop import AfterEos
from uncode.evals.suite.families import FAMILIES
from uncode.generation.likelihood import masked_logits, random_masks
from uncode.util.stats import newcombe

SHAPES = {
    "8B": LLADA.releases[0].shape,
    "0.5B": Shape(896, 24, 14, 2, 4864, 151936, theta=1e6, eps=1e-6, context=2048, qkv_bias=True),
}
"""LLaDA's, and one of the size that a CPU may run."""
MASK, END = LLADA.ids["mask"], LLADA.ids["eos"]
PROMPT, LENGTH = 512, 256
"""Tokens of the random network's canvas."""
MASKS = 2
"""How often each answer is masked."""
BLOCKS, STEPS = 4, 4
"""Blocks of the decode that is timed, and the steps of each."""
NAME_WIDTH = 12


class Variant(NamedTuple):
    """A dtype and a format of the weights."""

    dtype: str
    weights: str | None

    @property
    def name(self) -> str:
        return self.weights or self.dtype


class Masked(NamedTuple):
    """Tokens of a canvas, where its answer begins, and the masks of the answer `[N, n]`."""

    truth: Tensor
    start: int
    masks: Tensor

    @torch.inference_mode()
    def logp(self, model: uncode.Denoiser) -> Tensor:
        """The log probabilities at every mask, `[masks, V]`."""
        masks = self.masks.to(model.device)
        logits = masked_logits(model, self.truth.to(model.device), self.start, masks)
        return log_probabilities(logits[masks]).float()


@dataclass
class Changes:
    """How far a variant's forwards are from the reference's."""

    proposals: int = 0
    differ: int = 0
    largest: float = 0.0
    total: float = 0.0

    @classmethod
    def between(cls, found: Iterable[Tensor], reference: Iterable[tuple[Tensor, Tensor]]) -> Changes:
        """Of log probabilities, from the reference's proposals and their log probabilities."""
        changes = cls()
        for logp, (token, before) in zip(found, reference, strict=True):
            change = (logp.gather(-1, token[:, None])[:, 0] - before).abs()
            changes.proposals += len(token)
            changes.differ += int((logp.argmax(-1) != token).sum())
            changes.largest = max(changes.largest, float(change.max()))
            changes.total += float(change.sum())
        return changes

    def __str__(self) -> str:
        share = 100 * self.differ / self.proposals
        return f"{share:9.2f} %{self.largest:12.4f}{self.total / self.proposals:12.5f}"


def proposals(model: uncode.Denoiser, canvases: Iterable[Masked]) -> list[tuple[Tensor, Tensor]]:
    """The most likely token at every mask, and its log probability."""
    best = (canvas.logp(model).max(-1) for canvas in canvases)
    return [(token, logp) for logp, token in best]


@dataclass
class Answers:
    """The answers of a variant, by family."""

    tokens: dict[str, Tensor] = field(default_factory=dict)
    right: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def differing(self, other: Answers) -> tuple[float, float]:
        """The shares of tokens and of answers that differ."""
        pairs = [self.tokens[name] != other.tokens[name] for name in self.tokens]
        tokens = sum(int(pair.sum()) for pair in pairs) / sum(pair.numel() for pair in pairs)
        return tokens, float(torch.cat([pair.any(-1) for pair in pairs]).double().mean())


def answers_of(model: uncode.Denoiser, asked: argparse.Namespace) -> Answers:
    """Decode the problems of every family, each until its answer has ended."""
    found, sampler = Answers(), getattr(uncode.presets, asked.sampler)(frequency=model.frequency).stopping(AfterEos())
    for name in asked.families.split(","):
        family = FAMILIES[name]
        examples = family.fresh_problems(asked.problems, asked.draw)
        parts = [examples[at : at + asked.batch] for at in range(0, len(examples), asked.batch)]
        rows = torch.cat([uncode.decode(model, canvas_of(model, family, part), sampler).generated for part in parts])
        found.tokens[name] = rows.cpu()
        texts = [text_of(model, row) for row in rows.tolist()]
        right = [family.grade(one, text).correct for one, text in zip(examples, texts, strict=True)]
        found.right[name] = np.array(right, dtype=float)
    return found


def masked_answers(model: uncode.Denoiser, answers: Answers, asked: argparse.Namespace) -> list[Masked]:
    """The answers of the reference, each masked at random."""
    found = []
    for name, rows in answers.tokens.items():
        family = FAMILIES[name]
        for number, example in enumerate(family.fresh_problems(asked.problems, asked.draw)):
            prompt = model.tokenizer.encode(family.prompt(example))
            masks, _ = random_masks(rows.shape[1], MASKS, MASKS, seed=number)
            found.append(Masked(torch.cat((torch.tensor(prompt), rows[number])), len(prompt), masks))
    return found


def speed(model: uncode.Denoiser, canvas: uncode.Canvas) -> str:
    """Milliseconds of a full forward and of a step of a block: the fastest of the blocks after the first."""
    sampler = uncode.presets.semi_ar(blocks=BLOCKS, steps=BLOCKS * STEPS, cache="dual")
    times = [time.perf_counter()]
    for _ in uncode.steps(model, canvas, sampler):
        if model.device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter())
    took = [1e3 * (after - before) for before, after in itertools.pairwise(times)][STEPS:]
    return f"{min(took[::STEPS]):10.1f}{min(one for number, one in enumerate(took) if number % STEPS):10.1f}"


def random_network(shape: Shape, device: str, variant: Variant) -> TransformerDenoiser:
    """A network of random weights: the same numbers for every variant."""
    made = Transformer(shape).to_empty(device=device)
    random = torch.Generator(device).manual_seed(0)
    for name, parameter in made.named_parameters():
        parameter.data.normal_(1.0 if "norm" in name else 0.0, 0.02, generator=random)
    made.to(DTYPES[variant.dtype])
    if variant.weights is not None:
        made.quantize(variant.weights)
    made.fuse()
    return TransformerDenoiser(made, LLADA, mask_id=MASK, eos_ids=(END,))


def compare_random(shape: Shape, device: str, variants: Sequence[Variant]) -> None:
    """Print how the forward of a random network changes."""
    truth = torch.randint(0, min(MASK, END), (PROMPT + LENGTH,), generator=torch.Generator().manual_seed(0))
    canvases = [Masked(truth, PROMPT, random_masks(LENGTH, MASKS, MASKS, seed=0)[0])]
    canvas = uncode.Canvas.after_prompt(truth[None, :PROMPT], length=LENGTH, mask_id=MASK)
    reference = proposals(random_network(shape, device, variants[0]), canvases)
    print_header(f"{shape.parameters / 1e9:.2f} B random weights on {device}, {shape.layers} layers")
    for variant in variants:
        model = random_network(shape, device, variant)
        changes = Changes.between((canvas.logp(model) for canvas in canvases), reference)
        print(f"{variant.name:{NAME_WIDTH}}{changes}{speed(model, canvas)}", flush=True)


def print_header(title: str, more: str = "") -> None:
    print(f"{title}; changes from float32, of {MASKS} masked forwards a canvas")
    columns = f"{'proposals':>11}{'log p, max':>12}{'mean':>12}{'full, ms':>10}{'block, ms':>10}"
    print(f"{'weights':{NAME_WIDTH}}{columns}{more}", flush=True)


def compare_answers(asked: argparse.Namespace, variants: Sequence[Variant]) -> None:
    """Print how forwards, answers and accuracy of a model change."""
    print_header(
        f"{asked.model} on {asked.device}, {asked.sampler}, {asked.problems} problems a family",
        f"{'tokens':>11}{'answers':>11}{'right':>8}  difference",
    )
    plain: Any = uncode.load(asked.model, device=asked.device, dtype=variants[0].dtype)
    first = answers_of(plain, asked)
    canvases = masked_answers(plain, first, asked)
    reference, found = proposals(plain, canvases), dict[str, Answers]()
    family = FAMILIES[next(iter(first.right))]
    one_row = canvas_of(plain, family, family.fresh_problems(1, asked.draw))
    del plain
    for variant in variants:
        model: Any = uncode.load(asked.model, device=asked.device, dtype=variant.dtype, weights=variant.weights)
        changes = Changes.between((canvas.logp(model) for canvas in canvases), reference)
        found[variant.name] = mine = first if variant == variants[0] else answers_of(model, asked)
        tokens, answers = mine.differing(first)
        right, before = (np.concatenate(list(one.right.values())) for one in (mine, first))
        line = f"{changes}{speed(model, one_row)}{100 * tokens:9.2f} %{100 * answers:9.1f} %{100 * right.mean():8.1f}"
        print(f"{variant.name:{NAME_WIDTH}}{line}  {difference(right, before)}", flush=True)
    print_families(found, first)


def print_families(found: Mapping[str, Answers], first: Answers) -> None:
    """Print the accuracy by family, with the paired difference from the reference."""
    print(f"\n{'right':{NAME_WIDTH}}" + "".join(f"{name.removeprefix('mini_'):>27}" for name in first.right))
    for label, answers in found.items():
        pairs = [(answers.right[name], before) for name, before in first.right.items()]
        cells = [f"{100 * right.mean():.1f}  {difference(right, before)}" for right, before in pairs]
        print(f"{label:{NAME_WIDTH}}" + "".join(f"{cell:>27}" for cell in cells))


def difference(mine: NDArray[np.float64], reference: NDArray[np.float64]) -> str:
    """The paired difference in accuracy with its interval, in points."""
    found = newcombe(mine, reference)
    return f"{100 * found.estimate:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--model", default="tiny")
    arguments.add_argument("--sampler", default="certain_first")
    arguments.add_argument("--device", default=usual_device())
    arguments.add_argument("--dtype", choices=DTYPES, help="of the activations; default: bfloat16 on a GPU, or float32")
    arguments.add_argument("--problems", type=int, default=64, help="problems of each family; default: %(default)s")
    arguments.add_argument("--families", default=",".join(FAMILIES), help="default: all")
    arguments.add_argument("--batch", type=int, default=64, help="rows of a batch; default: %(default)s")
    arguments.add_argument("--draw", type=int, default=5, help="the seed of the new problems; default: %(default)s")
    arguments.add_argument("--random", type=int, metavar="LAYERS", help="random weights in so many layers instead")
    arguments.add_argument("--shape", choices=SHAPES, default="8B", help="of --random; default: %(default)s")
    asked = arguments.parse_args()
    if asked.device != "cpu" and not torch.cuda.is_available():
        arguments.error(f"there is no '{asked.device}' here: choose --device cpu.")
    dtype = asked.dtype or ("float32" if asked.device == "cpu" else "bfloat16")
    variants = [Variant("float32", None), Variant("bfloat16", None), *(Variant(dtype, name) for name in FORMATS)]
    if asked.random is not None:
        compare_random(replace(SHAPES[asked.shape], layers=asked.random), asked.device, variants)
    else:
        compare_answers(asked, variants)


if __name__ == "__main__":
    main()
