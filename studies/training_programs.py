"""Write what the programs compute that `tiny` learns from: `python -m studies.training_programs`.

The file keeps new draws of test problems free of twins of training examples. It belongs to the config `tiny`: write it
again when its examples change. That takes one to two minutes.
"""

from __future__ import annotations

import io
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from uncode.evals.suite import families
from uncode.evals.suite.families import FAMILIES
from uncode.evals.suite.families.behaviour import TRAINING_FILE, Behaviour
from uncode.train.config import TrainConfig
from uncode.train.examples.curriculum import TrainingExample, curriculum
from uncode.train.examples.prepare import CURRICULUM_SEED
from uncode.util.write import write_whole

from .trainings import TINY_CONFIG

PROGRAMS = ("mini_docstring", "mini_sentence")
REPORT_EVERY = 15_000


def training_programs(
    rows: tuple[int, ...], on_progress: Callable[[str, int], None] = lambda name, count: None
) -> list[int]:
    """The digests of all programs among the training examples, each once. `rows` is as in a config."""
    of_programs = tuple(count if name in PROGRAMS else 0 for name, count in zip(FAMILIES, rows, strict=True))
    drawn = curriculum(of_programs, CURRICULUM_SEED, 1, on_progress)
    return sorted({Behaviour.of(program(example)).digest for _, example in drawn})


def program(example: TrainingExample) -> str:
    """The program of a training example. A docstring's begins in the prompt; others may stand in a fence."""
    found = re.search(r"^def [^`]*", f"{example.prompt}\n{example.response}", re.MULTILINE)
    assert found is not None, "every answer of a program family is a function"
    return found[0]


def main() -> None:
    done = Counter[str]()

    def report(name: str, count: int) -> None:
        done[name] += count
        if done[name] % REPORT_EVERY == 0:
            print(f"{name}: {done[name]:,} training examples", file=sys.stderr)

    digests = training_programs(TrainConfig.load(TINY_CONFIG).examples.rows, report)
    file = io.BytesIO()
    np.save(file, np.array(digests, dtype=np.uint32))
    write_whole(Path(families.__file__).parent / TRAINING_FILE, file.getvalue())
    print(f"{TRAINING_FILE}: {len(digests)} programs", file=sys.stderr)


if __name__ == "__main__":
    main()
