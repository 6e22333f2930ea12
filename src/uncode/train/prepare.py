"""From a training config to the files a run needs: tokenizer and examples."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path

from ..backbones.loading.tokenizer import tokenizer_of
from ..core.errors import require
from ..core.support.write import write_whole
from ..evals.families import FAMILIES
from ..extras import check_installed
from .config import TrainConfig
from .curriculum import TrainingExample, curriculum
from .shards import FILE, Shards, examples_file, tokenize
from .tokenizer import train_tokenizer

TEXTS = "curriculum.jsonl"
SAMPLE = 60_000
"""Examples that the tokenizer is trained on: enough for every word of the families."""
SEED = 0
"""Of the curriculum: runs with other seeds learn from the same examples."""


def prepare(
    config: TrainConfig, folder: Path, on_progress: Callable[[str, int], None], workers: int | None = None
) -> Shards:
    """Draw the curriculum and train the tokenizer on it; write both, and the text as it is taught, to be counted."""
    check_can_draw(config)
    folder.mkdir(parents=True, exist_ok=True)
    examples = list(curriculum(config.examples.rows, SEED, workers or os.cpu_count() or 1, on_progress))
    every = max(1, len(examples) // SAMPLE)
    train_tokenizer(_texts(examples[::every]), config.network.vocab, folder)
    tokenizer = tokenizer_of(folder)
    require(
        len(tokenizer) == config.network.vocab,
        f"the curriculum has words for {len(tokenizer)} tokens only: lower network.vocab.",
    )
    longest = max(config.examples.lengths) - config.examples.spare
    shards = tokenize(examples, tokenizer, longest, made_by(config, folder), lambda count: on_progress("tokens", count))
    texts = (example.prompt + example.response for _, example in examples)
    write_whole(folder / TEXTS, "".join(json.dumps({"text": text}) + "\n" for text in texts))
    shards.save(folder / FILE)
    return shards


def check_can_draw(config: TrainConfig) -> None:
    """Raise if the examples of a config cannot be drawn here: a number is missing, or a package."""
    names = list(FAMILIES)
    require(
        len(config.examples.rows) == len(names),
        f"examples.rows needs {len(names)} numbers, one for each of {', '.join(names)}.",
    )
    if dict(zip(names, config.examples.rows, strict=True))["mini_story"]:
        check_installed("reasoning_gym", "train", "drawing story problems")


def made_by(config: TrainConfig, folder: Path) -> str:
    """What examples depend on, as far as it is seen without drawing them: config, tokenizer, held-out problems."""
    parts = [config.data_sha256.encode(), (folder / "tokenizer.json").read_bytes()]
    parts += [json.dumps([family.key(e) for e in family.examples()]).encode() for family in FAMILIES.values()]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def load_examples(config: TrainConfig, folder: Path) -> Shards:
    """The examples in a folder, if they were made for this config, with the tokenizer beside them."""
    shards = Shards.load(examples_file(folder))
    fits = (folder / "tokenizer.json").is_file() and shards.made_by == made_by(config, folder)
    require(
        fits, f"the examples in '{folder}' are of another config, tokenizer or version: make them again with --prepare."
    )
    return shards


def _texts(examples: list[tuple[int, TrainingExample]]) -> itertools.chain[str]:
    return itertools.chain.from_iterable(example for _, example in examples)
