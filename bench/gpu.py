"""Decoding on one GPU compared with the hardware's floors: an 8.0 B network of LLaDA's shape with random weights.

The floors are measured in the same run. A loop in the style of the published code runs on the same weights (see
published.py). Needs a CUDA GPU with 80 GB, torch and triton; takes eight minutes on an H200.

    python bench/gpu.py                                       # everything
    python bench/gpu.py --batches 1 --caches dual --layers 4  # to try it out
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from published import Published, published

from uncode.backbones.denoiser import TransformerDenoiser
from uncode.backbones.dialects.llada import LLADA
from uncode.backbones.transformer.network import Shape, Transformer
from uncode.core.belief import Belief
from uncode.core.canvas import Canvas
from uncode.core.pieces.blocks import Blocks, SlidingWindow
from uncode.core.pieces.cache import WindowCache
from uncode.core.pieces.policy import Policy, Sampler
from uncode.core.pieces.score import Confidence, ExponentialPosition, Informativeness
from uncode.core.pieces.select import Exactly, TopK
from uncode.core.pieces.stop import AfterEos
from uncode.frequency import FrequencyTable
from uncode.generation.decoding import steps
from uncode.samplers import presets
from uncode.util.write import write_whole

SHAPE = Shape(4096, 32, 32, 32, 12288, 126464, theta=500000.0, eps=1e-5, context=4096)
MASK, END = 126336, 126081
PROMPT, LENGTH, BLOCK = 512, 256, 32
PROMPT_IDS = 100_000
"""Prompts are drawn from the ids below this one."""
DEVICE = "cuda"
FLOOR_SIDE, FLOOR_BYTES, FLOOR_SECONDS = 8192, 2 << 30, 10.0
"""Of the square matrices and of the copy that the floors are measured with, and of the load before."""
BLOCKS = LENGTH // BLOCK
CACHES = ("none", "prefix", "dual")
PUBLISHED = {"none": 36.9, "prefix": 41.1, "dual": 50.1}
"""Fast-dLLM's own code on an H200 and such a network: ms/step at batch 1, measured on 2026-11-15."""


@dataclass
class Floors:
    """The roofline of the GPU."""

    product: float
    """TFLOP/s of a large matrix product."""
    copy: float
    """TB/s of a large copy, reads and writes together."""

    def least(self, flop: float, read: float) -> float:
        """The floor in milliseconds for this much arithmetic (TFLOP) and this many weight bytes (TB)."""
        return 1e3 * max(flop / self.product, read / self.copy)


@dataclass
class Timing:
    """The timing of one decode, ours or in the published style."""

    cache: str
    batch: int
    step: float
    """The median milliseconds per step; with a cache, without the first step of each block."""
    refresh: float
    """The median milliseconds of the first step of a block."""
    whole: float
    """Seconds of the whole decode."""
    complete: bool
    """Whether the whole decode was run. Otherwise `whole` is extrapolated from some steps."""
    memory: float = 0.0
    """Peak memory in GB, without the weights."""

    @classmethod
    def of(cls, cache: str, batch: int, times: list[float], seconds: float) -> Timing:
        """From the milliseconds of consecutive steps, starting with the first step of a block."""
        first, rest = times[::BLOCK], [t for number, t in enumerate(times) if number % BLOCK]
        step, refresh = (statistics.median(part) for part in ((times, times) if cache == "none" else (rest, first)))
        complete = len(times) == LENGTH
        counted = (BLOCKS * refresh + (LENGTH - BLOCKS) * step) / 1e3
        return cls(cache, batch, step, refresh, seconds if complete else counted, complete)

    @property
    def rate(self) -> float:
        return self.batch * LENGTH / self.whole


def network(layers: int, shape: Shape | None = None) -> Transformer:
    """A network with random weights, in the memory layout of a loaded model."""
    made = Transformer(replace(shape or SHAPE, layers=layers)).to(torch.bfloat16).to_empty(device=DEVICE)
    random = torch.Generator(DEVICE).manual_seed(0)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(0.0 if parameter.dim() == 2 else 1.0, 0.02, generator=random)
    made.fuse()
    torch.cuda.empty_cache()
    return made


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


