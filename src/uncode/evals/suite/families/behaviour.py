"""What a generated program computes. Programs with the same results on fixed inputs are twins."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from importlib import resources
from random import Random
from typing import NamedTuple

import numpy as np

from .family import hash_number

INPUTS = 96
TRAINING_FILE = "training_programs.npy"
"""Digests of the programs that `tiny` learned from; `python -m studies.training_programs` writes it."""


class Behaviour(NamedTuple):
    """What a program computes on the fixed inputs."""

    digest: int
    """A hash, of 32 bits, of its arguments and of all results."""
    is_constant: bool
    """Whether all results are equal, as those of a filter that contradicts itself."""

    @classmethod
    def of(cls, program: str) -> Behaviour:
        """Run a program from this package's own tables, in this process."""
        signature = re.match(r"def (\w+)\((.*)\):", program)
        assert signature is not None, "a program begins with its signature"
        name, arguments = signature.groups()
        space: dict[str, Callable[..., object]] = {}
        exec(program, space)  # the code comes from the tables of this package
        results = [space[name](*(given[argument] for argument in arguments.split(", "))) for given in _inputs()]
        digest = hash_number(f"{arguments} {results!r}") % 2**32
        return cls(digest, all(result == results[0] for result in results))

    @property
    def is_in_training(self) -> bool:
        """Whether a training example of `tiny` computes the same."""
        return self.digest in _in_training()


@functools.cache
def _in_training() -> frozenset[int]:
    with (resources.files(__package__) / TRAINING_FILE).open("rb") as file:
        return frozenset(np.load(file, allow_pickle=False).tolist())


@functools.cache
def _inputs() -> list[dict[str, object]]:
    """Lists of zero to ten numbers; every fourth has numbers near the limits of filters, such as `k` itself."""
    random, found = Random("behaviour"), list[dict[str, object]]()
    for number in range(INPUTS):
        k, count = random.randint(-9, 12), random.choice((0, 1, 2, 3, 5, 6, 8, 10))
        near = (k - 1, k, k + 1, -1, 0, 1, 12, 13, 19)
        pool = near if number % 4 == 0 else range(-20, 21)
        xs, ys = ([random.choice(pool) for _ in range(count)] for _ in range(2))
        found.append({"xs": xs, "ys": ys, "k": k})
    return found
