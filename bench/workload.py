"""What the GPU benchmarks decode, and their clock: an 8.0 B network of LLaDA's shape with random weights fills 256
masks after a prompt of 512 tokens, in blocks of 32."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch

from uncode.backbones.denoiser import TransformerDenoiser
from uncode.backbones.dialects.llada import LLADA
from uncode.backbones.transformer.network import Transformer, dtype_of
from uncode.backbones.transformer.shape import Shape
from uncode.core.canvas import Canvas
from uncode.core.pieces.blocks import Blocks, SlidingWindow
from uncode.core.pieces.cache import CachePolicy, DualCache, NoCache, PrefixCache, WindowCache
from uncode.core.pieces.policy import Policy, Sampler
from uncode.core.pieces.score import Confidence, ExponentialPosition
from uncode.core.pieces.select import Exactly, TopK

SHAPE = Shape(4096, 32, 32, 32, 12288, 126464, theta=500000.0, eps=1e-5, context=4096)
MASK, END = 126336, 126081
PROMPT, LENGTH, BLOCK = 512, 256, 32
BLOCKS = LENGTH // BLOCK
PROMPT_IDS = 100_000
"""Prompts are drawn from the ids below this one."""
DEVICE = "cuda"
WEIGHTS = ("bf16", "fp8", "int8", "int4")
"""Formats of the layers' weights."""
CACHES: dict[str, CachePolicy] = {
    "none": NoCache(),
    "prefix": PrefixCache(),
    "dual": DualCache(),
    "window": WindowCache(),
    "window-never": WindowCache(every=None),
}
"""`window` recomputes everything after every 32 tokens, `window-never` only at the first forward."""
PRIOR = 0.02
"""The rate of the positional prior in windows: `certain_first`'s, whose accuracy with this cache was measured. Without
one, and with random weights, a window's first mask is often its last, and the window then moves by its whole width."""


def network(layers: int, weights: str = "bf16", shape: Shape | None = None) -> Transformer:
    """A network with random weights, in the memory layout of a loaded model."""
    made = Transformer(replace(shape or SHAPE, layers=layers)).to(torch.bfloat16).to_empty(device=DEVICE)
    random = torch.Generator(DEVICE).manual_seed(0)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            parameter.data = parameter.to(dtype_of(name, torch.bfloat16))
            parameter.normal_(1.0 if parameter.dim() == 1 else 0.0, 0.02, generator=random)
    store_as(made, weights)
    torch.cuda.empty_cache()
    return made


def store_as(made: Transformer, weights: str) -> None:
    """Bring the layers' weights into a format, as loading does."""
    if weights != "bf16":
        made.quantize(weights)
    made.fuse()


def denoiser(made: Transformer) -> TransformerDenoiser:
    return TransformerDenoiser(made, LLADA, mask_id=MASK, eos_ids=(END,))


def prompts(batch: int) -> torch.Tensor:
    return torch.randint(0, PROMPT_IDS, (batch, PROMPT), generator=torch.Generator().manual_seed(batch))


def canvas(batch: int) -> Canvas:
    return Canvas.after_prompt(prompts(batch), LENGTH, MASK)


def sampler_of(cache: str, quota: int = 1, prior: float = PRIOR) -> Sampler:
    """Confidence with a fixed number of tokens a forward: in blocks, or with a positional prior in a window that
    slides."""
    slides = cache.startswith("window")
    blocks = SlidingWindow(BLOCK, columns=BLOCK) if slides else Blocks(length=BLOCK)
    score = Confidence() + ExponentialPosition(prior) if slides and prior else Confidence()
    return Sampler(Policy(score, TopK(Exactly(quota)), blocks), cache=CACHES[cache])


def between(work: Iterable[Any], limit: int | None = None) -> list[float]:
    """Milliseconds of GPU time between consecutive items of `work`."""

    def mark() -> Any:
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    marks = [mark()]
    marks += [mark() for _ in itertools.islice(work, limit)]
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in itertools.pairwise(marks)]


def median_ms(run: Callable[[], Any], times: int) -> float:
    between(run() for _ in range(3))
    return statistics.median(between(run() for _ in range(times)))
