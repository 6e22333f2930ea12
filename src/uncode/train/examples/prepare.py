"""Preparation of a run: draw the training examples of a config and train the tokenizer on them."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path

from ...backbones.loading.tokenizer import tokenizer_of
from ...core.errors import require
from ...evals.suite.families import FAMILIES
from ...util.write import write_whole
from ..config import TrainConfig
from .curriculum import TrainingExample, curriculum
from .shards import EXAMPLES_FILE, Shards, tokenize
from .tokenizer import train_tokenizer

TEXTS_FILE = "curriculum.jsonl"
TOKENIZER_EXAMPLES = 60_000
"""The tokenizer is trained on about this many examples, which hold every word of the families."""
CURRICULUM_SEED = 0
"""Runs with different seeds learn from the same examples."""


def prepare(
    config: TrainConfig, folder: Path, on_progress: Callable[[str, int], None], workers: int | None = None
) -> Shards:
    """Draw the training examples, train the tokenizer on them, and write both to a folder.

    The folder also gets the examples as text, from which `uncode count` makes the model's frequency table.
    """
    check_can_draw(config)
    folder.mkdir(parents=True, exist_ok=True)
    examples = list(curriculum(config.examples.rows, CURRICULUM_SEED, workers or os.cpu_count() or 1, on_progress))
    stride = max(1, len(examples) // TOKENIZER_EXAMPLES)
    train_tokenizer(_texts(examples[::stride]), config.network.vocab, folder)
    tokenizer = tokenizer_of(folder)
    require(
        len(tokenizer) == config.network.vocab,
        f"the examples give the tokenizer only {len(tokenizer)} of {config.network.vocab} tokens: lower network.vocab.",
    )
    spare = config.examples.spare
    longest, longest_answers = max(config.examples.lengths) - spare, [f.length - spare for f in FAMILIES.values()]
    by = made_by(config, folder)
    shards = tokenize(examples, tokenizer, longest, longest_answers, by, lambda count: on_progress("tokens", count))
    texts = (example.prompt + example.response for _, example in examples)
    write_whole(folder / TEXTS_FILE, "".join(json.dumps({"text": text}) + "\n" for text in texts))
    shards.save(folder / EXAMPLES_FILE)
    return shards


def check_can_draw(config: TrainConfig) -> None:
    """Raise if a config's examples cannot be drawn here, because a setting or a package is missing."""
    names, given = list(FAMILIES), len(config.examples.rows)
    require(
        given == len(names),
        f"examples.rows has {given} numbers: give {len(names)}, one for each of {', '.join(names)}.",
    )


def made_by(config: TrainConfig, folder: Path) -> str:
    """A fingerprint of what the examples depend on: config, tokenizer and held-out problems."""
    parts = [config.data_sha256.encode(), (folder / "tokenizer.json").read_bytes()]
    parts += [json.dumps([family.key(e) for e in family.examples()]).encode() for family in FAMILIES.values()]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def load_examples(config: TrainConfig, folder: Path) -> Shards:
    """Load the training examples in a folder. Raise if they were drawn for another config or tokenizer."""
    shards = Shards.load(folder / EXAMPLES_FILE)
    is_same = (folder / "tokenizer.json").is_file() and shards.made_by == made_by(config, folder)
    require(
        is_same,
        f"the examples in '{folder}' are of another config, tokenizer or version: draw them again with "
        "`uncode train CONFIG --prepare`.",
    )
    return shards


def _texts(examples: list[tuple[int, TrainingExample]]) -> itertools.chain[str]:
    return itertools.chain.from_iterable(example for _, example in examples)