def floors() -> Floors:
    """Measure a large matrix product, after some seconds of load, and a large copy."""
    a, b = (torch.randn(FLOOR_SIDE, FLOOR_SIDE, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    began = time.monotonic()
    while time.monotonic() - began < FLOOR_SECONDS:
        for _ in range(20):
            a @ b
        torch.cuda.synchronize()
    product = 2 * FLOOR_SIDE**3 / median_ms(lambda: a @ b, 50) / 1e9
    source = torch.randint(-100, 100, (FLOOR_BYTES,), device=DEVICE, dtype=torch.int8)
    target = torch.empty_like(source)
    return Floors(product, 2 * source.numel() / median_ms(lambda: target.copy_(source), 30) / 1e9)


@torch.inference_mode()
def belief(floor: Floors) -> dict[str, float]:
    """The bandwidth of the belief kernel on the logits of a batch of 32, and its error against float64."""
    logits = torch.empty(32, LENGTH, SHAPE.vocab, device=DEVICE, dtype=torch.bfloat16).normal_(0, 4)
    rate = 2 * logits.numel() / median_ms(lambda: Belief.of(logits), 20) / 1e9
    few = logits[:, :1]
    found, exact = Belief.of(few), Belief.of(few.double())
    return {
        "TB/s": rate,
        "of the copy": rate / floor.copy,
        "tokens that differ": float((found.token != exact.token).sum()),
        "log p off by": float((found.logp - exact.logp).abs().max()),
        "entropy off by": float((found.entropy - exact.entropy).abs().max()),
    }


def prompts(batch: int) -> torch.Tensor:
    return torch.randint(0, PROMPT_IDS, (batch, PROMPT), generator=torch.Generator().manual_seed(batch))


def ours(
    model: TransformerDenoiser, cache: str, batch: int, limit: int | None = None, sampler: Sampler | None = None
) -> Timing:
    """Time a decode by the stepper. CUDA events time the steps without a host sync. Graph capture is included."""
    chosen = sampler or presets.semi_ar(blocks=BLOCKS, cache=cache)  # type: ignore[arg-type]

    def work() -> Iterator[Any]:
        return iter(steps(model, Canvas.after_prompt(prompts(batch), LENGTH, MASK), chosen))

    every_width = cache == "prefix" and batch <= 8  # its last blocks are narrow and compile kernels for few rows
    between(work(), None if every_width else BLOCK + 8)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before, began = torch.cuda.memory_allocated(), time.monotonic()
    timing = Timing.of(cache, batch, between(work(), limit), time.monotonic() - began)
    timing.memory = (torch.cuda.max_memory_reserved() - before) / 1e9
    return timing


def theirs(model: Published, cache: str, batch: int) -> Timing:
    """Time the published style: the whole decode at batch 1, else some steps of the two middle blocks."""

    def work(skipped: int = 0) -> Iterator[Any]:
        return published(model, prompts(batch).to(DEVICE), LENGTH, BLOCK, cache, MASK, skipped)

    def measured() -> Timing:
        began = time.monotonic()
        if batch == 1:
            times = between(work())
            return Timing.of(cache, batch, times, time.monotonic() - began)
        parts = [between(work(block), 7) for block in (BLOCKS // 2 - 1, BLOCKS // 2)]
        return Timing.of(cache, batch, [statistics.mean(both) for both in zip(*parts, strict=True)], 0.0)

    measured()  # warm-up: its attention is compiled once per shape
    return measured()


def work_of(shape: Shape, cache: str, batch: int) -> tuple[float, float]:
    """The TFLOP of a step of a middle block (not its first step), and the TB of weights that the step reads."""
    keys = PROMPT + LENGTH
    window = {"none": keys, "prefix": (LENGTH + BLOCK) // 2, "dual": BLOCK}[cache]
    head = shape.vocab * shape.width
    layers = shape.parameters - 2 * head
    flop = 2 * layers * window + 4 * window * keys * shape.width * shape.layers + 2 * head * BLOCK
    return batch * flop / 1e12, 2 * (layers + head) / 1e12


HEADER = (
    "cache  batch  ms/step  refresh  seconds  tokens/s  TFLOP/s   TB/s  x floor    GB"
    "  |  published: ms/step  refresh  seconds  ours is faster: step  whole"
)


def row(model: TransformerDenoiser, other: Published | None, cache: str, batch: int, floor: Floors) -> dict[str, Any]:
    """Measure and print one line of the table."""
    mine = ours(model, cache, batch, BLOCK if cache == "none" and batch > 8 else None)
    flop, read = work_of(model.network.shape, cache, batch)
    least, about = floor.least(flop, read), "" if mine.complete else "~"
    line = (
        f"{cache:6}{batch:6}{mine.step:9.2f}{mine.refresh:9.2f}{about + format(mine.whole, '.2f'):>9}{mine.rate:10.1f}"
    )
    line += f"{1e3 * flop / mine.step:9.0f}{1e3 * read / mine.step:7.2f}{mine.step / least:9.2f}{mine.memory:6.1f}  |"
    result: dict[str, Any] = asdict(mine) | {"floor": least}
    if other is not None:
        they = theirs(other, cache, batch)
        about = "" if they.complete else "~"
        line += f"{they.step:20.2f}{they.refresh:9.2f}{about + format(they.whole, '.2f'):>9}"
        line += f"{they.step / mine.step:22.1f}{they.whole / mine.whole:7.1f}"
        result["published"] = asdict(they)
    print(line, flush=True)
    return result


def policies(model: TransformerDenoiser) -> dict[str, float]:
    """Milliseconds per step with the dual cache at batch 1, for several policies: the cost of a score and of a stop
    rule."""
    counts = torch.randint(0, 1000, (SHAPE.vocab,), generator=torch.Generator().manual_seed(0))
    confidence = presets.semi_ar(blocks=BLOCKS, cache="dual")
    score = Confidence() + Informativeness(FrequencyTable(counts, "random")) + ExponentialPosition(0.25)
    samplers = {
        "confidence": confidence,
        "uncode": replace(confidence, policy=Policy(score, TopK(), Blocks(count=BLOCKS))),
        "confidence, the host looking for an end at every step": confidence.stopping(AfterEos()),
    }
    times: dict[str, list[float]] = {name: [] for name in samplers}
    for _ in range(5):
        for name, sampler in samplers.items():
            times[name].append(ours(model, "dual", 1, sampler=sampler).step)
    return {name: statistics.median(values) for name, values in times.items()}


def by_quota(model: TransformerDenoiser, other: Published) -> Iterator[dict[str, float]]:
    """Print and yield the tokens per second of whole decodes at batch 1, with the dual cache and in a window that
    slides, by tokens per forward: the better of two decodes each."""
    prompt, canvas = prompts(1).to(DEVICE), Canvas.after_prompt(prompts(1), LENGTH, MASK)
    print("batch 1:  tokens a forward  dual: tokens/s  window: tokens/s  |  published, dual: tokens/s  ours is faster")
    for quota in (1, 2, 4, 8):
        window = Policy(Confidence(), TopK(Exactly(quota)), SlidingWindow(BLOCK))
        decodes: tuple[Callable[[], Iterable[Any]], ...] = (
            partial(steps, model, canvas, presets.semi_ar(blocks=BLOCKS, steps=LENGTH // quota, cache="dual")),
            partial(steps, model, canvas, Sampler(window, cache=WindowCache())),
            partial(published, other, prompt, LENGTH, BLOCK, "dual", MASK, per_forward=quota),
        )
        for decode in decodes:
            between(decode())  # captures graphs, and compiles the published attention for each shape
        mine, sliding, theirs = (1e3 * LENGTH / min(sum(between(decode())) for _ in range(2)) for decode in decodes)
        print(f"{quota:26}{mine:16.1f}{sliding:18.1f}  |{theirs:27.1f}{mine / theirs:16.1f}", flush=True)
        yield {"tokens a forward": quota, "tokens/s": mine, "window tokens/s": sliding, "published tokens/s": theirs}


def by_draft_steps(model: TransformerDenoiser) -> Iterator[dict[str, float]]:
    """Print and yield milliseconds per forward and tokens per second at batch 1 with the dual cache, by draft
    steps: the better of two decodes each, confidence inside blocks.

    How many tokens a forward writes depends on the model. One with random weights says what a wider forward costs.
    """
    canvas = Canvas.after_prompt(prompts(1), LENGTH, MASK)
    print("dual, batch 1:  draft steps  ms/forward  forwards  tokens/s", flush=True)
    for count in (1, 2, 4, 8):
        sampler = presets.semi_ar(blocks=BLOCKS, cache="dual", draft_steps=count)
        decodes = [between(steps(model, canvas, sampler)) for _ in range(3)][1:]  # the first captures graphs
        times = min(decodes, key=sum)
        each, rate = statistics.median(times), 1e3 * LENGTH / sum(times)
        print(f"{count:27}{each:12.3f}{len(times):10}{rate:10.1f}", flush=True)
        yield {"draft steps": count, "ms/forward": each, "forwards": len(times), "tokens/s": rate}


def measured(chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Print and yield the figures as they are measured. The large batches take longest and come last."""
    floor = floors()
    print(f"floors: {floor.product:.0f} TFLOP/s, copy {floor.copy:.2f} TB/s")
    figures: dict[str, Any] = {"floors": asdict(floor), "belief": belief(floor), "table": []}
    print("belief: " + ", ".join(f"{name} {value:.3g}" for name, value in figures["belief"].items()), flush=True)
    made = network(chosen.layers)
    model, other = TransformerDenoiser(made, LLADA, mask_id=MASK, eos_ids=(END,)), Published(made)
    warm = time.monotonic()
    between(
        steps(model, Canvas.after_prompt(prompts(1), LENGTH, MASK), presets.semi_ar(blocks=BLOCKS, cache="dual")), 9
    )
    figures["warm-up"] = time.monotonic() - warm
    print(f"{made.shape.parameters / 1e9:.2f} B parameters, bfloat16; the first nine steps {figures['warm-up']:.1f} s")
    figures["policies"] = policies(model)
    print("dual, batch 1, ms a step: " + "; ".join(f"{n} {value:.3f}" for n, value in figures["policies"].items()))
    figures["by quota"] = list(by_quota(model, other))
    figures["by draft steps"] = list(by_draft_steps(model))
    print(HEADER, flush=True)
    for batch, cache in itertools.product(chosen.batches, chosen.caches):
        figures["table"].append(row(model, other, cache, batch, floor))
        yield figures
    if "dual" in chosen.caches and len(chosen.batches) > 1:
        figures["table"].append(row(model, None, "dual", 16, floor))
        yield figures


LIMITS = {
    ("none", 1): 1.2,
    ("prefix", 1): 2.0,
    ("dual", 1): 1.5,
    ("none", 8): 1.1,
    ("prefix", 8): 1.3,
    ("dual", 8): 1.6,
}
"""A step's most milliseconds, in units of its floor, by cache and batch: what was measured, and a tenth more."""
MIN_SPEEDUP = 2.5
"""At least so many times the published tokens per second with the dual cache at batch 1, by tokens per forward."""


def missed(figures: dict[str, Any]) -> list[str]:
    """What is over its limit."""
    belief, rows = figures["belief"], figures["table"]
    found = ["beliefs differ from float64"] if belief["tokens that differ"] or belief["log p off by"] > 1e-5 else []
    for row in rows:
        limit, ratio = LIMITS.get((row["cache"], row["batch"])), row["step"] / row["floor"]
        if limit is not None and ratio > limit:
            found.append(
                f"{row['cache']} at batch {row['batch']}: a step takes {ratio:.2f} times its floor, not {limit}"
            )
    for row in figures["by quota"]:
        ratio = row["tokens/s"] / row["published tokens/s"]
        if ratio < MIN_SPEEDUP:
            found.append(f"{row['tokens a forward']} tokens a forward: {ratio:.1f} times the published rate")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--caches", nargs="+", default=CACHES, choices=CACHES)
    parser.add_argument("--layers", type=int, default=SHAPE.layers)
    parser.add_argument("--out", type=Path, help="write all figures as JSON")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a limit is missed")
    chosen = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a CUDA GPU: run bench/cpu.py on a CPU.")
    if chosen.out:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    for figures in measured(chosen):
        if chosen.out:  # written after every row, so that no figure is lost
            write_whole(chosen.out, json.dumps(figures, indent=1) + "\n")
    print(f"{time.monotonic() - began:.0f} s")
    if chosen.check and (found := missed(figures)):
        sys.exit("; ".join(found))


if __name__ == "__main__":
    main()
