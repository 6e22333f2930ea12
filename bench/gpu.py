"""Decoding on one GPU compared with the hardware's floors: an 8.0 B network of LLaDA's shape with random weights.

The floors are measured in the same run. A loop in the style of the published code runs on the same weights (see
published.py). Needs a CUDA GPU with 80 GB, torch and triton; takes eight minutes on an H200.

    python bench/gpu.py                                       # steps and refreshes beside their floors
    python bench/gpu.py --batches 1 --caches dual --layers 4  # to try it out
    python bench/gpu.py --throughput --weights bf16 fp8 --caches dual window-never --quotas 4 8 --batches 1 16 64
    python bench/gpu.py --step --weights bf16 fp8 --check     # a block step and a refresh by format of the weights
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import throughput
import torch
import workload
from published import Published, published
from workload import CACHES, WEIGHTS, between, canvas, denoiser, median_ms, network, prompts

from uncode.backbones.denoiser import TransformerDenoiser
from uncode.backbones.transformer.shape import Shape
from uncode.core.belief import Belief
from uncode.core.pieces.blocks import Blocks
from uncode.core.pieces.policy import Policy, Sampler
from uncode.core.pieces.score import Confidence, ExponentialPosition, Informativeness
from uncode.core.pieces.select import TopK
from uncode.core.pieces.stop import AfterEos
from uncode.frequency import FrequencyTable
from uncode.generation.decoding import steps
from uncode.samplers import presets
from uncode.util.write import write_whole

FLOOR_SIDE, FLOOR_BYTES, FLOOR_SECONDS = 8192, 2 << 30, 10.0
"""Of the square matrices and of the copy that the floors are measured with, and of the load before."""
BLOCK_CACHES = ("none", "prefix", "dual")


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
        first, rest = times[:: workload.BLOCK], [t for number, t in enumerate(times) if number % workload.BLOCK]
        step, refresh = (statistics.median(part) for part in ((times, times) if cache == "none" else (rest, first)))
        complete = len(times) == workload.LENGTH
        counted = (workload.BLOCKS * refresh + (workload.LENGTH - workload.BLOCKS) * step) / 1e3
        return cls(cache, batch, step, refresh, seconds if complete else counted, complete)

    @property
    def rate(self) -> float:
        return self.batch * workload.LENGTH / self.whole


def floors() -> Floors:
    """Measure a large matrix product, after some seconds of load, and a large copy."""
    a, b = (torch.randn(FLOOR_SIDE, FLOOR_SIDE, device=workload.DEVICE, dtype=torch.bfloat16) for _ in range(2))
    began = time.monotonic()
    while time.monotonic() - began < FLOOR_SECONDS:
        for _ in range(20):
            a @ b
        torch.cuda.synchronize()
    product = 2 * FLOOR_SIDE**3 / median_ms(lambda: a @ b, 50) / 1e9
    source = torch.randint(-100, 100, (FLOOR_BYTES,), device=workload.DEVICE, dtype=torch.int8)
    target = torch.empty_like(source)
    return Floors(product, 2 * source.numel() / median_ms(lambda: target.copy_(source), 30) / 1e9)


@torch.inference_mode()
def belief(floor: Floors) -> dict[str, float]:
    """The bandwidth of the belief kernel on the logits of a batch of 32, and its error against float64."""
    logits = torch.empty(
        32, workload.LENGTH, workload.SHAPE.vocab, device=workload.DEVICE, dtype=torch.bfloat16
    ).normal_(0, 4)
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


def ours(
    model: TransformerDenoiser, cache: str, batch: int, limit: int | None = None, sampler: Sampler | None = None
) -> Timing:
    """Time a decode by the stepper. CUDA events time the steps without a host sync. Graph capture is included."""
    chosen = sampler or presets.semi_ar(blocks=workload.BLOCKS, cache=cache)  # type: ignore[arg-type]

    def work() -> Iterator[Any]:
        return iter(steps(model, canvas(batch), chosen))

    every_width = cache == "prefix" and batch <= 8  # its last blocks are narrow and compile kernels for few rows
    between(work(), None if every_width else workload.BLOCK + 8)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before, began = sum(weight.nbytes for weight in model.network.parameters()), time.monotonic()
    timing = Timing.of(cache, batch, between(work(), limit), time.monotonic() - began)
    timing.memory = (torch.cuda.max_memory_reserved() - before) / 1e9
    return timing


def theirs(model: Published, cache: str, batch: int) -> Timing:
    """Time the published style: the whole decode at batch 1, else some steps of the two middle blocks."""

    def work(skipped: int = 0) -> Iterator[Any]:
        return published(
            model, prompts(batch).to(workload.DEVICE), workload.LENGTH, workload.BLOCK, cache, workload.MASK, skipped
        )

    def measured() -> Timing:
        began = time.monotonic()
        if batch == 1:
            times = between(work())
            return Timing.of(cache, batch, times, time.monotonic() - began)
        parts = [between(work(block), 7) for block in (workload.BLOCKS // 2 - 1, workload.BLOCKS // 2)]
        return Timing.of(cache, batch, [statistics.mean(both) for both in zip(*parts, strict=True)], 0.0)

    measured()  # warm-up: its attention is compiled once per shape
    return measured()


def work_of(shape: Shape, cache: str, batch: int) -> tuple[float, float]:
    """The TFLOP of a step of a middle block (not its first step), and the TB of weights that the step reads."""
    keys = workload.PROMPT + workload.LENGTH
    window = {"none": keys, "prefix": (workload.LENGTH + workload.BLOCK) // 2, "dual": workload.BLOCK}[cache]
    head = shape.vocab * shape.width
    layers = shape.parameters - 2 * head
    flop = 2 * layers * window + 4 * window * keys * shape.width * shape.layers + 2 * head * workload.BLOCK
    return batch * flop / 1e12, 2 * (layers + head) / 1e12


HEADER = (
    "cache  batch  ms/step  refresh  seconds  tokens/s  TFLOP/s   TB/s  x floor    GB"
    "  |  published: ms/step  refresh  seconds  ours is faster: step  whole"
)


def row(model: TransformerDenoiser, other: Published | None, cache: str, batch: int, floor: Floors) -> dict[str, Any]:
    """Measure and print one line of the table."""
    mine = ours(model, cache, batch, workload.BLOCK if cache == "none" and batch > 8 else None)
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
    counts = torch.randint(0, 1000, (workload.SHAPE.vocab,), generator=torch.Generator().manual_seed(0))
    confidence = presets.semi_ar(blocks=workload.BLOCKS, cache="dual")
    score = Confidence() + Informativeness(FrequencyTable(counts, "random")) + ExponentialPosition(0.25)
    samplers = {
        "confidence": confidence,
        "uncode": replace(confidence, policy=Policy(score, TopK(), Blocks(count=workload.BLOCKS))),
        "confidence, the host looking for an end at every step": confidence.stopping(AfterEos()),
    }
    times: dict[str, list[float]] = {name: [] for name in samplers}
    for _ in range(5):
        for name, sampler in samplers.items():
            times[name].append(ours(model, "dual", 1, sampler=sampler).step)
    return {name: statistics.median(values) for name, values in times.items()}


def by_quota(model: TransformerDenoiser, other: Published) -> Iterator[throughput.Row]:
    """Print and yield the tokens per second of whole decodes at batch 1, beside the published style's."""
    print(throughput.header(throughput.QUOTAS), flush=True)
    theirs = {"dual": throughput.published_rates(other, "dual", throughput.QUOTAS)}
    yield from throughput.of_network(model, "bf16", ("dual", "window"), (1,), throughput.QUOTAS, theirs)


