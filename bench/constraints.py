"""What constraints cost: in processor time over a tokenizer, or in a model's steps on a GPU.

Over a tokenizer: compiling them, and each step of a canvas of masks. A step is two parts. `step` finds what is allowed
in a block of 32 columns; a GPU runs the forward meanwhile. `check` says whether what was written leaves a completion; a
GPU may wait for it. Each step writes one token that is allowed, drawn at random, into the leftmost block. `first` is
the first look at the whole canvas. Compiled constraints on the disk are not read, and a new cache folder is removed at
the end.

On a GPU: the steps of a decode in which no row, every second row, or every row has a constraint, by batch and by tokens
a forward, with the dual cache. The network has 8.0 B random weights, and the vocabulary is made up.

The constraints are the schemas of `tests/constraints/schemas.py`, any JSON, and `[A-Za-z ,.]{1,80}`.

    python bench/constraints.py tokenizer.json                 a file, a folder, or a model of Hugging Face
    python bench/constraints.py Qwen/Qwen2.5-7B --masks 256
    python bench/constraints.py --device cuda --weights bf16 fp8
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import resource
import string
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
import workload

import uncode
from uncode.backbones.loading.tokenizer import load_tokenizer
from uncode.constraints.compiled import byte_dfa, compiled
from uncode.constraints.completions import Automaton
from uncode.constraints.vocabulary import Vocabulary
from uncode.core.denoiser import Facts
from uncode.generation.decoding import steps

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.constraints.schemas import SCHEMAS
from tests.constraints.vocabularies import ByteTokenizer

LINE = "{:<22}" + "{:>10}" * 9
COLUMNS = ("compile s", "states", "classes", "first ms", "step ms", "p99", "largest", "check ms", "p99")
BLOCK = 32
STEP_HEADER = "weights  batch  tokens a forward  constraint in      ms/step     p90  ms in all  x free"
STEP_LINE = "{:7}{:7}{:18}  {:16}{:10.3f}{:8.3f}{:11.1f}{:8.3f}"
FAR = 1 << 30


def rules() -> dict[str, Any]:
    """What each constraint is made of."""
    found = {name: {"json_schema": schema} for name, schema in SCHEMAS.items()}
    return found | {"any JSON": {"kind": "json"}, "[A-Za-z ,.]{1,80}": {"regex": "[A-Za-z ,.]{1,80}"}}


def facts_of(tokenizer: Any) -> Facts:
    """A model that has this tokenizer. Its mask is one id more."""
    eos = getattr(tokenizer, "eos_token_id", None)
    size = len(tokenizer) + 1
    return Facts(size, size - 1, () if eos is None else (eos,), torch.device("cpu"), tokenizer=tokenizer)


def measured(given: dict[str, Any], vocabulary: Vocabulary, mask_id: int, masks: int) -> tuple[float, ...]:
    """The columns of a constraint's line."""
    byte_dfa.cache_clear()
    began = time.process_time()
    expression = uncode.constraint(**given).expression
    automaton = Automaton(compiled(expression, vocabulary), mask_id, (), torch.device("cpu"))
    compiling, began = time.process_time() - began, time.process_time()
    row = automaton.open(np.full(masks, mask_id))
    if row.exist:
        row.allowed(0, masks)
    looking = 1e3 * (time.process_time() - began)
    steps, checks = (1e3 * np.array(each) for each in stepping(automaton, mask_id, masks))
    spent = np.median(steps), np.quantile(steps, 0.99), steps.max(), np.median(checks), np.quantile(checks, 0.99)
    return compiling, len(compiled(expression, vocabulary).table), automaton.count, looking, *map(float, spent)


def stepping(automaton: Automaton, mask_id: int, masks: int) -> tuple[list[float], list[float]]:
    """Seconds of each step of a decode, and of each check of what it wrote."""
    random, span = np.random.default_rng(0), np.full(masks, mask_id)
    row, steps, checks = automaton.open(span), list[float](), list[float]()
    while row.exist and (span == mask_id).any():
        first = int(np.argmax(span == mask_id)) // BLOCK * BLOCK
        began = time.thread_time()
        allowed = row.allowed(first, first + BLOCK)
        steps.append(time.thread_time() - began)
        column = int(random.choice(np.flatnonzero(span[first : first + BLOCK] == mask_id)))
        of_class = int(random.choice(np.flatnonzero(allowed[column])))
        span[first + column] = random.choice(np.flatnonzero(automaton.class_of == of_class))
        began = time.thread_time()
        row.read(span)
        assert row.exist
        checks.append(time.thread_time() - began)
    return steps or [0.0], checks or [0.0]


