"""Tokens per second of whole decodes, by weights, cache, batch and tokens a forward: `bench/gpu.py --throughput`.

Confidence decides the order: in blocks of 32, or with a weak positional prior in a window of 32 columns that slides.
Where bf16 comes first, a loop in the style of the published code decodes one row on the same weights with as many
tokens a forward (see published.py).
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import workload
from published import Published, published
from workload import between, canvas, denoiser, network, prompts, sampler_of

from uncode.backbones.denoiser import TransformerDenoiser
from uncode.generation.decoding import steps

QUOTAS, BATCHES = (1, 2, 4, 8), (1, 4, 16, 64)
MAX_REPEATED = 4
"""Rows up to which a decode is run whole before it is measured. Of more rows, two blocks are."""

MIN_RATES = {
    ("bf16", 1, 4): 720,
    ("bf16", 16, 4): 2200,
    ("bf16", 64, 4): 2300,
    ("fp8", 1, 4): 1100,
    ("fp8", 1, 8): 1900,
    ("fp8", 16, 4): 3300,
    ("fp8", 64, 4): 3500,
}
"""The least tokens per second on an H200, by weights, batch and tokens a forward: of the fastest cache measured."""

Rates = dict[int, float]
"""Tokens per second by tokens a forward."""


@dataclass
class Row:
    """One line of the table."""

    weights: str
    cache: str
    batch: int
    rates: Rates = field(default_factory=dict)
    forwards: dict[int, int] = field(default_factory=dict)
    """Forwards of a decode by tokens a forward. A window that is nearly full of tokens commits fewer than it may."""
    published: Rates = field(default_factory=dict)
    """Of the published style with this block cache, with the dual cache beside a window."""

    @property
    def speedups(self) -> Rates:
        return {quota: self.rates[quota] / rate for quota, rate in self.published.items()}

    def __str__(self) -> str:
        rates = "".join(f"{rate:9.1f}" for rate in self.rates.values())
        forwards = "".join(f"{count:6}" for count in self.forwards.values())
        line = f"{self.weights:8}{self.cache:13}{self.batch:6}{rates}  |{forwards}"
        if not self.published:
            return line
        theirs = "".join(f"{rate:8.1f}" for rate in self.published.values())
        return f"{line}  |{theirs}  |{''.join(f'{ratio:6.1f}' for ratio in self.speedups.values())}"


def published_rates(other: Published, cache: str, quotas: Sequence[int]) -> Rates:
    """Measure the published style on one row."""
    prompt = prompts(1).to(workload.DEVICE)

    def seconds(quota: int) -> float:
        given = (workload.LENGTH, workload.BLOCK, cache, workload.MASK)
        return sum(between(published(other, prompt, *given, per_forward=quota))) / 1e3

    seconds(max(quotas))  # compiles its attention for each shape
    return {quota: workload.LENGTH / seconds(quota) for quota in quotas}


def measure(model: TransformerDenoiser, row: Row, quotas: Sequence[int], prior: float = workload.PRIOR) -> Row:
    """Fill in a line: the better of two decodes for each number of tokens a forward; of a large batch, one."""
    given, repeats = canvas(row.batch), 1 if row.batch > MAX_REPEATED else 2
    for quota in quotas:
        sampler = sampler_of(row.cache, quota, prior)
        warm_up = None if row.batch <= MAX_REPEATED else 2 * workload.BLOCK // quota + 2
        between(steps(model, given, sampler), warm_up)  # captures CUDA graphs
        times = min((between(steps(model, given, sampler)) for _ in range(repeats)), key=sum)
        row.rates[quota] = 1e3 * row.batch * workload.LENGTH / sum(times)
        row.forwards[quota] = len(times)
    return row


def header(quotas: Sequence[int]) -> str:
    names = "".join(f"{quota:9}" for quota in quotas)
    forwards, theirs, ratios = ("".join(f"{quota:{width}}" for quota in quotas) for width in (6, 8, 6))
    title = f"{'weights cache':21}{'batch':>6}{names}  |{forwards}  |{theirs}  |{ratios}"
    return f"tokens/s by tokens a forward  |  forwards  |  published style: tokens/s  |  ours is faster\n{title}"


def measured(
    layers: int,
    formats: Sequence[str],
    caches: Sequence[str],
    batches: Sequence[int],
    quotas: Sequence[int],
    prior: float = workload.PRIOR,
) -> Iterator[Row]:
    """Print and yield the lines as they are measured. Without a cache, and beside the published style, is one row."""
    print(f"positional prior in windows: {prior:g}")
    print(header(quotas), flush=True)
    theirs: dict[str, Rates] = {}
    for weights in formats:
        made = network(layers, weights)
        if weights == "bf16" and 1 in batches:
            other = Published(made)
            compared = dict.fromkeys("dual" if cache.startswith("window") else cache for cache in caches)
            theirs = {cache: published_rates(other, cache, quotas) for cache in compared}
            del other
        yield from of_network(denoiser(made), weights, caches, batches, quotas, theirs, prior)
        del made
        gc.collect()
        torch.cuda.empty_cache()


def of_network(
    model: TransformerDenoiser,
    weights: str,
    caches: Sequence[str],
    batches: Sequence[int],
    quotas: Sequence[int],
    theirs: dict[str, Rates],
    prior: float = workload.PRIOR,
) -> Iterator[Row]:
    for batch, cache in itertools.product(batches, caches):
        if batch > 1 and cache == "none":
            continue
        beside = theirs.get("dual" if cache.startswith("window") else cache, {}) if batch == 1 else {}
        row = measure(model, Row(weights, cache, batch, published=beside), quotas, prior)
        print(row, flush=True)
        yield row


def missed(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What is below its limit."""
    best: dict[tuple[str, int, int], float] = {}
    for row in rows:
        for quota, rate in row["rates"].items():
            kind = row["weights"], row["batch"], quota
            best[kind] = max(best.get(kind, 0.0), rate)
    return [
        f"{weights}, batch {batch}, {quota} a forward: {best[weights, batch, quota]:.0f} tokens/s, not {least}"
        for (weights, batch, quota), least in MIN_RATES.items()
        if best.get((weights, batch, quota), least) < least
    ]