def by_draft_steps(model: TransformerDenoiser) -> Iterator[dict[str, float]]:
    """Print and yield milliseconds per forward and tokens per second at batch 1 with the dual cache, by draft
    steps: the better of two decodes each, confidence inside blocks.

    How many tokens a forward writes depends on the model. One with random weights says what a wider forward costs.
    """
    given = canvas(1)
    print("dual, batch 1:  draft steps  ms/forward  forwards  tokens/s", flush=True)
    for count in (1, 2, 4, 8):
        sampler = presets.semi_ar(blocks=workload.BLOCKS, cache="dual", draft_steps=count)
        decodes = [between(steps(model, given, sampler)) for _ in range(3)][1:]  # the first captures graphs
        times = min(decodes, key=sum)
        each, rate = statistics.median(times), 1e3 * workload.LENGTH / sum(times)
        print(f"{count:27}{each:12.3f}{len(times):10}{rate:10.1f}", flush=True)
        yield {"draft steps": count, "ms/forward": each, "forwards": len(times), "tokens/s": rate}


def measured(chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Print and yield the figures as they are measured. The large batches take longest and come last."""
    floor = floors()
    print(f"floors: {floor.product:.0f} TFLOP/s, copy {floor.copy:.2f} TB/s")
    figures: dict[str, Any] = {"floors": asdict(floor), "belief": belief(floor), "table": []}
    print("belief: " + ", ".join(f"{name} {value:.3g}" for name, value in figures["belief"].items()), flush=True)
    made = network(chosen.layers)
    model, other = denoiser(made), Published(made)
    warm = time.monotonic()
    between(steps(model, canvas(1), presets.semi_ar(blocks=workload.BLOCKS, cache="dual")), 9)
    figures["warm-up"] = time.monotonic() - warm
    print(f"{made.shape.parameters / 1e9:.2f} B parameters, bfloat16; the first nine steps {figures['warm-up']:.1f} s")
    figures["policies"] = policies(model)
    print("dual, batch 1, ms a step: " + "; ".join(f"{n} {value:.3f}" for n, value in figures["policies"].items()))
    figures["by quota"] = [asdict(each) for each in by_quota(model, other)]
    figures["by draft steps"] = list(by_draft_steps(model))
    print(HEADER, flush=True)
    for batch, cache in itertools.product(chosen.batches, chosen.caches):
        figures["table"].append(row(model, other, cache, batch, floor))
        yield figures
    if "dual" in chosen.caches and len(chosen.batches) > 1:
        figures["table"].append(row(model, None, "dual", 16, floor))
        yield figures


def by_weights(chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Print and yield milliseconds of a block step and of a refresh with the dual cache, by format of the weights."""
    print("dual: weights  batch  step, ms  refresh, ms  |  faster than bf16: step  refresh", flush=True)
    found: dict[tuple[str, int], Timing] = {}
    for weights in chosen.weights:
        model = denoiser(network(chosen.layers, weights))
        for batch in chosen.batches:
            found[weights, batch] = timing = ours(model, "dual", batch)
            line = f"{weights:>13}{batch:7}{timing.step:10.2f}{timing.refresh:13.2f}  |"
            if bf16 := found.get(("bf16", batch)):
                line += f"{bf16.step / timing.step:24.2f}{bf16.refresh / timing.refresh:9.2f}"
            print(line, flush=True)
            yield {"by weights": [{"weights": name} | asdict(each) for (name, _), each in found.items()]}
        del model


def by_throughput(chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    given = chosen.layers, chosen.weights, chosen.caches, chosen.batches, chosen.quotas, chosen.prior
    for each in throughput.measured(*given):
        rows.append(asdict(each))
        yield {"throughput": rows}


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
MIN_FP8 = {"step": 1.5, "refresh": 1.45}
"""At least so many times faster than in bf16 is a block step, and a refresh, with fp8 weights at batch 1."""


def missed(figures: dict[str, Any]) -> list[str]:
    """What is over its limit."""
    if "throughput" in figures:
        return throughput.missed(figures["throughput"])
    if "by weights" in figures:
        timings = {row["weights"]: row for row in figures["by weights"] if row["batch"] == 1}
        if not {"bf16", "fp8"} <= set(timings):
            return []
        ratios = {part: timings["bf16"][part] / timings["fp8"][part] for part in MIN_FP8}
        return [f"{part} in fp8: {r:.2f} times faster than in bf16" for part, r in ratios.items() if r < MIN_FP8[part]]
    belief, rows = figures["belief"], figures["table"]
    found = ["beliefs differ from float64"] if belief["tokens that differ"] or belief["log p off by"] > 1e-5 else []
    for row in rows:
        limit, ratio = LIMITS.get((row["cache"], row["batch"])), row["step"] / row["floor"]
        if limit is not None and ratio > limit:
            found.append(
                f"{row['cache']} at batch {row['batch']}: a step takes {ratio:.2f} times its floor, not {limit}"
            )
    for row in figures["by quota"]:
        for quota, theirs in row["published"].items() if row["cache"] == "dual" else ():
            if (ratio := row["rates"][quota] / theirs) < MIN_SPEEDUP:
                found.append(f"{quota} tokens a forward: {ratio:.1f} times the published rate")
    return found


KINDS = {
    "floors": (measured, (1, 8, 32), BLOCK_CACHES),
    "throughput": (by_throughput, throughput.BATCHES, tuple(CACHES)),
    "step": (by_weights, (1, 16), ("dual",)),
}
"""What can be measured, with its batches and caches."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(kind="floors")
    for kind, what in (("throughput", "tokens/s by weights, cache, batch and quota"), ("step", "steps by weights")):
        parser.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind, help=what)
    parser.add_argument("--batches", type=int, nargs="+")
    parser.add_argument("--caches", nargs="+", choices=tuple(CACHES))
    parser.add_argument("--weights", nargs="+", default=("bf16", "fp8", "int4"), choices=WEIGHTS)
    parser.add_argument("--quotas", type=int, nargs="+", default=throughput.QUOTAS, help="tokens a forward")
    parser.add_argument("--prior", type=float, default=workload.PRIOR, help="rate of the positional prior in windows")
    parser.add_argument("--layers", type=int, default=workload.SHAPE.layers)
    parser.add_argument("--out", type=Path, help="write all figures as JSON")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a limit is missed")
    chosen = parser.parse_args()
    _, batches, caches = KINDS[chosen.kind]
    if not set(chosen.caches or ()) <= set(caches):
        parser.error(f"the caches are {', '.join(caches)} here")
    chosen.batches, chosen.caches = chosen.batches or batches, chosen.caches or caches
    return chosen


def main() -> None:
    chosen = options()
    if not torch.cuda.is_available():
        sys.exit("this benchmark needs a CUDA GPU: run bench/cpu.py on a CPU.")
    if chosen.out:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    for figures in KINDS[chosen.kind][0](chosen):
        if chosen.out:  # written after every row, so that no figure is lost
            write_whole(chosen.out, json.dumps(figures, indent=1) + "\n")
    print(f"{time.monotonic() - began:.0f} s")
    if chosen.check and (found := missed(figures)):
        sys.exit("; ".join(found))


if __name__ == "__main__":
    main()