def made_up(size: int) -> ByteTokenizer:
    """A tokenizer of bytes, words, numbers and runs of signs: the characters of ASCII, all bytes, and what is drawn."""
    draw, letters = random.Random(0), string.ascii_lowercase
    found = dict.fromkeys([bytes([one]) for one in string.printable.encode()])
    found |= dict.fromkeys(bytes([one]) for one in range(256))
    while len(found) < size:
        word = (
            draw.choice(("", " "))
            + draw.choice(string.ascii_letters)
            + "".join(draw.choices(letters, k=draw.randint(0, 7)))
        )
        signs = "".join(draw.choices('{}[]":,.-\n ', k=draw.randint(2, 4)))
        found |= dict.fromkeys(each.encode() for each in (word, signs, str(draw.randint(0, 999))))
    return ByteTokenizer(list(found)[:size])


def in_steps(weights: str, layers: int, batches: Sequence[int], quotas: Sequence[int]) -> Iterator[str]:
    """Lines with milliseconds of GPU time from step to step, by the rows that have a constraint."""
    model = workload.denoiser(workload.network(layers, weights))
    model.tokenizer = made_up(workload.MASK - 1)
    facts = Facts.of(model)
    found = [uncode.constraint(**given) for given in rules().values()]
    fits = [one for one in found if (one.bind(facts).shortest() or FAR) <= workload.LENGTH]
    for batch, quota in itertools.product(batches, quotas):
        every = [fits[row % len(fits)] for row in range(batch)]
        cases = {
            "no row": None,
            "every second row": [one if row % 2 else None for row, one in enumerate(every)],
            "every row": every,
        }
        if batch == 1:
            del cases["every second row"]
        canvas, sampler = workload.canvas(batch), workload.sampler_of("dual", quota)
        times: dict[str, list[list[float]]] = {name: [] for name in cases}
        for name in [*cases, *cases, *cases]:
            run = steps(model, canvas, sampler, 0, cases[name])
            times[name].append(workload.between(run, workload.LENGTH // quota // 2))
        free = np.median(np.concatenate(times["no row"][1:]))
        for name, each in times.items():
            spent = np.concatenate(each[1:])  # the first decode captures graphs and fills memories
            middle, late = np.median(spent), np.quantile(spent, 0.9)
            yield STEP_LINE.format(
                weights, batch, quota, name, middle, late, spent.sum() / len(each[1:]), middle / free
            )


def main() -> None:
    """Read the vocabulary, compile, print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("tokenizer", nargs="?", help="a tokenizer.json, a folder with one, or a model of Hugging Face")
    options.add_argument("--masks", type=int, default=256)
    options.add_argument("--device", help="time a model's steps there")
    options.add_argument("--weights", nargs="+", default=["bf16"], choices=workload.WEIGHTS)
    options.add_argument("--layers", type=int, default=workload.SHAPE.layers)
    options.add_argument("--batches", type=int, nargs="+", default=[1, 16])
    options.add_argument("--quotas", type=int, nargs="+", default=[1, 4], help="tokens a forward")
    chosen = options.parse_args()
    if (chosen.tokenizer is None) == (chosen.device is None):
        options.error("name a tokenizer, or a device")
    before = os.environ.get("UNCODE_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["UNCODE_CACHE"] = folder
        try:
            if chosen.device is None:
                _measure(facts_of(load_tokenizer(chosen.tokenizer).tokenizer), chosen.masks)
            else:
                _measure_steps(chosen)
        finally:
            os.environ.pop("UNCODE_CACHE")
            os.environ |= {} if before is None else {"UNCODE_CACHE": before}


def _measure_steps(chosen: argparse.Namespace) -> None:
    workload.DEVICE = chosen.device
    print(STEP_HEADER)
    for weights in chosen.weights:
        for line in in_steps(weights, chosen.layers, chosen.batches, chosen.quotas):
            print(line, flush=True)


def _measure(facts: Facts, masks: int) -> None:
    began = time.process_time()
    vocabulary = Vocabulary.of(facts)
    _ = vocabulary.content
    print(f"vocabulary of {facts.vocab_size - 1:,} tokens: read in {time.process_time() - began:.2f} s")
    print(LINE.format("constraint", *COLUMNS))
    found = list[tuple[float, ...]]()
    for name, given in rules().items():
        found.append(measured(given, vocabulary, facts.mask_id, masks))
        print(_line(name, found[-1]), flush=True)
    columns = list(zip(*found, strict=True))
    print(_line("median", [median(column) for column in columns]))
    print(_line("largest", [max(column) for column in columns]))
    print(f"peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def _line(name: str, values: Sequence[float]) -> str:
    compiling, states, classes, *times = values
    return LINE.format(name, f"{compiling:.2f}", f"{states:.0f}", f"{classes:.0f}", *(f"{ms:.2f}" for ms in times))


if __name__ == "__main__":
    main()
