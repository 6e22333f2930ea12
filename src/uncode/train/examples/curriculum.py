"""The curriculum: training examples of the seven families, with answers in several styles."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from random import Random
from typing import NamedTuple

from ...evals.suite.families import FAMILIES

CHUNK_EXAMPLES = 500
"""Examples that are drawn from one seed."""
ANSWERS_PER_PROBLEM = 3
"""Each answer to a problem has its own randomly drawn style."""


class TrainingExample(NamedTuple):
    """A prompt and one correct answer."""

    prompt: str
    response: str


def draw(family: str, seed: int, chunk: int, count: int = CHUNK_EXAMPLES) -> list[TrainingExample]:
    """Draw `count` training examples of a family, none of them from a problem that is held out for testing."""
    task, random, found = FAMILIES[family], Random(f"{family} {seed} {chunk}"), list[TrainingExample]()
    while len(found) < count:
        example = task.draw(random)
        if not task.held_out(example):
            answers = ANSWERS_PER_PROBLEM if len(task.styles) > 1 else 1
            styles = [task.style(random) for _ in range(answers)]
            found += [TrainingExample(task.prompt(example), task.response(example, style)) for style in styles]
    return found[:count]


def curriculum(
    rows: tuple[int, ...], seed: int, workers: int, on_progress: Callable[[str, int], None]
) -> Iterator[tuple[int, TrainingExample]]:
    """All training examples with the number of their family. The number of workers does not change them."""
    jobs = [
        (number, name, chunk, min(CHUNK_EXAMPLES, wanted - chunk * CHUNK_EXAMPLES))
        for number, (name, wanted) in enumerate(zip(FAMILIES, rows, strict=True))
        for chunk in range(-(-wanted // CHUNK_EXAMPLES))
    ]
    numbers, names, chunks, counts = zip(*jobs, strict=True)
    spawned = None if workers == 1 else ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    with spawned or nullcontext():
        drawn = (spawned.map if spawned else map)(draw, names, [seed] * len(jobs), chunks, counts)
        for number, name, examples in zip(numbers, names, drawn, strict=True):
            on_progress(name, len(examples))
            yield from ((number, example) for example in examples)
