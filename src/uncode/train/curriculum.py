"""The texts the embedded model learns from: prompts of the seven families with answers in many styles."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import NamedTuple

from ..evals.families import FAMILIES

CHUNK = 500
"""Examples that are drawn from one seed."""
ANSWERS = 3
"""To each problem, in styles drawn anew."""


class TrainingExample(NamedTuple):
    """A prompt and one right answer to it."""

    prompt: str
    response: str


def draw(family: str, seed: int, chunk: int, count: int = CHUNK) -> list[TrainingExample]:
    """Some examples of a family, none of them from a problem that is held out for testing."""
    task, random, found = FAMILIES[family], Random(f"{family} {seed} {chunk}"), list[TrainingExample]()
    while len(found) < count:
        example = task.draw(random)
        if not task.held_out(example):
            styles = [task.style(random) for _ in range(ANSWERS)]
            found += [TrainingExample(task.prompt(example), task.response(example, style)) for style in styles]
    return found[:count]


def curriculum(
    rows: tuple[int, ...], seed: int, workers: int, on_progress: Callable[[str, int], None]
) -> Iterator[tuple[int, TrainingExample]]:
    """All examples with their family's number; the same whatever the number of workers."""
    jobs = [
        (number, name, chunk, min(CHUNK, wanted - chunk * CHUNK))
        for number, (name, wanted) in enumerate(zip(FAMILIES, rows, strict=True))
        for chunk in range(-(-wanted // CHUNK))
    ]
    numbers, names, chunks, counts = zip(*jobs, strict=True)
    seeds = [seed] * len(jobs)
    if workers == 1:
        yield from _told(numbers, names, map(draw, names, seeds, chunks, counts), on_progress)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        yield from _told(numbers, names, pool.map(draw, names, seeds, chunks, counts), on_progress)


def _told(
    numbers: tuple[int, ...],
    names: tuple[str, ...],
    drawn: Iterator[list[TrainingExample]],
    on_progress: Callable[[str, int], None],
) -> Iterator[tuple[int, TrainingExample]]:
    for number, name, examples in zip(numbers, names, drawn, strict=True):
        on_progress(name, len(examples))
        yield from ((number, example) for example in examples)
